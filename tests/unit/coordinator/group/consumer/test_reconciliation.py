from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from millbeck.coordinator.group.consumer.member import ConsumerMember, MemberState
from millbeck.coordinator.group.consumer.reconciliation import NO_OWNER, reconcile
from millbeck.kernel.errors import FencedMemberEpoch

T = b"t" * 16
STABLE, UNREVOKED, UNRELEASED = (
    MemberState.STABLE,
    MemberState.UNREVOKED_PARTITIONS,
    MemberState.UNRELEASED_PARTITIONS,
)


def member(epoch: int, *assigned: int, state: MemberState = STABLE, revoking: tuple[int, ...] = ()) -> ConsumerMember:
    return ConsumerMember(
        member_id="m",
        epoch=epoch,
        previous_epoch=epoch - 1,
        state=state,
        assigned={T: assigned} if assigned else {},
        revoking={T: revoking} if revoking else {},
    )


def step(
    before: ConsumerMember,
    target_epoch: int,
    *target: int,
    held: tuple[int, ...] = (),
    owned: tuple[int, ...] | None = None,
) -> ConsumerMember:
    return reconcile(
        before,
        target_epoch=target_epoch,
        target={T: target} if target else {},
        owner_epoch=lambda _, partition: 1 if partition in held else NO_OWNER,
        owned=None if owned is None else {T: owned},
    )


CASES: dict[str, tuple[ConsumerMember, dict[str, Any], ConsumerMember]] = {
    "gets what is free": (member(0), {"target": (1, 2)}, member(5, 1, 2)),
    "waits for what is held": (
        member(0),
        {"target": (1, 2), "held": (2,)},
        member(5, 1, state=UNRELEASED),
    ),
    "waits with nothing": (member(0), {"target": (2,), "held": (2,)}, member(5, state=UNRELEASED)),
    "gets the rest when it is free": (member(5, 1, state=UNRELEASED), {"target": (1, 2)}, member(5, 1, 2)),
    "is asked to give up before it gets more": (
        member(4, 1, 2),
        {"target": (2, 3)},
        member(4, 2, state=UNREVOKED, revoking=(1,)),
    ),
    "does not move while it has what it should give up": (
        member(4, 2, state=UNREVOKED, revoking=(1,)),
        {"target": (2, 3), "owned": (1, 2)},
        member(4, 2, state=UNREVOKED, revoking=(1,)),
    ),
    "does not move while it does not say what it has": (
        member(4, 2, state=UNREVOKED, revoking=(1,)),
        {"target": (2, 3)},
        member(4, 2, state=UNREVOKED, revoking=(1,)),
    ),
    "moves on when it has given up": (
        member(4, 2, state=UNREVOKED, revoking=(1,)),
        {"target": (2, 3), "owned": (2,)},
        member(5, 2, 3),
    ),
    "is asked again when the target has moved on": (
        member(3, 2, 4, state=UNREVOKED, revoking=(1,)),
        {"target": (2,), "owned": (2, 4)},
        member(4, 2, state=UNREVOKED, revoking=(4,)),
    ),
    "need not be asked for what it has not": (member(4, 1, 2), {"target": (2,), "owned": (2,)}, member(5, 2)),
    "takes the epoch of a target that changes nothing": (member(4, 1), {"target": (1,)}, member(5, 1)),
    "stays when it is there": (member(5, 1), {"target": (1,)}, member(5, 1)),
}


@pytest.mark.parametrize(("before", "given", "after"), CASES.values(), ids=CASES.keys())
def test_a_member(before: ConsumerMember, given: dict[str, Any], after: ConsumerMember) -> None:
    found = step(before, 5, *given["target"], held=given.get("held", ()), owned=given.get("owned"))
    assert replace(found, previous_epoch=0, assignment_epochs={}) == replace(after, previous_epoch=0)
    if found != before:
        assert found.previous_epoch == before.epoch


def test_a_member_in_an_unknown_state_starts_from_nothing() -> None:
    unknown = member(3, state=MemberState.UNKNOWN)
    with pytest.raises(FencedMemberEpoch):
        step(unknown, 5, 1, owned=(1,))
    with pytest.raises(FencedMemberEpoch):
        step(unknown, 5, 1)
    found = reconcile(unknown, target_epoch=5, target={T: (1,)}, owner_epoch=lambda *_: NO_OWNER, owned={})
    assert (found.state, found.epoch, found.assigned) == (STABLE, 5, {T: (1,)})


def test_what_a_member_keeps_counts_from_when_it_got_it() -> None:
    first = step(member(0), 3, 1, 2)
    assert dict(first.assignment_epochs) == {(T, 1): 3, (T, 2): 3}
    asked = step(first, 5, 2, 4)
    assert (asked.epoch, dict(asked.assignment_epochs)) == (3, {(T, 1): 3, (T, 2): 3})
    assert [asked.assignment_epoch(T, each) for each in (1, 2, 4)] == [3, 3, None]
    moved = step(asked, 5, 2, 4, owned=(2,))
    assert (moved.epoch, dict(moved.assignment_epochs)) == (5, {(T, 2): 3, (T, 4): 5})
    # A record from before there were such epochs: what it says counts from the member's own.
    old = replace(moved, assignment_epochs={})
    assert (old.assignment_epoch(T, 2), step(old, 6, 2, 4, 7).assignment_epochs[T, 2]) == (5, 5)
    assert old.with_current(moved.current_value()).assignment_epochs == moved.assignment_epochs


def test_what_a_member_has_given_up_and_gets_back_is_new() -> None:
    first = step(member(0), 3, 1, 2)
    asked = step(first, 5, 2)
    assert (asked.revoking, asked.assignment_epoch(T, 1)) == ({T: (1,)}, 3)
    again = step(asked, 6, 1, 2, owned=(2,))
    assert dict(again.assignment_epochs) == {(T, 1): 6, (T, 2): 3}
