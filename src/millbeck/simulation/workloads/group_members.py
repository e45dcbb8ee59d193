"""Members of a consumer group that implement the protocol themselves: they join, stall, crash, return, and commit.

A member follows the protocol with random delays: it revokes partitions late, stops sending heartbeats for a while, or
crashes without leaving. It commits only for partitions it owns, with increasing offsets from the committed one;
sometimes it commits with an outdated epoch.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any, Final, NamedTuple, TypeVar

from millbeck.client.cluster import COORDINATOR, Cluster
from millbeck.client.retry import Deadline
from millbeck.kernel.errors import ApiError, FencedMemberEpoch, UnknownMemberId, from_code
from millbeck.simulation.histories.group_history import GroupHistory, Place
from millbeck.wire.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatTopicPartitions,
)
from millbeck.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)

_T = TypeVar("_T")

REQUEST_SECONDS: Final = 3.0
RETRY_SECONDS: Final = 0.2
LEAVE_EPOCH: Final = -1


class GroupMemberBehaviour(NamedTuple):
    """The probabilities of a member's actions at each heartbeat, and their durations."""

    leave: float = 0.02
    die: float = 0.02
    stall: float = 0.03
    stall_s: float = 6.0
    revoke_s: float = 1.0
    rebalance_timeout_ms: int = 5000


