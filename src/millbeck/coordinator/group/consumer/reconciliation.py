"""Reconciles a member, heartbeat by heartbeat, from its current to its target assignment.

First the member revokes partitions that are not in its target, at its old epoch: until it confirms, or is fenced, those
partitions are not assigned to any other member. Then it moves to the target's epoch and gets the free partitions;
partitions another member still owns follow once that member has released them. So a partition never has two owners, and
a member whose target does not change never stops consuming.
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
"""The epoch of the member that owns a partition, `NO_OWNER` if it is free."""


def reconcile(
    member: ConsumerMember, *, target_epoch: int, target: Assignment, owner_epoch: OwnerEpoch, owned: Assignment | None
) -> ConsumerMember:
    """Return the member after its next step, or itself if there is none. ``owned`` is what it reports; None if
    unchanged."""
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
            # A newer version wrote a state that this version does not know: the member has to restart without
            # partitions.
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
        # A member that keeps waiting does not change, and must not lose its previous epoch.
        return member
    # Newly assigned partitions get the current epoch, and kept ones retain theirs. A partition that was revoked and is
    # assigned again counts as new: the member must not commit with an epoch in between.
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
