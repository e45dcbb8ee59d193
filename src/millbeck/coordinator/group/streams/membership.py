"""StreamsGroupHeartbeat: the members of streams groups, their topology and their tasks.

Theory of operation. A heartbeat works on a `Draft` of its group, which collects the records. The first member sends the
topology; all others must send the same. The topology is compared with the existing topics (`internal_topics`): while
source topics are missing or unsuitable, no member has tasks and the response has the reason; missing internal topics
are returned to the caller, which creates them. Members that join, leave or change, topics that change, a topology that
becomes runnable, and new assignor settings raise the group epoch. Then the assignor computes the target, at most once
per ``group.streams.assignment.interval.ms``, and each heartbeat moves its member one step toward it (`reconciliation`).

The first assignment of an empty group waits for ``group.streams.initial.rebalance.delay.ms``, so that tasks are not
moved repeatedly while an application starts.

Timers, one of a kind for each member: ``session``, no heartbeat within the session timeout; ``rebalance``, it has not
revoked tasks within its rebalance timeout; one for each group: ``delay``, the first assignment is due.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from millbeck.coordinator.group import records
from millbeck.coordinator.group.background import BackgroundExecutor
from millbeck.coordinator.group.classic.group import ClassicGroup
from millbeck.coordinator.group.classic.join import Client
from millbeck.coordinator.group.consumer.cluster_view import ClusterView, StreamsSettings
from millbeck.coordinator.group.records import GroupRecord
from millbeck.coordinator.group.statistics import Counters
from millbeck.coordinator.group.streams import requests
from millbeck.coordinator.group.streams.assignor import (
    AssignmentInput,
    MemberSpecification,
    Solution,
    SubtopologySpecification,
    assign,
)
from millbeck.coordinator.group.streams.draft import Draft
from millbeck.coordinator.group.streams.endpoints import partitions_by_endpoint
from millbeck.coordinator.group.streams.group import StreamsGroup
from millbeck.coordinator.group.streams.internal_topics import ConfiguredTopology, NewTopic, StatusCode, configure
from millbeck.coordinator.group.streams.member import JOIN_EPOCH, LEAVE_EPOCH, MemberState, StreamsMember
from millbeck.coordinator.group.streams.reconciliation import reconcile
from millbeck.coordinator.group.streams.tasks import TaskSet, to_wire
from millbeck.coordinator.group.streams.topology import Topology
from millbeck.coordinator.protocol_config import StreamsProtocolOptions
from millbeck.coordinator.runtime.result import Result
from millbeck.coordinator.runtime.timer import TimerKey, Timers
from millbeck.kernel import errors
from millbeck.kernel.errors import ApiError
from millbeck.wire.messages.streams_groups import (
    Status,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)

logger = logging.getLogger(__name__)

OFFLOAD_SIZE_MIN: Final = 2000
"""If members and tasks together are at least this many, the target is computed off the event loop."""
HASTY_INTERVAL_MS: Final = 1000
"""Heartbeat interval of a member that waits for topics, a target or tasks."""
RETRY_MS: Final = 500
STANDBY_CONFIG: Final = "num.standby.replicas"

GroupResult = Result[GroupRecord, Any]


class HeartbeatAnswer(NamedTuple):
    response: StreamsGroupHeartbeatResponse
    missing: Mapping[str, NewTopic] = {}
    """Internal topics to create."""


HeartbeatResult = Result[GroupRecord, HeartbeatAnswer]


@dataclass(slots=True)
class _SoftState:
    """The coordinator's in-memory state of a group; lost when the coordinator moves."""

    seen_version: int = -1
    """Version of the cluster metadata that the topology was last compared with."""
    configured: ConfiguredTopology | None = None
    shutdown_member: str | None = None
    """The member that requested the shutdown of the application."""
    endpoint_epoch: int = 0
    """The endpoint epoch, which is raised when the partitions of an endpoint have changed."""
    is_assigning: bool = False
    """Whether a target is being computed off the event loop."""


