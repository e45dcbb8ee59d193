"""Coordinates a consumer group: bumps epochs, computes target assignments, reconciles and fences members.

Timers, one of a kind for each member, or for each group:
    session    no heartbeat from the member within its session timeout
    rebalance  the member has not revoked its partitions within its rebalance timeout
    join       a member of the classic protocol was told to rejoin and has not
    sync       a member of the classic protocol has joined and has not sent SyncGroup
    assign     the group epoch is ahead of the assignment epoch, and the minimum assignment interval has passed

The target assignment is computed when an operation bumps the group epoch, at most once per
``group.consumer.assignment.interval.ms``, so a thousand members that join at once cause only a few computations.
Members that wait for a target, or for partitions other members still own, get a shorter heartbeat interval.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from millbeck.coordinator.group.assignors import ASSIGNORS, Assignor
from millbeck.coordinator.group.background import BackgroundExecutor
from millbeck.coordinator.group.consumer import regular_expressions
from millbeck.coordinator.group.consumer.assignment import Assignment
from millbeck.coordinator.group.consumer.cluster_view import ClusterView
from millbeck.coordinator.group.consumer.draft import Draft
from millbeck.coordinator.group.consumer.group import ConsumerGroup, ResolvedRegex
from millbeck.coordinator.group.consumer.member import ConsumerMember, MemberState
from millbeck.coordinator.group.consumer.reconciliation import reconcile
from millbeck.coordinator.group.consumer.target import AssignmentInput, Solution, build_group_spec, preferred_assignor
from millbeck.coordinator.group.records import GroupRecord
from millbeck.coordinator.group.statistics import Counters
from millbeck.coordinator.protocol_config import ConsumerProtocolOptions
from millbeck.coordinator.runtime.result import Result
from millbeck.coordinator.runtime.timer import TimerKey, Timers
from millbeck.kernel.errors import ApiError

logger = logging.getLogger(__name__)

GroupResult = Result[GroupRecord, Any]

OFFLOAD_SIZE_MIN = 2000
"""If members and partitions together are at least this many, the target is computed off the event loop."""
HASTY_INTERVAL_MS = 1000
"""Heartbeat interval of a member that waits for a target or for partitions."""
REGEX_REFRESH_PAUSE_MS = 10_000
"""Minimum interval between two resolutions of a group's regular expressions because topics changed."""
RETRY_MS = 500


