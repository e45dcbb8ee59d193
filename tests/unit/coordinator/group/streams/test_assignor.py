"""The ``sticky`` assignor: everything assigned, balanced, few moves, no process with a task twice."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence

import pytest

from millbeck.coordinator.group.consumer.assignment import places_of
from millbeck.coordinator.group.streams.assignor import (
    AssignmentInput,
    MemberSpecification,
    Solution,
    SubtopologySpecification,
    assign,
)
from millbeck.coordinator.group.streams.tasks import TaskSet

STATEFUL = SubtopologySpecification(4, is_stateful=True)


def solved(
    members: Mapping[str, str] | Sequence[str],
    subtopologies: Mapping[str, SubtopologySpecification],
    *,
    standbys: int = 0,
    before: Solution | None = None,
) -> Solution:
    """``members`` with their processes; a sequence for members that are each their own process."""
    processes = members if isinstance(members, Mapping) else {each: each for each in members}
    return assign(
        AssignmentInput(
            epoch=1,
            members=[
                MemberSpecification(each, process, (before or {}).get(each, TaskSet()))
                for each, process in processes.items()
            ],
            subtopologies=subtopologies,
            standby_count=standbys,
        )
    )


def test_tasks_are_spread_over_members() -> None:
    found = solved("ab", {"0": STATEFUL, "1": SubtopologySpecification(2, is_stateful=False)})
    assert sorted(task for each in found.values() for task in places_of(each.active)) == [
        *(("0", index) for index in range(4)),
        *(("1", index) for index in range(2)),
    ]
    assert {member: sum(1 for _ in places_of(each.active)) for member, each in found.items()} == {"a": 3, "b": 3}


def test_nothing_moves_when_nothing_changes() -> None:
    before = solved("abc", {"0": STATEFUL, "1": STATEFUL}, standbys=1)
    assert solved("abc", {"0": STATEFUL, "1": STATEFUL}, standbys=1, before=before) == before


def test_a_new_member_takes_its_share_and_no_more() -> None:
    before = solved("ab", {"0": SubtopologySpecification(6, is_stateful=True)})
    after = solved("abc", {"0": SubtopologySpecification(6, is_stateful=True)}, before=before)
    assert [len(after[member].active["0"]) for member in "abc"] == [2, 2, 2]
    for member in "ab":
        assert set(after[member].active["0"]) < set(before[member].active["0"])


def test_a_standby_becomes_active_when_the_owner_is_gone() -> None:
    before = solved("abc", {"0": SubtopologySpecification(3, is_stateful=True)}, standbys=1)
    lost = before["a"].active["0"][0]
    heir = next(member for member in "bc" if lost in before[member].standby.get("0", ()))
    after = solved("bc", {"0": SubtopologySpecification(3, is_stateful=True)}, standbys=1, before=before)
    assert lost in after[heir].active["0"]


def test_the_owner_before_becomes_a_standby() -> None:
    before = solved("a", {"0": STATEFUL})
    after = solved("ab", {"0": STATEFUL}, standbys=1, before=before)
    moved = set(before["a"].active["0"]) - set(after["a"].active["0"])
    assert moved == set(after["b"].active["0"]) == set(after["a"].standby["0"])


def test_stateless_tasks_have_no_standbys() -> None:
    found = solved("ab", {"0": SubtopologySpecification(4, is_stateful=False)}, standbys=1)
    assert [each.standby for each in found.values()] == [{}, {}]


def test_there_are_no_more_copies_than_processes() -> None:
    found = solved({"a": "p", "b": "p", "c": "q"}, {"0": STATEFUL}, standbys=2)
    copies = Counter(task for each in found.values() for role in each.roles for task in places_of(role))
    assert set(copies.values()) == {2}


def test_while_the_topology_cannot_run_nobody_has_tasks() -> None:
    before = solved("ab", {"0": STATEFUL})
    assert solved("ab", {}, before=before) == {"a": TaskSet(), "b": TaskSet()}


@pytest.mark.parametrize("seed", range(60))
def test_every_assignment_keeps_the_rules(seed: int) -> None:
    dice = random.Random(seed)
    subtopologies = {
        str(number): SubtopologySpecification(dice.randint(1, 8), is_stateful=dice.random() < 0.6)
        for number in range(dice.randint(1, 4))
    }
    standbys = dice.randint(0, 2)
    before: Solution = {}
    for _ in range(4):
        names = dice.sample("abcdefgh", dice.randint(1, 8))
        processes = {name: dice.choice(["p", "q", "r", name]) for name in names}
        found = solved(processes, subtopologies, standbys=standbys, before=before)
        check(found, processes, subtopologies, standbys)
        before = found


def check(
    found: Solution,
    processes: Mapping[str, str],
    subtopologies: Mapping[str, SubtopologySpecification],
    standbys: int,
) -> None:
    everything = [(name, index) for name, each in subtopologies.items() for index in range(each.task_count)]
    active = Counter(task for each in found.values() for task in places_of(each.active))
    assert active == Counter(everything)
    copies: Counter[tuple[str, tuple[str, int]]] = Counter()
    for member, tasks in found.items():
        copies.update((processes[member], task) for role in tasks.roles for task in places_of(role))
    assert not copies or max(copies.values()) == 1, "a process has a task twice"
    expected = min(standbys, len(set(processes.values())) - 1)
    standby = Counter(task for each in found.values() for task in places_of(each.standby))
    assert standby == Counter(
        {task: expected for task in everything if subtopologies[task[0]].is_stateful and expected}
    )
