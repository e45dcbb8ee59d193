"""A consumer group on three nodes: members churn, coordinators die, and G1 to G5 hold.

And the harness is not blind: each mutant of the coordinator is caught.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from millbeck.coordinator.group.consumer import offset_rules, reconciliation
from millbeck.coordinator.group.consumer.coordination import ConsumerGroupLogic
from millbeck.coordinator.group.consumer.draft import Draft
from millbeck.coordinator.group.consumer.group import ConsumerGroup
from millbeck.coordinator.group.consumer.member import ConsumerMember
from millbeck.coordinator.runtime.result import Result
from millbeck.simulation.runs.groups_run import GroupsPlan, GroupsRun


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def test_groups_keep_their_promises(group_seed: int) -> None:
    plan = GroupsPlan.drawn(group_seed)
    anomalies = GroupsRun(plan).run()
    assert not anomalies, f"make sim SEED={group_seed}\n{plan}\n" + "\n".join(map(str, anomalies[:10]))


def test_a_seed_decides_everything() -> None:
    digests = []
    for _ in range(2):
        run = GroupsRun(GroupsPlan.drawn(8))
        run.run()
        digests.append(run.cluster.world.trace.digest())
    assert digests[0] == digests[1]


def revocation_is_not_awaited(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reconciliation, "_still_has", lambda owned, given_up: False)


def owners_are_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ConsumerGroup, "owner_epoch", lambda self, topic_id, partition: -1)


def epochs_of_commits_are_not_checked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(offset_rules, "check_epoch", lambda member, epoch: None)
    patch.setattr(offset_rules, "check_assignments", lambda member, request: None)


def what_is_held_counts_from_the_beginning(patch: pytest.MonkeyPatch) -> None:
    held = ConsumerMember.assignment_epoch
    patch.setattr(ConsumerMember, "assignment_epoch", lambda self, *place: held(self, *place) and 0)


def members_outlive_their_sessions(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ConsumerGroupLogic, "_expire", lambda self, *_: Result())


def targets_are_computed_once(patch: pytest.MonkeyPatch) -> None:
    update = ConsumerGroupLogic.update_target

    def first_only(self: ConsumerGroupLogic, draft: Draft, now_ms: int) -> None:
        if draft.assignment_epoch == 0:
            update(self, draft, now_ms)

    patch.setattr(ConsumerGroupLogic, "update_target", first_only)
    patch.setattr(ConsumerGroupLogic, "_schedule_target", lambda self, group_id, wait_ms: None)


def leaving_changes_no_epoch(patch: pytest.MonkeyPatch) -> None:
    def remove(self: ConsumerGroupLogic, draft: Draft, members: list[Any], now_ms: int) -> None:
        for member in members:
            draft.remove_member(member.member_id)

    patch.setattr(ConsumerGroupLogic, "remove", remove)


def topics_are_looked_at_once(patch: pytest.MonkeyPatch) -> None:
    update = ConsumerGroupLogic.update_epoch

    def blind(self: ConsumerGroupLogic, draft: Draft, *, is_changed: bool) -> None:
        draft.group.seen_version = self.cluster.version
        update(self, draft, is_changed=is_changed)

    patch.setattr(ConsumerGroupLogic, "update_epoch", blind)


MUTANTS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], int, str]] = {
    f"{each.__name__}: {kind}": (each, seed, kind)
    for each, seed, kind in (
        (revocation_is_not_awaited, 1, "two owners"),
        (owners_are_not_looked_at, 1, "two owners"),
        (epochs_of_commits_are_not_checked, 1, "stale commit"),
        (epochs_of_commits_are_not_checked, 4, "lost commit"),
        (what_is_held_counts_from_the_beginning, 1, "stale commit"),
        (members_outlive_their_sessions, 4, "never stable"),
        (targets_are_computed_once, 1, "never stable"),
        (leaving_changes_no_epoch, 6, "not covered"),
        (topics_are_looked_at_once, 17, "not covered"),
    )
}
"""Each with a seed that shows it. That a heartbeat's epoch is not checked shows only when an old request comes late,
which the tests of the rule itself do."""


@pytest.mark.parametrize(("mutate", "seed_of_it", "kind"), MUTANTS.values(), ids=MUTANTS.keys())
def test_a_mutant_is_caught(
    monkeypatch: pytest.MonkeyPatch, mutate: Callable[[pytest.MonkeyPatch], None], seed_of_it: int, kind: str
) -> None:
    mutate(monkeypatch)
    found = [anomaly.kind for anomaly in GroupsRun(GroupsPlan.drawn(seed_of_it)).run()]
    assert kind in found
