"""Leaders: serving fetches, advancing the high watermark, and checking that a majority still fetches.

A voter's fetch offset acknowledges that everything below is on its disk. The high watermark is the highest offset that
a majority has reached, and it advances only past the start of the leader's epoch: older records are committed together
with the epoch's first record, never by counting alone. A leader that is no longer a voter (its removal is being
committed) continues to lead without counting itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millbeck.kernel.ids import ZERO_UUID
from millbeck.raft import voter_changes
from millbeck.raft.effects import AppendControl, SendRequest, ServeFetch, ServeSnapshot
from millbeck.raft.log_view import divergence, snapshot_needed
from millbeck.raft.messages import (
    FENCED_LEADER_EPOCH,
    INVALID_REQUEST,
    NO_ERROR,
    NOT_AVAILABLE,
    NOT_LEADER,
    UNKNOWN_LEADER_EPOCH,
    BeginEpochRequest,
    FetchRequest,
    FetchResponse,
    Response,
    SnapshotRequest,
    SnapshotResponse,
)
from millbeck.raft.roles import NEVER_MS, Leading, PendingRequest, ReplicaProgress
from millbeck.raft.voters import NOT_IN_LOG, ReplicaKey, VoterSet, key_of
from millbeck.records.control import KRaftVersion, LeaderChange, Voters

if TYPE_CHECKING:
    from millbeck.raft.machine import QuorumMachine

OBSERVER_COUNT_MAX = 10_000
OBSERVER_SESSION_MS = 300_000
"""An observer that has not fetched for this long is forgotten."""


def begin(machine: QuorumMachine, grants: tuple[int, ...]) -> None:
    """Become leader: persist that, then append the epoch's first record, then announce the epoch."""
    machine.persist(epoch=machine.epoch, leader_id=machine.node_id)
    role = Leading(
        epoch_start_offset=machine.log.end_offset,
        grants=grants,
        check_quorum_deadline_ms=machine.now_ms + machine.timeouts.check_quorum_ms,
    )
    machine.role_state = role
    _follow_voters(machine, role)
    # Requests are sent before the append, which is the last effect of its step; the state they announce is persisted.
    _announce_due(machine, role)
    machine.emit(AppendControl(values=_first_values(machine, grants), epoch=machine.epoch))


def _first_values(machine: QuorumMachine, grants: tuple[int, ...]) -> tuple[LeaderChange | KRaftVersion | Voters, ...]:
    """The LeaderChange record; also the voters if they are only in the bootstrap snapshot, or if this leader's
    endpoints differ from those in the voter set."""
    history = machine.history
    voters = history.latest
    ids = voters.voter_ids()
    version = 1 if history.kraft_version >= 1 else 0
    change = LeaderChange(
        leader_id=machine.node_id,
        voters=ids,
        granting_voters=tuple(each for each in ids if each.node_id in grants),
        version=version,
    )
    own = machine.own_voter()
    has_moved = bool(own.endpoints) and own != voters.get(machine.node_id) and voters.has(machine.key)
    if version == 0 or (history.latest_offset != NOT_IN_LOG and not has_moved):
        return (change,)
    changed = voters.with_changed(own) if has_moved else voters
    return (change, KRaftVersion(kraft_version=history.kraft_version), changed.record())


def _follow_voters(machine: QuorumMachine, role: Leading) -> None:
    """After a change of the voter set, announce the epoch to new voters and forget removed ones."""
    voters = machine.history.latest
    for voter in voters.voters:
        if voter.node_id != machine.node_id and voter.node_id not in role.announcements:
            role.announcements[voter.node_id] = PendingRequest(machine.now_ms)
    for node_id in list(role.announcements):
        if voters.get(node_id) is None:
            del role.announcements[node_id]
    if voters.is_only(machine.key):
        role.check_quorum_deadline_ms = NEVER_MS
    elif role.check_quorum_deadline_ms == NEVER_MS:
        role.check_quorum_deadline_ms = machine.now_ms + machine.timeouts.check_quorum_ms


# Serving.