class SimGroupMember:
    _offsets_version_max: int | None = None
    """The version of OffsetCommit and OffsetFetch that uses the fields of `_topic_of`; None for the newest."""

    def __init__(
        self,
        cluster: Cluster,
        history: GroupHistory,
        dice: random.Random,
        *,
        group_id: str,
        member_id: str,
        topics: list[str],
        behaviour: GroupMemberBehaviour,
    ) -> None:
        self.member_id = member_id
        self.epoch = 0
        self.owned: dict[Place, None] = {}
        self._cluster = cluster
        self._history = history
        self._dice = dice
        self._group_id = group_id
        self._topics = topics
        self._behaviour = behaviour
        self._offsets: dict[Place, int] = {}
        self._since: dict[Place, tuple[int, int]] = {}
        """For each partition, the last epoch at which the member did not own it, and the epoch at which it was
        assigned."""
        self._is_full = True
        self._interval_s = 0.5
        self.is_calm = False
        """From now on the member only follows the protocol."""

    async def live(self) -> None:
        """Run until the member leaves, dies or is cancelled."""
        while True:
            wish = self._dice.random()
            if not self.is_calm and wish < self._behaviour.leave:
                await self.leave()
                return
            if not self.is_calm and wish < self._behaviour.leave + self._behaviour.die:
                self._history.gone(self.member_id)
                return
            if not self.is_calm and wish < self._behaviour.leave + self._behaviour.die + self._behaviour.stall:
                await asyncio.sleep(self._dice.random() * self._behaviour.stall_s)
            try:
                await self._beat()
            except (FencedMemberEpoch, UnknownMemberId):
                if await self._is_told_again():
                    await self._commit_late()
                self._start_over()
            except ApiError:
                self._is_full = True
                self._cluster.forget_coordinator(self._group_id)
                await asyncio.sleep(RETRY_SECONDS)
                continue
            if self.owned and self.epoch > 0:
                await self._commit()
            await asyncio.sleep(self._interval_s * (0.5 + self._dice.random()))

    async def _is_told_again(self) -> bool:
        """Whether the current coordinator rejects the member as well: a paused coordinator may be outdated."""
        self._cluster.forget_coordinator(self._group_id)
        try:
            await self._beat()
        except (FencedMemberEpoch, UnknownMemberId):
            return True
        except ApiError:
            pass
        return False

    def _start_over(self) -> None:
        self._history.gone(self.member_id)
        self.epoch = 0
        self.owned = {}
        self._offsets = {}
        self._is_full = True

    async def _beat(self) -> None:
        before = self.epoch
        self._history.keeps(self.member_id, self.owned)
        response = await self._send_heartbeat(is_joining=self.epoch == 0)
        if response.error_code:
            raise from_code(response.error_code)
        self._is_full = False
        self.epoch = response.member_epoch
        self._interval_s = response.heartbeat_interval_ms / 1000
        given = self._given(response)
        if given is not None:
            await self._take_over(given, before)

    async def _send_heartbeat(self, *, is_joining: bool) -> Any:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group_id,
            member_id=self.member_id,
            member_epoch=self.epoch,
            topic_partitions=[] if is_joining else _topics_of(self.owned),
        )
        if is_joining or self._is_full:
            request.rebalance_timeout_ms = self._behaviour.rebalance_timeout_ms
            request.subscribed_topic_names = self._topics
        return await self._ask(request, ConsumerGroupHeartbeatResponse)

    def _given(self, response: Any) -> dict[Place, None] | None:
        """The partitions assigned by a heartbeat response; None if the response carries no assignment."""
        if response.assignment is None:
            return None
        return {
            (topic.topic_id, partition): None
            for topic in response.assignment.topic_partitions
            for partition in topic.partitions
        }

    async def _take_over(self, given: dict[Place, None], before: int) -> None:
        added = [place for place in given if place not in self.owned]
        self._since.update(dict.fromkeys(added, (before, self.epoch)))
        self._history.granted(self.member_id, added)
        self.owned.update(dict.fromkeys(added))
        if any(place not in given for place in self.owned):
            await asyncio.sleep(0 if self.is_calm else self._dice.random() * self._behaviour.revoke_s)
        self.owned = {place: None for place in self.owned if place in given}
        self._offsets = {place: offset for place, offset in self._offsets.items() if place in self.owned}

    async def _commit(self) -> None:
        place = self._dice.choice(list(self.owned))
        if place not in self._offsets:
            before = self._history.last_acknowledged(place)
            found = await self._fetch(place)
            if found is None:
                return
            self._history.fetched(place, found, at_least=before)
            self._offsets[place] = found
        offset = self._offsets[place] + 1
        if await self._commit_offset(place, offset, self.epoch):
            self._offsets[place] = offset
            self._history.acknowledged(place, offset)
        else:
            # It may have been committed all the same.
            self._offsets.pop(place, None)
        if self._dice.random() < 0.1:
            await self._commit_at_an_old_epoch(place)

    async def _commit_at_an_old_epoch(self, place: Place) -> None:
        """Commit at an older epoch: allowed for partitions owned since then, refused for others (KIP-1251)."""
        without, since = self._since[place]
        offset = self._offsets.get(place)
        if since < self.epoch and offset is not None:
            if await self._commit_offset(place, offset + 1, self.epoch - 1):
                self._offsets[place] = offset + 1
                self._history.acknowledged(place, offset + 1)
                self._history.late_count += 1
            else:
                self._offsets.pop(place, None)
        if without > 0:
            is_accepted = await self._commit_offset(place, 0, without - 1)
            self._history.stale_commit(self.member_id, is_accepted=is_accepted)

    async def _commit_late(self) -> None:
        """Commit as a member that was removed from the group."""
        if self.owned and self.epoch > 0:
            place = next(iter(self.owned))
            is_accepted = await self._commit_offset(place, 0, self.epoch)
            self._history.stale_commit(self.member_id, is_accepted=is_accepted)

    async def _commit_offset(self, place: Place, offset: int, epoch: int) -> bool:
        """Commit an offset; returns whether it was acknowledged."""
        name, topic_id = self._topic_of(place)
        topic = OffsetCommitRequestTopic(name, topic_id, [OffsetCommitRequestPartition(place[1], offset)])
        request = OffsetCommitRequest(
            group_id=self._group_id,
            generation_id_or_member_epoch=epoch,
            member_id=self.member_id,
            topics=[topic],
        )
        try:
            response = await self._ask(request, OffsetCommitResponse, version_max=self._offsets_version_max)
        except ApiError:
            return False
        return response.topics[0].partitions[0].error_code == 0

    async def _fetch(self, place: Place) -> int | None:
        topics = [OffsetFetchRequestTopics(*self._topic_of(place), [place[1]])]
        group = OffsetFetchRequestGroup(self._group_id, self.member_id, self.epoch, topics)
        request = OffsetFetchRequest(groups=[group], require_stable=True)
        try:
            response = await self._ask(request, OffsetFetchResponse, version_max=self._offsets_version_max)
        except ApiError:
            return None
        found = response.groups[0]
        if found.error_code or found.topics[0].partitions[0].error_code:
            return None
        return found.topics[0].partitions[0].committed_offset

    def _topic_of(self, place: Place) -> tuple[str, bytes]:
        """Name and id of a topic, of which the requests for offsets need one."""
        return "", place[0]

    async def leave(self) -> None:
        """Send a leave request; the outcome is not known."""
        self._history.gone(self.member_id)
        if self.epoch > 0:
            try:
                await self._send_leave()
            except ApiError:
                return

    async def _send_leave(self) -> None:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group_id, member_id=self.member_id, member_epoch=LEAVE_EPOCH
        )
        await self._ask(request, ConsumerGroupHeartbeatResponse)

    async def _ask(self, request: object, response: type[_T], version_max: int | None = None) -> _T:
        deadline = Deadline(REQUEST_SECONDS)
        node_id = await self._cluster.coordinator(self._group_id, deadline=deadline)
        return await self._cluster.request(
            request, response, deadline=deadline, node_id=node_id, purpose=COORDINATOR, version_max=version_max
        )


def _topics_of(places: dict[Place, None]) -> list[ConsumerGroupHeartbeatTopicPartitions]:
    topics: dict[bytes, list[int]] = {}
    for topic_id, partition in places:
        topics.setdefault(topic_id, []).append(partition)
    return [ConsumerGroupHeartbeatTopicPartitions(topic_id, sorted(each)) for topic_id, each in topics.items()]
