"""How a member moves, heartbeat by heartbeat, from what it has to what the target says it should have.

First it gives up what is no longer its own, at its old epoch: until it has said that it did, or is fenced, those
partitions are nobody else's. Then it takes the target's epoch and gets what is free; partitions that another member
still holds follow when that one has let go. So a partition never has two owners, and a member whose target is what it
has never stops.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from millbeck.coordinator.group.consumer import assignment
from millbeck.coordinator.group.consumer.assignment import Assignment
from millbeck.coordinator.group.consumer.member import ConsumerMember, MemberState
from millbeck.kernel import errors
from millbeck.kernel.ids import Uuid

NO_OWNER = -1

OwnerEpoch = Callable[[Uuid, int], int]
"""The epoch of the member that holds a partition, `NO_OWNER` when none does."""


def reconcile(
    member: ConsumerMember, *, target_epoch: int, target: Assignment, owner_epoch: OwnerEpoch, owned: Assignment | None
) -> ConsumerMember:
    """The member's next step; itself when there is none. ``owned`` is what it says it has, None when it did not say."""
    match member.state:
        case MemberState.STABLE:
            if member.epoch == target_epoch:
                return member
            return _next(member, member.epoch, target_epoch, target, owner_epoch, owned)
        case MemberState.UNREVOKED_PARTITIONS:
            if _still_has(owned, member.revoking):
                return member
            return _next(member, member.epoch + 1, target_epoch, target, owner_epoch, owned)
        case MemberState.UNRELEASED_PARTITIONS:
            return _next(member, member.epoch, target_epoch, target, owner_epoch, owned)
        case MemberState.UNKNOWN:
            # A newer coordinator has left it in a state that this one cannot know: it has to start from nothing.
            if owned is None or owned:
                raise errors.FencedMemberEpoch(
                    "The consumer group member is in an unknown state. "
                    "The member must abandon all its partitions and rejoin."
                )
            return _next(member, target_epoch, target_epoch, target, owner_epoch, owned)


def _still_has(owned: Assignment | None, given_up: Assignment) -> bool:
    return owned is None or bool(assignment.shared(owned, given_up))


def _next(
    member: ConsumerMember,
    epoch: int,
    target_epoch: int,
    target: Assignment,
    owner_epoch: OwnerEpoch,
    owned: Assignment | None,
) -> ConsumerMember:
    kept = assignment.shared(member.assigned, target)
    revoking = assignment.without(member.assigned, kept)
    if revoking and _still_has(owned, revoking):
        return _moved(member, MemberState.UNREVOKED_PARTITIONS, epoch, kept, revoking)
    missing = assignment.without(target, kept)
    free = assignment.gathered(place for place in assignment.places_of(missing) if owner_epoch(*place) == NO_OWNER)
    has_all = assignment.count_of(free) == assignment.count_of(missing)
    state = MemberState.STABLE if has_all else MemberState.UNRELEASED_PARTITIONS
    return _moved(member, state, target_epoch, assignment.together(kept, free), assignment.NOTHING)


def _moved(
    member: ConsumerMember, state: MemberState, epoch: int, assigned: Assignment, revoking: Assignment
) -> ConsumerMember:
    if (state, epoch, assigned, revoking) == (member.state, member.epoch, member.assigned, member.revoking):
        # A member that waits on changes nothing, and is not to forget the epoch before this one.
        return member
    # What it gets now counts from now on, and what it keeps from when it got it. What it has given up and gets back is
    # new: it may not commit for the time in between.
    epochs = dict.fromkeys(assignment.places_of(assignment.without(assigned, member.assigned)), epoch)
    for place in (*assignment.places_of(assignment.shared(assigned, member.assigned)), *assignment.places_of(revoking)):
        epochs[place] = member.assignment_epochs.get(place, member.epoch)
    return replace(
        member,
        state=state,
        epoch=epoch,
        previous_epoch=member.epoch,
        assigned=assigned,
        revoking=revoking,
        assignment_epochs=epochs,
    )
