"""Reconciles a member, heartbeat by heartbeat, from its current to its target tasks.

First the member revokes tasks that are not in its target, at its old epoch. Then it moves to the target's epoch and
gets the tasks that are free. An active task is free when no member has it as active and the member's own process has no
copy of it; a standby task when the member's own process does not have the task at all: the threads of a process share
one state directory. So a task never has two owners, and no process has a standby task beside its active one.
"""

from __future__ import annotations

from dataclasses import replace

from millbeck.coordinator.group.consumer import assignment
from millbeck.coordinator.group.streams.group import NOBODY, Holders
from millbeck.coordinator.group.streams.member import MemberState, StreamsMember
from millbeck.coordinator.group.streams.tasks import NO_TASKS, Task, TaskSet
from millbeck.kernel import errors


def reconcile(
    member: StreamsMember, *, target_epoch: int, target: TaskSet, holders: Holders, owned: TaskSet | None
) -> StreamsMember:
    """Return the member after its next step, or itself if there is none. ``owned`` is what it reports; None if
    unchanged."""
    if member.is_reconciled_to(target_epoch):
        return member
    epoch = member.epoch
    match member.state:
        case MemberState.UNREVOKED_TASKS:
            if _still_has(owned, member.revoking):
                return member
            epoch += 1
        case MemberState.UNKNOWN:
            # A newer version wrote a state that this version does not know: the member has to restart without tasks.
            if owned is None or owned:
                raise errors.FencedMemberEpoch(
                    "The streams group member is in an unknown state. The member must abandon all its tasks and rejoin."
                )
            epoch = target_epoch
    return _next(member, epoch, target_epoch, target, holders, owned)


def _still_has(owned: TaskSet | None, given_up: TaskSet) -> bool:
    return owned is None or owned.has_any_of(given_up)


def _next(
    member: StreamsMember, epoch: int, target_epoch: int, target: TaskSet, holders: Holders, owned: TaskSet | None
) -> StreamsMember:
    roles = list(zip(member.assigned.roles, target.roles, strict=True))
    kept = TaskSet(*(assignment.shared(mine, wanted) for mine, wanted in roles))
    revoking = TaskSet(*(assignment.without(mine, wanted) for mine, wanted in roles))
    if revoking and _still_has(owned, revoking):
        return _moved(member, MemberState.UNREVOKED_TASKS, epoch, kept, revoking, target_epoch)
    missing = TaskSet(*(assignment.without(wanted, mine) for mine, wanted in roles))
    process_id = member.process_id

    def may_start(task: Task) -> bool:
        return holders.active.get(task) is None and process_id not in holders.copies.get(task, NOBODY)

    def may_copy(task: Task) -> bool:
        return holders.active.get(task) != process_id and process_id not in holders.copies.get(task, NOBODY)

    free = TaskSet(
        assignment.gathered(task for task in assignment.places_of(missing.active) if may_start(task)),
        assignment.gathered(task for task in assignment.places_of(missing.standby) if may_copy(task)),
        assignment.gathered(task for task in assignment.places_of(missing.warmup) if may_copy(task)),
    )
    state = MemberState.STABLE if free == missing else MemberState.UNRELEASED_TASKS
    assigned = TaskSet(*(assignment.together(one, other) for one, other in zip(kept.roles, free.roles, strict=True)))
    return _moved(member, state, target_epoch, assigned, NO_TASKS, target_epoch)


def _moved(
    member: StreamsMember, state: MemberState, epoch: int, assigned: TaskSet, revoking: TaskSet, target_epoch: int
) -> StreamsMember:
    if (state, epoch, assigned, revoking) == (member.state, member.epoch, member.assigned, member.revoking):
        # A member that keeps waiting does not change, and must not lose its previous epoch.
        return member
    # New tasks get the target's epoch, and kept ones retain theirs. A task that was revoked and is assigned
    # again counts as new: the member must not commit with an epoch in between.
    added = assignment.without(assigned.active, member.assigned.active)
    epochs = dict.fromkeys(assignment.places_of(added), target_epoch)
    for tasks in (assignment.without(assigned.active, added), revoking.active):
        for task in assignment.places_of(tasks):
            epochs[task] = member.active_epochs.get(task, member.epoch)
    return replace(
        member,
        state=state,
        epoch=epoch,
        previous_epoch=member.epoch,
        assigned=assigned,
        revoking=revoking,
        active_epochs=epochs,
    )
