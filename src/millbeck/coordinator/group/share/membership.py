"""ShareGroupHeartbeat: the members of share groups and their assignments.

Theory of operation. A heartbeat works on a `Draft` of its group, which collects the records. Members that join, leave
or change their subscription bump the group epoch, as do changes of the topics. Partitions that are new to a group are
first initialized in the share coordinator: a record marks them as initializing, the request is sent when that record is
committed, and another record marks them as initialized. Then the assignor assigns them to members.

A partition need not be revoked from a member before it is assigned to another one, so each heartbeat moves its member
to the latest assignment.

Timers, one for each member: ``session``, no heartbeat within the session timeout; one for each group: ``assign``, the
minimum interval between two assignments has passed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from millbeck.coordinator.group.records import GroupRecord
from millbeck.coordinator.group.share import initialization
from millbeck.coordinator.group.share.assignor import Assignor, assign
from millbeck.coordinator.group.share.context import MembershipSettings, Place, StateInitializer, Topics
from millbeck.coordinator.group.share.draft import Draft
from millbeck.coordinator.group.share.group import ShareGroup, ShareMember
from millbeck.coordinator.protocol_config import ShareProtocolOptions
from millbeck.coordinator.runtime.result import Result
from millbeck.coordinator.runtime.timer import TimerKey, Timers
from millbeck.kernel import errors
from millbeck.kernel.timeline import TimelineDict
from millbeck.wire.messages.share_groups import (
    ShareAssignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    ShareGroupHeartbeatTopicPartitions,
)

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
HASTY_INTERVAL_MS: Final = 500
"""Heartbeat interval of a member that waits for partitions."""
RETRY_MS: Final = 500

GroupResult = Result[GroupRecord, Any]


class ShareGroupMembership:
    def __init__(
        self,
        groups: TimelineDict[str, ShareGroup],
        timers: Timers[GroupRecord],
        options: ShareProtocolOptions,
        topics: Topics,
        initializer: StateInitializer,
        settings: Mapping[str, MembershipSettings],
        assignor: Assignor = assign,
    ) -> None:
        """``settings`` holds the dynamic configurations, by group id."""
        self._groups = groups
        self._timers = timers
        self._options = options
        self._assignor = assignor
        self._topics = topics
        self._initializer = initializer
        self._settings = settings
        self._seen_versions: dict[str, int] = {}
        self._asked_ms: dict[str, int] = {}
        """The time at which the initialization of a group's share partitions was last requested."""
        self.rebalance_count = 0

    def settings_of(self, group_id: str) -> MembershipSettings:
        known = self._settings.get(group_id)
        if known is not None:
            return known
        options = self._options
        return MembershipSettings(
            session_timeout_ms=options.session_timeout_ms,
            heartbeat_interval_ms=options.heartbeat_interval_ms,
            assignment_interval_ms=options.assignment_interval_ms,
        )

    def resume(self, group: ShareGroup) -> None:
        """Start the session timeouts of the members of a group that was just loaded."""
        for member_id in group.members:
            self._keep_session(group.group_id, member_id)

    def heartbeat(
        self, request: ShareGroupHeartbeatRequest, *, client_id: str, client_host: str, now_ms: int
    ) -> Result[GroupRecord, ShareGroupHeartbeatResponse]:
        _check(request)
        group = self._groups.get(request.group_id)
        if request.member_epoch == LEAVE_EPOCH:
            return self._leave(group, request)
        if group is None:
            if request.member_epoch != JOIN_EPOCH:
                raise errors.GroupIdNotFound(f"Group {request.group_id} not found.")
            group = ShareGroup(group_id=request.group_id)
        member = self._find_member(group, request)
        draft = Draft(group)
        is_changed = draft.put_member(
            member,
            request.member_id,
            rack_id=request.rack_id,
            client_id=client_id,
            client_host=client_host,
            subscribed_names=request.subscribed_topic_names,
        )
        self._update(draft, is_changed, now_ms)
        is_told_anew = draft.move_to_target(request.member_id) or request.member_epoch == JOIN_EPOCH
        self._keep_session(group.group_id, request.member_id)
        is_waiting = initialization.is_waiting(draft.group) or draft.group.epoch > draft.group.assignment_epoch
        known = draft.group.members[request.member_id]
        settings = self.settings_of(group.group_id)
        response = ShareGroupHeartbeatResponse(
            member_id=request.member_id,
            member_epoch=known.epoch,
            heartbeat_interval_ms=min(settings.heartbeat_interval_ms, HASTY_INTERVAL_MS)
            if is_waiting
            else settings.heartbeat_interval_ms,
        )
        if is_told_anew or request.subscribed_topic_names is not None:
            response.assignment = ShareAssignment(
                [ShareGroupHeartbeatTopicPartitions(topic, list(found)) for topic, found in known.assigned.items()]
            )
        return self._result(draft, response, now_ms)

    def _find_member(self, group: ShareGroup, request: ShareGroupHeartbeatRequest) -> ShareMember | None:
        member = group.members.get(request.member_id)
        if member is None:
            if request.member_epoch != JOIN_EPOCH:
                raise errors.UnknownMemberId(f"Member {request.member_id} is not a member of group {request.group_id}.")
            if len(group.members) >= self._options.size_max:
                raise errors.GroupMaxSizeReached(f"The share group is full: it has {len(group.members)} members.")
            return None
        if request.member_epoch == JOIN_EPOCH:
            return member
        if request.member_epoch > member.epoch:
            raise errors.FencedMemberEpoch(
                f"member epoch {request.member_epoch} is larger than the current epoch {member.epoch}"
            )
        if request.member_epoch < member.epoch and request.member_epoch != member.previous_epoch:
            raise errors.FencedMemberEpoch(
                f"member epoch {request.member_epoch} is smaller than the current epoch {member.epoch}"
            )
        return member

    # Steps of one operation

    def _update(self, draft: Draft, is_changed: bool, now_ms: int) -> None:
        """Update the group epoch, the share partitions to initialize and the target assignment."""
        group_id = draft.group.group_id
        names = draft.group.subscribed_names()
        if is_changed or self._seen_versions.get(group_id) != self._topics.version:
            metadata_hash = self._topics.metadata_hash(names)
            if is_changed or metadata_hash != draft.group.metadata_hash:
                draft.raise_epoch(metadata_hash)
            self._seen_versions[group_id] = self._topics.version
            initialization.begin(draft, self._topics, names)
        self._update_target(draft, now_ms)

    def _update_target(self, draft: Draft, now_ms: int) -> None:
        group = draft.group
        if group.epoch <= group.assignment_epoch or group.is_empty:
            return
        wait_ms = 0
        if group.assignment_epoch:
            wait_ms = group.assigned_at_ms + self.settings_of(group.group_id).assignment_interval_ms - now_ms
        if wait_ms > 0:
            self._schedule_target(group.group_id, wait_ms)
            return
        draft.assign(self._topics, now_ms, self._assignor)
        self.rebalance_count += 1
        self._timers.cancel(_assign_key(group.group_id))

    def _schedule_target(self, group_id: str, wait_ms: int) -> None:
        key = _assign_key(group_id)
        if key not in self._timers:
            self._timers.schedule(key, wait_ms, lambda now_ms: self._target_due(group_id, now_ms), retry_ms=RETRY_MS)

    def _target_due(self, group_id: str, now_ms: int) -> GroupResult:
        group = self._groups.get(group_id)
        if group is None:
            return Result()
        draft = Draft(group)
        self._update_target(draft, now_ms)
        return Result(records=draft.records)

    def _result(self, draft: Draft, response: Any, now_ms: int) -> GroupResult:
        """Build the result; initialization is requested when its record is committed."""
        group = draft.group
        beginnings = initialization.beginnings(group)
        asked_ms = self._asked_ms.get(group.group_id)
        is_due = asked_ms is None or now_ms >= asked_ms + self._options.initialize_retry_interval_ms
        if not beginnings or not (draft.has_new_beginnings or is_due):
            return Result(records=draft.records, response=response)
        self._asked_ms[group.group_id] = now_ms

        def ask(_: int) -> None:
            self._initializer.initialize(group.group_id, group.epoch, beginnings)

        return Result(records=draft.records, response=response, on_committed=ask)

    def initialized(self, group_id: str, done: list[Place], now_ms: int) -> GroupResult:
        """Record the share partitions as initialized and assign them."""
        group = self._groups.get(group_id)
        self._asked_ms.pop(group_id, None)
        if group is None or not done:
            return Result()
        draft = Draft(group)
        if initialization.complete(draft, done):
            draft.raise_epoch(group.metadata_hash)
            self._update_target(draft, now_ms)
        return Result(records=draft.records)

    # Leaving

    def _leave(
        self, group: ShareGroup | None, request: ShareGroupHeartbeatRequest
    ) -> Result[GroupRecord, ShareGroupHeartbeatResponse]:
        if group is None:
            raise errors.GroupIdNotFound(f"Group {request.group_id} not found.")
        if request.member_id not in group.members:
            raise errors.UnknownMemberId(f"Member {request.member_id} is not a member of group {request.group_id}.")
        response = ShareGroupHeartbeatResponse(member_id=request.member_id, member_epoch=LEAVE_EPOCH)
        return Result(records=self._without(group, request.member_id), response=response)

    def _without(self, group: ShareGroup, member_id: str) -> list[GroupRecord]:
        self._timers.cancel(_session_key(group.group_id, member_id))
        draft = Draft(group)
        draft.remove_member(member_id)
        draft.raise_epoch(self._topics.metadata_hash(draft.group.subscribed_names()))
        return draft.records

    def _keep_session(self, group_id: str, member_id: str) -> None:
        self._timers.schedule(
            _session_key(group_id, member_id),
            self.settings_of(group_id).session_timeout_ms,
            lambda _: self._expire(group_id, member_id),
            retry_ms=RETRY_MS,
        )

    def _expire(self, group_id: str, member_id: str) -> GroupResult:
        group = self._groups.get(group_id)
        if group is None or member_id not in group.members:
            return Result()
        return Result(records=self._without(group, member_id))

    def forget(self, group_id: str) -> None:
        """Discard the soft state of a deleted group."""
        self._seen_versions.pop(group_id, None)
        self._asked_ms.pop(group_id, None)


def _check(request: ShareGroupHeartbeatRequest) -> None:
    if not request.group_id.strip():
        raise errors.InvalidRequest("GroupId can't be empty.")
    if not request.member_id.strip():
        raise errors.InvalidRequest("MemberId can't be empty.")
    if request.member_epoch < LEAVE_EPOCH:
        raise errors.InvalidRequest("MemberEpoch is invalid.")
    if request.rack_id is not None and not request.rack_id.strip():
        raise errors.InvalidRequest("RackId can't be empty.")
    if request.member_epoch == JOIN_EPOCH and not request.subscribed_topic_names:
        raise errors.InvalidRequest("SubscribedTopicNames must be set in first request.")


def _session_key(group_id: str, member_id: str) -> TimerKey:
    return ("share-session", group_id, member_id)


def _assign_key(group_id: str) -> TimerKey:
    return ("share-assign", group_id)