class StreamsGroupMembership:
    def __init__(
        self,
        groups: Mapping[str, Any],
        timers: Timers[GroupRecord],
        options: StreamsProtocolOptions,
        cluster: ClusterView,
        background: BackgroundExecutor,
        counters: Counters,
    ) -> None:
        self._groups = groups
        self._timers = timers
        self._options = options
        self._cluster = cluster
        self._background = background
        self._counters = counters
        self._soft: dict[str, _SoftState] = {}

    def find(self, group_id: str) -> StreamsGroup | None:
        group = self._groups.get(group_id)
        return group if isinstance(group, StreamsGroup) else None

    def resume(self, group: StreamsGroup) -> None:
        """Start the timers of the members of a group that was just loaded."""
        for member in group.members.values():
            self._keep_session(group.group_id, member.member_id)
            self._watch_revocation(group.group_id, member)

    def forget(self, group_id: str) -> None:
        """Discard the soft state of a deleted group."""
        self._soft.pop(group_id, None)
        self._timers.cancel(_delay_key(group_id))

    def _settings(self, group_id: str) -> StreamsSettings:
        return self._cluster.streams_settings_of(group_id)

    # Heartbeats

    def heartbeat(self, request: StreamsGroupHeartbeatRequest, client: Client, now_ms: int) -> HeartbeatResult:
        """Handle a join, a heartbeat or a leave."""
        requests.validate(request)
        if request.member_epoch == LEAVE_EPOCH:
            return self._leave(request)
        draft = self._draft_for(request)
        group = draft.group
        soft = self._soft.get(group.group_id) or _SoftState()
        owned = requests.owned_tasks(request)
        before = self._member(group, request, owned)
        member = requests.described_member(before, request, client)
        is_changed = member != before or member.member_id not in group.members
        if is_changed:
            draft.put_member(member)
        topology = self._topology(draft, request)
        statuses = _stale(group, member)
        is_changed = self._configure(draft, soft, topology, is_changed=is_changed)
        assert soft.configured is not None
        if soft.configured.is_ready:
            requests.check_tasks(request, soft.configured.task_counts)
        self._update_epoch(draft, soft.configured, topology, is_changed=is_changed)
        if group.is_empty:
            self._delay_first_assignment(group.group_id)
        statuses += self._update_target(draft, soft, now_ms)
        updated = self._reconcile(draft, member, owned)
        self._keep_session(group.group_id, member.member_id)
        if request.shutdown_application:
            soft.shutdown_member = soft.shutdown_member or member.member_id
        statuses += _group_statuses(soft)
        is_waiting = bool(statuses) or updated.state is MemberState.UNRELEASED_TASKS
        response = StreamsGroupHeartbeatResponse(
            member_id=updated.member_id,
            member_epoch=updated.epoch,
            heartbeat_interval_ms=self._interval_ms(group.group_id, is_waiting=is_waiting),
            status=statuses,
        )
        self._add_tasks(draft, soft, request, before, updated, response)
        # Not earlier: a refused request must not change anything.
        self._soft[group.group_id] = soft
        return Result(
            records=draft.records,
            response=HeartbeatAnswer(response, soft.configured.missing),
            on_failed=self._on_write_reverted(group.group_id),
        )

    def _draft_for(self, request: StreamsGroupHeartbeatRequest) -> Draft:
        group_id = request.group_id
        known = self._groups.get(group_id)
        if isinstance(known, StreamsGroup):
            # Counted once: from here on each change of a member is carried over.
            _ = known.holders
            draft = Draft(known)
        elif known is None and request.member_epoch != JOIN_EPOCH:
            raise errors.GroupIdNotFound(f"Group {group_id} not found.")
        elif known is None:
            draft = Draft(StreamsGroup(group_id=group_id))
        elif isinstance(known, ClassicGroup) and known.is_empty and request.member_epoch == JOIN_EPOCH:
            draft = Draft(StreamsGroup(group_id=group_id), [records.group_tombstone(group_id)])
        else:
            raise errors.GroupIdNotFound(f"Group {group_id} is not a streams group.")
        if request.member_epoch == JOIN_EPOCH and len(draft.group.members) >= self._options.size_max:
            raise errors.GroupMaxSizeReached(
                f"The streams group has reached its maximum capacity of {self._options.size_max} members."
            )
        return draft

    def _member(
        self, group: StreamsGroup, request: StreamsGroupHeartbeatRequest, owned: TaskSet | None
    ) -> StreamsMember:
        """Return the known or a new member; raises if its epoch is not valid."""
        if request.member_epoch == JOIN_EPOCH and request.member_id not in group.members:
            return StreamsMember(member_id=request.member_id)
        member = group.member(request.member_id)
        requests.check_epoch(member, request.member_epoch, owned)
        return member

    def _topology(self, draft: Draft, request: StreamsGroupHeartbeatRequest) -> Topology:
        """The group's topology, which the first member sets. An older one is accepted but not used."""
        known = draft.group.topology
        sent = None if request.topology is None else Topology.from_wire(request.topology)
        if known is None:
            if sent is None:
                raise errors.FencedMemberEpoch("The group has no topology: the member must rejoin and send it.")
            draft.put_topology(sent)
            return sent
        if sent is not None and sent.epoch >= known.epoch and sent != known:
            raise errors.InvalidRequest("Topology updates are not supported yet.")
        return known

    # Steps of a heartbeat

    def _configure(self, draft: Draft, soft: _SoftState, topology: Topology, *, is_changed: bool) -> bool:
        """Compare the topology with the topics if they may have changed; return whether the group has changed."""
        if soft.configured is not None and soft.seen_version == self._cluster.version and not is_changed:
            return False
        metadata_hash = self._cluster.metadata_hash(topology.required_topics)
        has_new_topics = metadata_hash != draft.group.metadata_hash
        if soft.configured is None or has_new_topics:
            soft.configured = configure(topology, self._cluster)
        soft.seen_version = self._cluster.version
        return is_changed or has_new_topics

    def _update_epoch(
        self, draft: Draft, configured: ConfiguredTopology, topology: Topology, *, is_changed: bool
    ) -> None:
        group = draft.group
        validated = topology.epoch if configured.is_ready else -1
        configs = ((STANDBY_CONFIG, str(self._settings(group.group_id).standby_count)),)
        if is_changed or validated != group.validated_topology_epoch or configs != group.assignment_configs:
            draft.raise_epoch(
                metadata_hash=self._cluster.metadata_hash(topology.required_topics),
                validated_topology_epoch=validated,
                assignment_configs=configs,
            )
            self._counters.streams_rebalances += 1

    def _delay_first_assignment(self, group_id: str) -> None:
        delay_ms = self._settings(group_id).initial_rebalance_delay_ms
        key = _delay_key(group_id)
        if delay_ms > 0 and key not in self._timers:
            self._timers.schedule(key, delay_ms, lambda now_ms: self._first_assignment_due(group_id, now_ms))

    def _first_assignment_due(self, group_id: str, now_ms: int) -> GroupResult:
        group, soft = self.find(group_id), self._soft.get(group_id)
        if group is None or group.is_empty or soft is None or soft.configured is None:
            return Result()
        draft = Draft(group)
        self._update_target(draft, soft, now_ms)
        return Result(records=draft.records)

    def _update_target(self, draft: Draft, soft: _SoftState, now_ms: int) -> list[Status]:
        """Compute the target assignment for the group epoch, or return the reason why it must wait."""
        group = draft.group
        if _delay_key(group.group_id) in self._timers:
            text = "Assignment delayed due to the configured initial rebalance delay."
            return [StatusCode.ASSIGNMENT_DELAYED.with_detail(text)]
        if group.assignment_epoch >= group.epoch:
            return []
        interval_ms = self._settings(group.group_id).assignment_interval_ms
        if group.assigned_at_ms and interval_ms and now_ms < group.assigned_at_ms + interval_ms:
            text = "Assignment delayed due to the configured assignment interval."
            return [StatusCode.ASSIGNMENT_DELAYED.with_detail(text)]
        problem = self._problem(group, soft)
        if problem.size < OFFLOAD_SIZE_MIN or not self._options.assignor_offload_enabled:
            draft.put_targets(problem.epoch, assign(problem), now_ms)
            return []
        if not soft.is_assigning:
            self._assign_off_loop(group.group_id, soft, problem)
        return [StatusCode.ASSIGNMENT_DELAYED.with_detail("The assignment is being computed.")]

    def _problem(self, group: StreamsGroup, soft: _SoftState) -> AssignmentInput:
        topology, configured = group.topology, soft.configured
        assert topology is not None
        assert configured is not None
        tasks = configured.task_counts if configured.is_ready else {}
        return AssignmentInput(
            epoch=group.epoch,
            members=[
                MemberSpecification(each.member_id, each.process_id, group.target_of(each.member_id))
                for each in group.members.values()
            ],
            subtopologies={
                name: SubtopologySpecification(count, bool(topology.subtopologies[name].state_changelog_topics))
                for name, count in tasks.items()
            },
            standby_count=self._settings(group.group_id).standby_count,
        )

    def _assign_off_loop(self, group_id: str, soft: _SoftState, problem: AssignmentInput) -> None:
        soft.is_assigning = True

        def failed() -> None:
            # The next heartbeat computes it again.
            soft.is_assigning = False

        self._background.run(
            lambda: assign(problem),
            lambda solution, now_ms: self._target_computed(group_id, soft, problem, solution, now_ms),
            failed,
        )

    def _target_computed(
        self, group_id: str, soft: _SoftState, problem: AssignmentInput, solution: Solution, now_ms: int
    ) -> GroupResult:
        soft.is_assigning = False
        group = self.find(group_id)
        if group is None or self._soft.get(group_id) is not soft or problem.epoch <= group.assignment_epoch:
            return Result()
        has_same_members = solution.keys() == group.members.keys()
        if problem.epoch > group.epoch or (problem.epoch == group.epoch and not has_same_members):
            # The records of the heartbeat that raised the epoch were never written.
            return Result()
        draft = Draft(group)
        # Members that have left since are skipped; members that have joined since are part of the next target.
        here = {member_id: target for member_id, target in solution.items() if member_id in group.members}
        draft.put_targets(problem.epoch, here, now_ms)
        return Result(records=draft.records)

    def _reconcile(self, draft: Draft, member: StreamsMember, owned: TaskSet | None) -> StreamsMember:
        group = draft.group
        if member.is_reconciled_to(group.assignment_epoch):
            return member
        updated = reconcile(
            member,
            target_epoch=group.assignment_epoch,
            target=group.target_of(member.member_id),
            holders=group.holders,
            owned=owned,
        )
        if updated is not member:
            draft.put_current(updated)
            self._watch_revocation(group.group_id, updated)
        return updated

    def _add_tasks(
        self,
        draft: Draft,
        soft: _SoftState,
        request: StreamsGroupHeartbeatRequest,
        before: StreamsMember,
        updated: StreamsMember,
        response: StreamsGroupHeartbeatResponse,
    ) -> None:
        """Add the member's tasks to the response if they have changed, and the endpoints if the member has older
        ones."""
        if request.member_epoch == JOIN_EPOCH or updated.assigned != before.assigned:
            response.active_tasks = to_wire(updated.assigned.active)
            response.standby_tasks = to_wire(updated.assigned.standby)
            response.warmup_tasks = to_wire(updated.assigned.warmup)
            if updated.user_endpoint is not None:
                soft.endpoint_epoch += 1
        if soft.endpoint_epoch != request.endpoint_information_epoch:
            response.partitions_by_user_endpoint = partitions_by_endpoint(draft.group, self._cluster)
        response.endpoint_information_epoch = soft.endpoint_epoch

    def _interval_ms(self, group_id: str, *, is_waiting: bool) -> int:
        interval_ms = self._settings(group_id).heartbeat_interval_ms
        return min(interval_ms, HASTY_INTERVAL_MS) if is_waiting else interval_ms

    def _on_write_reverted(self, group_id: str) -> Callable[[ApiError, int], None]:
        """Callback for a failed write: makes the next heartbeat compare the topics again."""

        def failed(error: ApiError, now_ms: int) -> None:
            soft = self._soft.get(group_id)
            if self.find(group_id) is None:
                self.forget(group_id)
            elif soft is not None:
                soft.seen_version = -1
                soft.configured = None

        return failed

    # Members that leave or are fenced

    def _leave(self, request: StreamsGroupHeartbeatRequest) -> HeartbeatResult:
        group = self.find(request.group_id)
        if group is None:
            raise errors.GroupIdNotFound(f"Group {request.group_id} not found.")
        member = group.member(request.member_id)
        if request.shutdown_application:
            soft = self._soft.setdefault(group.group_id, _SoftState())
            soft.shutdown_member = soft.shutdown_member or member.member_id
        response = StreamsGroupHeartbeatResponse(member_id=member.member_id, member_epoch=LEAVE_EPOCH, status=[])
        return self._without(group, member.member_id, HeartbeatAnswer(response))

    def _without(self, group: StreamsGroup, member_id: str, answer: HeartbeatAnswer | None = None) -> HeartbeatResult:
        """Remove a member and free its tasks; the next heartbeat of the others computes their target."""
        draft = Draft(group)
        draft.remove_member(member_id)
        draft.raise_epoch()
        self._counters.streams_rebalances += 1

        def committed(_: int) -> None:
            current = self.find(group.group_id)
            if current is None or member_id not in current.members:
                self._timers.cancel(_member_key("session", group.group_id, member_id))
                self._timers.cancel(_member_key("rebalance", group.group_id, member_id))
            soft = self._soft.get(group.group_id)
            if soft is not None and (current is None or current.is_empty):
                # The shutdown of an application ends with its last member.
                soft.shutdown_member = None

        return Result(records=draft.records, response=answer, on_committed=committed)

    # Timers

    def _keep_session(self, group_id: str, member_id: str) -> None:
        timeout_ms = self._settings(group_id).session_timeout_ms
        self._watch("session", group_id, member_id, timeout_ms, lambda _: True)

    def _watch_revocation(self, group_id: str, member: StreamsMember) -> None:
        if member.state is not MemberState.UNREVOKED_TASKS:
            self._timers.cancel(_member_key("rebalance", group_id, member.member_id))
            return
        epoch = member.epoch
        self._watch(
            "rebalance",
            group_id,
            member.member_id,
            member.rebalance_timeout_ms,
            lambda late: late.epoch == epoch and late.state is MemberState.UNREVOKED_TASKS,
        )

    def _watch(
        self, kind: str, group_id: str, member_id: str, timeout_ms: int, is_late: Callable[[StreamsMember], bool]
    ) -> None:
        self._timers.schedule(
            _member_key(kind, group_id, member_id),
            timeout_ms,
            lambda _: self._expire(kind, group_id, member_id, is_late),
            retry_ms=RETRY_MS,
        )

    def _expire(
        self, kind: str, group_id: str, member_id: str, is_late: Callable[[StreamsMember], bool]
    ) -> GroupResult:
        group = self.find(group_id)
        member = None if group is None else group.members.get(member_id)
        if group is None or member is None or not is_late(member):
            return Result()
        logger.info("fencing member %s of group %s: its %s timeout expired", member_id, group_id, kind)
        self._counters.expired_members += 1
        return self._without(group, member_id)


def _stale(group: StreamsGroup, member: StreamsMember) -> list[Status]:
    known = group.topology
    if known is None or member.topology_epoch >= known.epoch:
        return []
    text = f"The member's topology epoch {member.topology_epoch} is behind the group's topology epoch {known.epoch}."
    return [StatusCode.STALE_TOPOLOGY.with_detail(text)]


def _group_statuses(soft: _SoftState) -> list[Status]:
    found = []
    if soft.configured is not None and soft.configured.problem is not None:
        problem = soft.configured.problem
        found.append(Status(problem.status_code, problem.status_detail))
    if soft.shutdown_member is not None:
        text = (
            f"Streams group member {soft.shutdown_member} encountered a fatal error and requested a shutdown for the "
            "entire application."
        )
        found.append(StatusCode.SHUTDOWN_APPLICATION.with_detail(text))
    return found


def _member_key(kind: str, group_id: str, member_id: str) -> TimerKey:
    return (f"streams-{kind}", group_id, member_id)


def _delay_key(group_id: str) -> TimerKey:
    return ("streams-delay", group_id)