def on_fetch_request(machine: QuorumMachine, token: int, ask: FetchRequest) -> None:
    reply = fetch_error(machine, ask)
    role = machine.role_state
    if isinstance(role, Leading) and (reply is None or reply.error_code == NO_ERROR):
        _note_fetch(machine, role, ask, is_prefix=reply is None)
    if reply is None:
        machine.emit(ServeFetch(token=token, ask=ask))
    else:
        machine.answer(token, reply)
    if isinstance(role, Leading) and machine.role_state is role:
        advance_high_watermark(machine, role)


def fetch_error(machine: QuorumMachine, ask: FetchRequest) -> FetchResponse | None:
    """The error response to a fetch, or None if it can be served; changes no state."""
    error = _epoch_error(machine, ask.epoch)
    if not error and (ask.offset < 0 or ask.last_epoch < 0 or ask.last_epoch > ask.epoch):
        error = INVALID_REQUEST
    if error:
        return FetchResponse(error_code=error, leader=machine.leader, high_watermark=machine.high_watermark)
    snapshot = snapshot_needed(machine.log, ask.offset, ask.last_epoch)
    diverging = None if snapshot is not None else divergence(machine.log, ask.offset, ask.last_epoch)
    if snapshot is None and diverging is None:
        return None
    return FetchResponse(
        leader=machine.leader, high_watermark=machine.high_watermark, diverging=diverging, snapshot=snapshot
    )


def _epoch_error(machine: QuorumMachine, epoch: int) -> int:
    if machine.is_stopping and not machine.is_leader:
        return NOT_AVAILABLE
    if epoch < machine.epoch:
        return FENCED_LEADER_EPOCH
    if epoch > machine.epoch:
        return UNKNOWN_LEADER_EPOCH
    return NO_ERROR if machine.is_leader else NOT_LEADER


def on_fetch_snapshot_request(machine: QuorumMachine, token: int, ask: SnapshotRequest) -> None:
    error = _epoch_error(machine, ask.epoch)
    if error:
        machine.answer(token, SnapshotResponse(error_code=error, leader=machine.leader, snapshot=ask.snapshot))
        return
    role = machine.role_state
    assert isinstance(role, Leading)
    _note_alive(machine, role, ask.replica)
    machine.emit(ServeSnapshot(token=token, ask=ask))


def _note_fetch(machine: QuorumMachine, role: Leading, ask: FetchRequest, *, is_prefix: bool) -> None:
    progress = _note_alive(machine, role, ask.replica)
    if progress is None:
        return
    if is_prefix:
        # A replica that was truncated, or lost acknowledged records, has only the records below its fetch offset.
        progress.end_offset = ask.offset
        end_offset = machine.log.end_offset
        if ask.offset >= end_offset:
            progress.last_caught_up_ms = machine.now_ms
        elif 0 <= progress.leader_end_at_fetch <= ask.offset:
            progress.last_caught_up_ms = max(progress.last_caught_up_ms, progress.last_fetch_ms)
        progress.leader_end_at_fetch = end_offset
    progress.last_fetch_ms = machine.now_ms


def _note_alive(machine: QuorumMachine, role: Leading, replica: ReplicaKey) -> ReplicaProgress | None:
    if replica.node_id < 0 or replica.node_id == machine.node_id:
        return None
    voters = machine.history.latest
    progress = role.progress.get(replica)
    if progress is None:
        _forget_silent(machine, role)
        if len(role.progress) >= OBSERVER_COUNT_MAX and not voters.has(replica):
            return None
        _forget_replaced(role, voters, replica)
        progress = role.progress[replica] = ReplicaProgress(replica)
    if voters.has(replica):
        pending = role.announcements.get(replica.node_id)
        if pending is not None and pending.ask is None:
            pending.due_ms = machine.now_ms + machine.timeouts.begin_epoch_ms
        if replica.node_id not in role.fetched_ids:
            role.fetched_ids.append(replica.node_id)
        _renew_check(machine, role, voters)
    return progress


def _forget_replaced(role: Leading, voters: VoterSet, replica: ReplicaKey) -> None:
    """Forget the progress of a static voter that restarted with another directory: acknowledgements for the old one no
    longer count."""
    voter = voters.get(replica.node_id)
    if voter is not None and voter.directory_id == ZERO_UUID:
        for key in list(role.progress):
            if key.node_id == replica.node_id:
                del role.progress[key]


