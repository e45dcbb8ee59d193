"""Manage the share partitions that this broker leads, by group and partition, and the share sessions.

A share partition is created when a member first fetches from it. It is dropped when its group has no session on this
broker and none of its records are acquired; the next fetch loads the state from the share coordinator again, because it
may have been reset meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millbeck.coordinator.group.share.context import MembershipSettings
from millbeck.coordinator.share.shard import ShareKey
from millbeck.kernel.errors import NotLeaderOrFollower
from millbeck.kernel.ids import Uuid
from millbeck.server.config.sections.share_groups import ShareDeliveryOptions
from millbeck.server.network.connection import Connection
from millbeck.server.share.dead_letters import DeadLetterWriter
from millbeck.server.share.partition_leader import DeadLetterSink, SharePartitionLeader
from millbeck.server.share.persister import Persister
from millbeck.server.share.sessions import INITIAL_EPOCH, ShareSession, ShareSessions
from millbeck.server.share.settings import ShareGroupSettings, membership_settings, settings_of
from millbeck.server.share.statistics import ShareCounters

if TYPE_CHECKING:
    from millbeck.metadata.delta import MetadataDelta
    from millbeck.server.share.context import ShareContext


class SharePartitionManager:
    def __init__(self, broker: ShareContext) -> None:
        self._broker = broker
        self.persister = Persister(broker)
        self.dead_letters = DeadLetterWriter(broker)
        self.sessions = ShareSessions()
        self.counters = ShareCounters()
        self._led: dict[ShareKey, SharePartitionLeader] = {}
        self._settings: dict[str, ShareGroupSettings] = {}
        self.membership: dict[str, MembershipSettings] = {}
        """The group coordinator's settings of the groups that have group configs."""

    # Share partitions

    def led(self, group_id: str, topic_id: Uuid, index: int) -> SharePartitionLeader:
        """Get or create a share partition, which may still be loading. Raises ApiError unless it is led here."""
        partition = self._broker.topics.led_partition(topic_id, index)
        key = ShareKey(group_id, topic_id, index)
        known = self._led.get(key)
        if known is not None and known.partition is partition:
            return known
        if known is not None:
            known.end(NotLeaderOrFollower("the partition was recreated"))
        made = SharePartitionLeader(
            self._broker,
            self.persister,
            key,
            partition,
            self.settings_of(group_id),
            self._ended,
            DeadLetterSink(self.dead_letters, self.counters.of_group(group_id)),
        )
        self._led[key] = made
        made.begin()
        return made

    def known(self, group_id: str, topic_id: Uuid, index: int) -> SharePartitionLeader | None:
        return self._led.get(ShareKey(group_id, topic_id, index))

    def all(self) -> list[SharePartitionLeader]:
        return list(self._led.values())

    def _ended(self, led: SharePartitionLeader) -> None:
        if self._led.get(led.key) is led:
            del self._led[led.key]

    def settings_of(self, group_id: str) -> ShareGroupSettings:
        known = self._settings.get(group_id)
        if known is None:
            known = self._settings[group_id] = settings_of(self._broker, group_id)
        return known

    # Sessions

    def session(self, group_id: str, member_id: str, epoch: int, connection: Connection) -> ShareSession:
        """The session of a request; the initial epoch opens a new one."""
        if epoch != INITIAL_EPOCH:
            return self.sessions.find(group_id, member_id, epoch)
        limits = ShareDeliveryOptions.resolve(self._broker.layers(self._broker.image, {}))
        session, before = self.sessions.open(group_id, member_id, connection, limits.session_count_max)
        if before is not None and before.connection is not None:
            before.connection.forget_when_lost(before.on_lost)
        session.on_lost = lambda: self.close_session(session)
        connection.when_lost(session.on_lost)
        return session

    def close_session(self, session: ShareSession) -> None:
        """Close a session and release all records that its member has acquired."""
        if not self.sessions.close(session):
            return
        if session.connection is not None:
            session.connection.forget_when_lost(session.on_lost)
        group_id = session.group_id
        for led in self.all():
            if led.key.group_id == group_id:
                led.release(session.member_id)
        if not self.sessions.count_of(group_id):
            self._forget_idle(group_id)

    def _forget_idle(self, group_id: str) -> None:
        """Drop the share partitions of a group without sessions, as soon as they are idle."""
        if self.sessions.count_of(group_id):
            return
        is_busy = False
        for led in self.all():
            if led.key.group_id != group_id:
                continue
            if led.is_idle:
                led.end(NotLeaderOrFollower("the group has no share sessions on this broker"))
            else:
                is_busy = True
        if is_busy:
            self._broker.deadlines.after(100, lambda: self._forget_idle(group_id))
        else:
            self._settings.pop(group_id, None)

    # Applying metadata

    def publish(self, delta: MetadataDelta) -> None:
        """Drop the share partitions of deleted topics, and apply changed configurations."""
        for led in self.all():
            if led.key.topic_id in delta.topics.deleted:
                led.end(NotLeaderOrFollower("the topic was deleted"))
        if delta.configs.changed or delta.features.changed:
            self._settings.clear()
            self.membership.clear()
            self.membership.update(membership_settings(self._broker))
            for led in self.all():
                led.apply_settings(self.settings_of(led.key.group_id))

    def close(self) -> None:
        """Fail all pending requests with NOT_LEADER_OR_FOLLOWER at shutdown."""
        self.persister.close()
        for led in self.all():
            led.end(NotLeaderOrFollower("the broker is shutting down"))
