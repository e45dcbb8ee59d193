"""A streams group on three nodes: threads churn, coordinators die, and G1 to G6 hold.

And the harness is not blind: each mutant of the coordinator is caught.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from millbeck.coordinator.group.streams import membership, offset_rules, reconciliation
from millbeck.coordinator.group.streams.assignor import AssignmentInput, Solution, assign
from millbeck.coordinator.group.streams.draft import Draft
from millbeck.coordinator.group.streams.group import FIRST_EPOCH, Holders, StreamsGroup
from millbeck.coordinator.group.streams.member import StreamsMember
from millbeck.coordinator.group.streams.membership import StreamsGroupMembership
from millbeck.coordinator.runtime.result import Result
from millbeck.server.requests.handlers import groups_streams
from millbeck.simulation.runs.streams_run import StreamsPlan, StreamsRun


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def test_streams_groups_keep_their_promises(streams_seed: int) -> None:
    plan = StreamsPlan.drawn(streams_seed)
    anomalies = StreamsRun(plan).run()
    assert not anomalies, f"make sim SEED={streams_seed}\n{plan}\n" + "\n".join(map(str, anomalies[:10]))


def test_a_seed_decides_everything() -> None:
    digests = []
    for _ in range(2):
        run = StreamsRun(StreamsPlan.drawn(1))
        run.run()
        digests.append(run.cluster.world.trace.digest())
    assert digests[0] == digests[1]


def revocation_is_not_awaited(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reconciliation, "_still_has", lambda owned, given_up: False)


def owners_are_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StreamsGroup, "holders", Holders({}, {}))


def threads_of_the_process_are_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    holders = StreamsGroup.__dict__["holders"].func
    patch.setattr(StreamsGroup, "holders", property(lambda self: Holders(holders(self).active, {})))


def the_assignor_does_not_know_processes(patch: pytest.MonkeyPatch) -> None:
    def blind(problem: AssignmentInput) -> Solution:
        members = [each._replace(process_id=each.member_id) for each in problem.members]
        return assign(replace(problem, members=members))

    patch.setattr(membership, "assign", blind)


def epochs_of_commits_are_not_checked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(offset_rules, "validate_commit", lambda group, request, version: None)


def what_is_held_counts_from_the_beginning(patch: pytest.MonkeyPatch) -> None:
    held = StreamsMember.active_epoch
    patch.setattr(StreamsMember, "active_epoch", lambda self, task: held(self, task) and 0)


def members_outlive_their_sessions(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StreamsGroupMembership, "_expire", lambda self, *_: Result())


def targets_are_computed_once(patch: pytest.MonkeyPatch) -> None:
    update = StreamsGroupMembership._update_target

    def first_only(self: StreamsGroupMembership, draft: Draft, soft: Any, now_ms: int) -> Any:
        return update(self, draft, soft, now_ms) if draft.group.assignment_epoch == FIRST_EPOCH else []

    patch.setattr(StreamsGroupMembership, "_update_target", first_only)


def leaving_changes_no_epoch(patch: pytest.MonkeyPatch) -> None:
    def without(self: StreamsGroupMembership, group: StreamsGroup, member_id: str, answer: Any = None) -> Any:
        draft = Draft(group)
        draft.remove_member(member_id)
        return Result(records=draft.records, response=answer)

    patch.setattr(StreamsGroupMembership, "_without", without)


def topics_are_looked_at_once(patch: pytest.MonkeyPatch) -> None:
    configure = StreamsGroupMembership._configure

    def blind(self: StreamsGroupMembership, draft: Draft, soft: Any, topology: Any, *, is_changed: bool) -> bool:
        if soft.configured is not None:
            return is_changed
        return configure(self, draft, soft, topology, is_changed=is_changed)

    patch.setattr(StreamsGroupMembership, "_configure", blind)


def settings_are_read_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StreamsGroupMembership, "_settings", lambda self, group_id: self._cluster._default_streams)


def internal_topics_are_not_created(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(groups_streams, "_create_topics", lambda call, group_id, answered: None)


def a_new_coordinator_begins_at_the_first_epoch(patch: pytest.MonkeyPatch) -> None:
    raise_epoch = Draft.raise_epoch

    def forgetful(self: Draft, **changes: Any) -> None:
        if self.group.epoch > 5:
            self.group = replace(self.group, epoch=FIRST_EPOCH)
        raise_epoch(self, **changes)

    patch.setattr(Draft, "raise_epoch", forgetful)


MUTANTS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], int, str]] = {
    f"{each.__name__}: {kind}": (each, seed, kind)
    for each, seed, kind in (
        (revocation_is_not_awaited, 2, "two owners"),
        (owners_are_not_looked_at, 2, "two owners"),
        (threads_of_the_process_are_not_looked_at, 6, "twice in a process"),
        (the_assignor_does_not_know_processes, 12, "never stable"),
        (epochs_of_commits_are_not_checked, 0, "stale commit"),
        (epochs_of_commits_are_not_checked, 19, "lost commit"),
        (what_is_held_counts_from_the_beginning, 6, "stale commit"),
        (members_outlive_their_sessions, 27, "never stable"),
        (targets_are_computed_once, 8, "never stable"),
        (leaving_changes_no_epoch, 27, "not covered"),
        (topics_are_looked_at_once, 1, "never stable"),
        (settings_are_read_once, 27, "not covered"),
        (internal_topics_are_not_created, 1, "never stable"),
        (a_new_coordinator_begins_at_the_first_epoch, 2, "epoch went back"),
    )
}
"""Each with a seed that shows it."""


@pytest.mark.parametrize(("mutate", "seed_of_it", "kind"), MUTANTS.values(), ids=MUTANTS.keys())
def test_a_mutant_is_caught(
    monkeypatch: pytest.MonkeyPatch, mutate: Callable[[pytest.MonkeyPatch], None], seed_of_it: int, kind: str
) -> None:
    mutate(monkeypatch)
    found = [anomaly.kind for anomaly in StreamsRun(StreamsPlan.drawn(seed_of_it)).run()]
    assert kind in found