class ConsumerGroupLogic:
    def __init__(
        self,
        groups: Mapping[str, object],
        timers: Timers[GroupRecord],
        options: ConsumerProtocolOptions,
        cluster: ClusterView,
        background: BackgroundExecutor,
        counters: Counters,
        downgrade: Callable[[ConsumerGroup, ConsumerMember, int], GroupResult | None],
        assignors: Mapping[str, Assignor] = ASSIGNORS,
    ) -> None:
        """``downgrade(group, leaving, now_ms)`` converts a group with only classic members left into a classic
        group."""
        self._groups = groups
        self._timers = timers
        self._background = background
        self._downgrade = downgrade
        self._assignors = assignors
        self.counters = counters
        self.options = options
        self.cluster = cluster

    def find(self, group_id: str) -> ConsumerGroup | None:
        group = self._groups.get(group_id)
        return group if isinstance(group, ConsumerGroup) else None

    # Steps of one operation

    def update_epoch(self, draft: Draft, *, is_changed: bool) -> None:
        """Bump the group epoch if the members, or the metadata of subscribed topics, have changed."""
        group = draft.group
        if not is_changed and group.seen_version == self.cluster.version:
            return
        metadata_hash = self.cluster.metadata_hash(draft.subscribed_names())
        if is_changed or metadata_hash != draft.metadata_hash:
            draft.raise_epoch(metadata_hash)
            self.counters.consumer_rebalances += 1
        group.seen_version = self.cluster.version

    def update_target(self, draft: Draft, now_ms: int) -> None:
        """Compute the target assignment for the group epoch, now or when the assignment interval has passed."""
        if draft.epoch <= draft.assignment_epoch or draft.is_empty:
            return
        group = draft.group
        wait_ms = 0
        # The interval limits repeated computations; it does not apply to a group without a target or without members.
        if group.assigned_at_ms is not None and draft.assignment_epoch > 0 and group.members:
            interval_ms = self.cluster.settings_of(group.group_id).assignment_interval_ms
            wait_ms = group.assigned_at_ms + interval_ms - now_ms
        if wait_ms > 0:
            self._schedule_target(group.group_id, wait_ms)
            return
        self._compute_target(draft, now_ms)

    def _schedule_target(self, group_id: str, wait_ms: int) -> None:
        key = _assign_key(group_id)
        if key not in self._timers:
            self._timers.schedule(key, wait_ms, lambda now_ms: self._target_due(group_id, now_ms), retry_ms=RETRY_MS)

    def _target_due(self, group_id: str, now_ms: int) -> GroupResult:
        group = self.find(group_id)
        if group is None or group.epoch <= group.assignment_epoch:
            return Result()
        draft = Draft(group)
        if not draft.is_empty:
            self._compute_target(draft, now_ms)
        return Result(records=draft.records)

    def _compute_target(self, draft: Draft, now_ms: int) -> None:
        group = draft.group
        problem = build_group_spec(draft, self.cluster)
        # Members whose assignor is no longer enabled have no vote.
        assignor = self._assignors[preferred_assignor(draft.members().values(), self.options.assignor_names)]
        group.assigned_at_ms = now_ms
        is_small = problem.size < OFFLOAD_SIZE_MIN
        # Compute the first target synchronously: a member cannot get an epoch that has no target.
        if not self.options.assignor_offload_enabled or is_small or draft.assignment_epoch == 0:
            draft.store_targets(problem.epoch, assignor(problem.members, problem.topics))
            return
        if group.is_assigning:
            return
        group.is_assigning = True
        group_id = group.group_id

        def failed() -> None:
            group.is_assigning = False
            self._schedule_target(group_id, RETRY_MS)

        self._background.run(
            lambda: assignor(problem.members, problem.topics),
            lambda solution, later_ms: self._target_computed(group, problem, solution),
            failed,
        )

    def _target_computed(self, group: ConsumerGroup, problem: AssignmentInput, solution: Solution) -> GroupResult:
        group.is_assigning = False
        if self.find(group.group_id) is not group or problem.epoch <= group.assignment_epoch:
            return Result()
        draft = Draft(group)
        # Members that have left since are skipped; members that have joined since are part of the next target.
        draft.store_targets(problem.epoch, {each: part for each, part in solution.items() if each in group.members})
        if draft.epoch > problem.epoch:
            self._schedule_target(group.group_id, self.cluster.settings_of(group.group_id).assignment_interval_ms)
        return Result(records=draft.records)

    def reconcile(self, draft: Draft, member: ConsumerMember, owned: Assignment | None) -> ConsumerMember:
        """Move the member one step toward its target assignment."""
        group = draft.group
        if member.is_reconciled_to(draft.assignment_epoch):
            return member
        updated = reconcile(
            member,
            target_epoch=draft.assignment_epoch,
            target=draft.target_of(member.member_id),
            owner_epoch=group.owner_epoch,
            owned=owned,
        )
        if updated is not member:
            draft.store_current(updated)
            if not updated.uses_classic_protocol:
                self._watch_revocation(group.group_id, updated)
        return updated

    def heartbeat_interval_ms(self, draft: Draft, member: ConsumerMember) -> int:
        interval_ms = self.cluster.settings_of(draft.group.group_id).heartbeat_interval_ms
        is_waiting = (
            draft.epoch > draft.assignment_epoch
            or member.state is MemberState.UNRELEASED_PARTITIONS
            or (member.regex is not None and draft.resolved(member.regex) is None)
        )
        return min(interval_ms, HASTY_INTERVAL_MS) if is_waiting else interval_ms

    # Regular expressions

    def resolve_regexes(self, draft: Draft, now_ms: int) -> None:
        """Resolve regular expressions that have not been resolved yet, or all of them if topics have changed since."""
        group = draft.group
        wanted = draft.regexes()
        if not wanted or group.is_resolving:
            return
        version = self.cluster.version
        is_new = any(draft.resolved(regex) is None for regex in wanted)
        since_ms = now_ms - group.resolved_at_ms if group.resolved_at_ms is not None else REGEX_REFRESH_PAUSE_MS
        has_changed = group.resolved_version != version and since_ms >= REGEX_REFRESH_PAUSE_MS
        if not (is_new or has_changed or since_ms >= self.options.regex_refresh_interval_ms):
            return
        names = self.cluster.topic_names()
        group.is_resolving = True

        def failed() -> None:
            group.is_resolving = False
            group.resolved_at_ms = None
            group.resolved_version = -1

        self._background.run(
            lambda: regular_expressions.matching(wanted, names),
            lambda found, later_ms: self._regexes_resolved(group.group_id, found, version, later_ms),
            failed,
        )

    def _regexes_resolved(
        self, group_id: str, found: Mapping[str, tuple[str, ...]], version: int, now_ms: int
    ) -> GroupResult:
        group = self.find(group_id)
        if group is None:
            return Result()
        group.is_resolving = False
        group.resolved_at_ms = now_ms
        group.resolved_version = version
        draft = Draft(group)
        is_changed = False
        for regex, topics in found.items():
            known = group.regexes.get(regex)
            if regex in group.regex_counts and (known is None or known.topics != topics):
                draft.store_regex(regex, ResolvedRegex(topics, version, now_ms))
                is_changed = is_changed or topics != (() if known is None else known.topics)
        for regex in group.regexes:
            if regex not in group.regex_counts:
                draft.remove_regex(regex)
        if is_changed:
            self.update_epoch(draft, is_changed=True)
            self.update_target(draft, now_ms)
        return Result(records=draft.records)

    # Members that leave or are fenced

    def fence(self, group: ConsumerGroup, member: ConsumerMember, now_ms: int, response: Any = None) -> GroupResult:
        """Remove a member and free its partitions. If only classic members remain, downgrade the group."""
        downgraded = self._downgrade(group, member, now_ms)
        if downgraded is not None:
            return Result(
                records=downgraded.records, response=response, on_committed=downgraded.on_committed, is_replayed=True
            )
        draft = Draft(group)
        self.remove(draft, [member], now_ms)
        return Result(
            records=draft.records,
            response=response,
            on_committed=lambda _: self.forget(group, member.member_id),
            on_failed=self.on_write_reverted(group.group_id),
        )

    def remove(self, draft: Draft, members: list[ConsumerMember], now_ms: int) -> None:
        for member in members:
            draft.remove_member(member.member_id)
        self.update_epoch(draft, is_changed=True)
        self.update_target(draft, now_ms)

    def forget(self, group: ConsumerGroup, member_id: str) -> None:
        """Cancel the timers of a removed member, unless it has rejoined in the meantime."""
        current = self.find(group.group_id)
        if current is None or member_id not in current.members:
            for kind in ("session", "rebalance", "join", "sync"):
                self._timers.cancel(_member_key(kind, group.group_id, member_id))

    # Timers

    def keep_session(self, group_id: str, member_id: str, timeout_ms: int | None = None) -> None:
        """Restart the member's session timeout."""
        if timeout_ms is None:
            timeout_ms = self.cluster.settings_of(group_id).session_timeout_ms
        self._watch("session", group_id, member_id, timeout_ms, lambda _: True)

    def _watch_revocation(self, group_id: str, member: ConsumerMember) -> None:
        if member.state is not MemberState.UNREVOKED_PARTITIONS:
            self._timers.cancel(_member_key("rebalance", group_id, member.member_id))
            return
        epoch = member.epoch
        self._watch(
            "rebalance",
            group_id,
            member.member_id,
            member.rebalance_timeout_ms,
            lambda late: late.epoch == epoch and late.state is MemberState.UNREVOKED_PARTITIONS,
        )

    def schedule_rejoin_timeout(self, group_id: str, member: ConsumerMember) -> None:
        """Start the rejoin timeout of a classic member; a repeated request to rejoin does not restart it."""
        if _member_key("join", group_id, member.member_id) not in self._timers:
            self._watch("join", group_id, member.member_id, member.rebalance_timeout_ms, lambda _: True)

    def joined(self, group_id: str, member: ConsumerMember) -> None:
        """Start the timeout for the SyncGroup of a classic member that has rejoined."""
        assert member.classic is not None
        self._timers.cancel(_member_key("join", group_id, member.member_id))
        self.keep_session(group_id, member.member_id, member.classic.session_timeout_ms)
        self._watch("sync", group_id, member.member_id, member.rebalance_timeout_ms, lambda _: True)

    def synced(self, group_id: str, member: ConsumerMember) -> None:
        assert member.classic is not None
        self._timers.cancel(_member_key("sync", group_id, member.member_id))
        self.keep_session(group_id, member.member_id, member.classic.session_timeout_ms)

    def _watch(
        self, kind: str, group_id: str, member_id: str, timeout_ms: int, is_late: Callable[[ConsumerMember], bool]
    ) -> None:
        self._timers.schedule(
            _member_key(kind, group_id, member_id),
            timeout_ms,
            lambda now_ms: self._expire(kind, group_id, member_id, is_late, now_ms),
            retry_ms=RETRY_MS,
        )

    def _expire(
        self, kind: str, group_id: str, member_id: str, is_late: Callable[[ConsumerMember], bool], now_ms: int
    ) -> GroupResult:
        group = self.find(group_id)
        member = None if group is None else group.members.get(member_id)
        if group is None or member is None or not is_late(member):
            return Result()
        logger.info("fencing member %s of group %s: its %s timeout expired", member_id, group_id, kind)
        self.counters.expired_members += 1
        return self.fence(group, member, now_ms)

    def resume(self, group: ConsumerGroup) -> None:
        """Start the timers of a group that was just loaded or upgraded to the consumer protocol."""
        for member in group.members.values():
            timeout_ms = None if member.classic is None else member.classic.session_timeout_ms
            self.keep_session(group.group_id, member.member_id, timeout_ms)
            if member.classic is None:
                self._watch_revocation(group.group_id, member)
        if group.epoch > group.assignment_epoch and group.members:
            self._schedule_target(group.group_id, 0)

    def on_write_reverted(self, group_id: str) -> Callable[[ApiError, int], None]:
        """Callback for a failed write: makes the next heartbeat compare the topics again."""

        def failed(error: ApiError, now_ms: int) -> None:
            group = self.find(group_id)
            if group is not None:
                group.seen_version = -1
                group.assigned_at_ms = None

        return failed


def _member_key(kind: str, group_id: str, member_id: str) -> TimerKey:
    return (f"consumer-{kind}", group_id, member_id)


def _assign_key(group_id: str) -> TimerKey:
    return ("consumer-assign", group_id)
