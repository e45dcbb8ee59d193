"""One step of a member toward its target: tasks are given up first, and free ones are taken."""

from __future__ import annotations

import pytest

from millbeck.coordinator.group.streams.group import Holders
from millbeck.coordinator.group.streams.member import MemberState, StreamsMember
from millbeck.coordinator.group.streams.reconciliation import reconcile
from millbeck.coordinator.group.streams.tasks import TaskSet
from millbeck.kernel.errors import FencedMemberEpoch

NOBODY = Holders({}, {})
A = ("0", 0)


def tasks(*active: int, standby: tuple[int, ...] = ()) -> TaskSet:
    return TaskSet({"0": active} if active else {}, {"0": standby} if standby else {})


def member(assigned: TaskSet | None = None, **fields: object) -> StreamsMember:
    details: dict[str, object] = {"process_id": "p", "epoch": 4, "previous_epoch": 3} | fields
    return StreamsMember(member_id="m", assigned=assigned or TaskSet(), **details)  # type: ignore[arg-type]


def step(
    found: StreamsMember, target: TaskSet, *, holders: Holders = NOBODY, owned: TaskSet | None = None, epoch: int = 7
) -> StreamsMember:
    return reconcile(found, target_epoch=epoch, target=target, holders=holders, owned=owned)


def test_free_tasks_are_taken_at_the_targets_epoch() -> None:
    after = step(member(tasks(1), active_epochs={("0", 1): 2}), tasks(0, 1, standby=(2,)), owned=tasks(1))
    assert (after.state, after.epoch, after.previous_epoch) == (MemberState.STABLE, 7, 4)
    assert after.assigned == tasks(0, 1, standby=(2,))
    assert after.active_epochs == {("0", 0): 7, ("0", 1): 2}


TAKEN = {
    "active at another member": Holders({A: "q"}, {}),
    "a standby of its own process": Holders({}, {A: frozenset({"p"})}),
}


@pytest.mark.parametrize("holders", TAKEN.values(), ids=TAKEN)
def test_an_active_task_that_is_not_free_is_waited_for(holders: Holders) -> None:
    after = step(member(), tasks(0, 1), holders=holders, owned=TaskSet())
    assert (after.state, after.epoch, after.assigned) == (MemberState.UNRELEASED_TASKS, 7, tasks(1))
    assert step(after, tasks(0, 1), owned=tasks(1)).assigned == tasks(0, 1)


def test_a_standby_does_not_wait_for_other_processes() -> None:
    holders = Holders({A: "q"}, {A: frozenset({"r"})})
    assert step(member(), tasks(standby=(0,)), holders=holders, owned=TaskSet()).state is MemberState.STABLE
    assert step(member(), tasks(0), holders=Holders({}, {A: frozenset({"r"})}), owned=TaskSet()).assigned == tasks(0)


@pytest.mark.parametrize("holders", [Holders({A: "p"}, {}), Holders({}, {A: frozenset({"p"})})])
def test_a_standby_waits_for_its_own_process(holders: Holders) -> None:
    after = step(member(), tasks(standby=(0,)), holders=holders, owned=TaskSet())
    assert (after.state, after.assigned) == (MemberState.UNRELEASED_TASKS, TaskSet())


def test_tasks_are_given_up_at_the_old_epoch_until_it_is_confirmed() -> None:
    told = step(member(tasks(0, 1)), tasks(1, 2), owned=tasks(0, 1))
    assert (told.state, told.epoch, told.assigned, told.revoking) == (
        MemberState.UNREVOKED_TASKS,
        4,
        tasks(1),
        tasks(0),
    )
    for owned in (None, tasks(0, 1)):
        assert step(told, tasks(1, 2), owned=owned) is told
    done = step(told, tasks(1, 2), owned=tasks(1))
    assert (done.state, done.epoch, done.assigned, done.revoking) == (
        MemberState.STABLE,
        7,
        tasks(1, 2),
        TaskSet(),
    )


def test_a_newer_target_may_take_more_before_the_member_is_there() -> None:
    told = step(member(tasks(0, 1)), tasks(1), owned=tasks(0, 1))
    more = step(told, tasks(2), owned=tasks(1), epoch=9)
    assert (more.state, more.epoch, more.previous_epoch, more.revoking) == (
        MemberState.UNREVOKED_TASKS,
        5,
        4,
        tasks(1),
    )


def test_standbys_are_given_up_too() -> None:
    told = step(member(tasks(standby=(0,))), tasks(0), owned=tasks(standby=(0,)))
    assert (told.state, told.revoking) == (MemberState.UNREVOKED_TASKS, tasks(standby=(0,)))


def test_who_is_there_stays_as_it_is() -> None:
    found = member(tasks(0), epoch=7)
    assert step(found, tasks(1)) is found
    waiting = step(member(), tasks(0), holders=TAKEN["active at another member"], owned=TaskSet())
    assert step(waiting, tasks(0), holders=TAKEN["active at another member"], owned=TaskSet()) is waiting


def test_a_state_that_is_not_known_starts_over_without_tasks() -> None:
    found = member(tasks(0), state=MemberState.UNKNOWN)
    for owned in (None, tasks(0)):
        with pytest.raises(FencedMemberEpoch):
            step(found, tasks(0), owned=owned)
    assert step(found, tasks(0), owned=TaskSet()).epoch == 7