def _forget_silent(machine: QuorumMachine, role: Leading) -> None:
    voters = machine.history.latest
    for key, progress in list(role.progress.items()):
        if not voters.has(key) and machine.now_ms - progress.last_fetch_ms > OBSERVER_SESSION_MS:
            del role.progress[key]


def _renew_check(machine: QuorumMachine, role: Leading, voters: VoterSet) -> None:
    own = 1 if voters.has(machine.key) else 0
    alive_count = sum(1 for node_id in role.fetched_ids if voters.get(node_id) is not None)
    if alive_count + own >= voters.majority:
        role.fetched_ids.clear()
        if role.check_quorum_deadline_ms != NEVER_MS:
            role.check_quorum_deadline_ms = machine.now_ms + machine.timeouts.check_quorum_ms


# Committing.


def on_appended(machine: QuorumMachine, role: Leading, has_changes: bool) -> None:
    if has_changes:
        _follow_voters(machine, role)
        voter_changes.on_set_appended(machine, role)
        _announce_due(machine, role)
        advance_high_watermark(machine, role)


def advance_high_watermark(machine: QuorumMachine, role: Leading) -> None:
    voters = machine.history.latest
    if not voters.voters:
        return
    ends = sorted((_end_of(machine, role, key) for key in voters.keys), reverse=True)
    reached = ends[voters.majority - 1]
    # A record of an older epoch is committed only together with one of this epoch (Raft, 5.4.2).
    if reached <= role.epoch_start_offset or reached <= machine.high_watermark:
        return
    machine.move_high_watermark(reached)
    voter_changes.on_committed(machine, role)


def _end_of(machine: QuorumMachine, role: Leading, voter: ReplicaKey) -> int:
    if voter.node_id == machine.node_id:
        return machine.log.flushed_offset if machine.history.latest.has(machine.key) else -1
    progress = progress_of(role, voter)
    return -1 if progress is None else progress.end_offset


def progress_of(role: Leading, voter: ReplicaKey) -> ReplicaProgress | None:
    """The progress of a voter; a voter without a directory id is matched by node id."""
    if voter.directory_id != ZERO_UUID:
        return role.progress.get(voter)
    return next((progress for key, progress in role.progress.items() if key.node_id == voter.node_id), None)


def successors(machine: QuorumMachine, role: Leading) -> tuple[ReplicaKey, ...]:
    """The other voters, ordered by log end, longest first."""
    others = [key for key in machine.history.latest.keys if key.node_id != machine.node_id]
    return tuple(sorted(others, key=lambda key: (-_end_of(machine, role, key), key.node_id)))


# Timers.


def next_deadline_ms(role: Leading) -> int:
    change_ms = NEVER_MS if role.change is None else role.change.deadline_ms
    requests = role.announcements.values()
    return min([role.check_quorum_deadline_ms, change_ms, *(pending.next_ms for pending in requests)])


def on_time(machine: QuorumMachine, role: Leading) -> None:
    if machine.now_ms >= role.check_quorum_deadline_ms:
        # Another node may lead a majority by now; clients should look for it.
        machine.resign()
        return
    voter_changes.on_time(machine, role)
    _announce_due(machine, role)


def _announce_due(machine: QuorumMachine, role: Leading) -> None:
    for voter in machine.history.latest.voters:
        pending = role.announcements.get(voter.node_id)
        place = machine.endpoint_for(voter.endpoints)
        if pending is None or pending.next_ms > machine.now_ms or place is None:
            continue
        pending.ask = BeginEpochRequest(
            epoch=machine.epoch,
            leader_id=machine.node_id,
            endpoints=machine.listeners,
            voter=key_of(voter),
        )
        machine.emit(SendRequest(node_id=voter.node_id, endpoint=place, ask=pending.ask))


def on_begin_quorum_epoch_response(
    machine: QuorumMachine, node_id: int, ask: BeginEpochRequest, reply: Response | None
) -> None:
    role = machine.role_state
    pending = role.announcements.get(node_id) if isinstance(role, Leading) else None
    if pending is None or pending.ask != ask:
        return
    pending.ask = None
    timeouts = machine.timeouts
    pending.due_ms = machine.now_ms + (timeouts.retry_backoff_ms if reply is None else timeouts.begin_epoch_ms)
