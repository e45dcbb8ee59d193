"""Leading: serving fetches, moving the high watermark, and noticing when nobody follows any more.

A voter's fetch from an offset says that it has everything below on disk. The high watermark is the highest offset that
a majority has reached, and it moves only past the start of the leader's epoch: what is older is committed together with
the epoch's first record, never by counting alone. A leader that is no voter any more (its removal is being committed)
goes on leading without counting itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millbeck.kernel.ids import ZERO_UUID
from millbeck.raft import changing
from millbeck.raft.effects import AppendControl, Send, ServeFetch, ServeSnapshot
from millbeck.raft.log_view import divergence, snapshot_needed
from millbeck.raft.messages import (
    FENCED_LEADER_EPOCH,
    INVALID_REQUEST,
    NO_ERROR,
    NOT_AVAILABLE,
    NOT_LEADER,
    UNKNOWN_LEADER_EPOCH,
    BeginEpochAsk,
    FetchAsk,
    FetchReply,
    Reply,
    SnapshotAsk,
    SnapshotReply,
)
from millbeck.raft.roles import NEVER_MS, Errand, Leading, Progress
from millbeck.raft.voters import NOT_IN_LOG, ReplicaKey, VoterSet, key_of
from millbeck.records.control import KRaftVersion, LeaderChange, Voters

if TYPE_CHECKING:
    from millbeck.raft.machine import QuorumMachine

OBSERVER_COUNT_MAX = 10_000
OBSERVER_SESSION_MS = 300_000
"""An observer that has not fetched for this long is not one any more."""


def begin(machine: QuorumMachine, grants: tuple[int, ...]) -> None:
    """The election is won: have that on disk, then append the epoch's first record, then say so."""
    machine.persist(epoch=machine.epoch, leader_id=machine.node_id)
    role = Leading(
        epoch_start_offset=machine.log.end_offset,
        grants=grants,
        check_quorum_deadline_ms=machine.now_ms + machine.timeouts.check_quorum_ms,
    )
    machine.role_state = role
    _follow_voters(machine, role)
    # Sends before the append, which is the last effect of its step; what they say is on disk already.
    _announce_due(machine, role)
    machine.emit(AppendControl(values=_first_values(machine, grants), epoch=machine.epoch))


def _first_values(machine: QuorumMachine, grants: tuple[int, ...]) -> tuple[LeaderChange | KRaftVersion | Voters, ...]:
    """The LeaderChange; with it the voters, when they have been only in the snapshot the cluster began with, or when
    this one listens elsewhere than they say.
    """
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
    """The voters are others now: announce the epoch to those that are new, forget those that are not."""
    voters = machine.history.latest
    for voter in voters.voters:
        if voter.node_id != machine.node_id and voter.node_id not in role.announcements:
            role.announcements[voter.node_id] = Errand(machine.now_ms)
    for node_id in list(role.announcements):
        if voters.get(node_id) is None:
            del role.announcements[node_id]
    if voters.is_only(machine.key):
        role.check_quorum_deadline_ms = NEVER_MS
    elif role.check_quorum_deadline_ms == NEVER_MS:
        role.check_quorum_deadline_ms = machine.now_ms + machine.timeouts.check_quorum_ms


# Serving.


def on_fetch_asked(machine: QuorumMachine, token: int, ask: FetchAsk) -> None:
    reply = refusal_of(machine, ask)
    role = machine.role_state
    if isinstance(role, Leading) and (reply is None or reply.error_code == NO_ERROR):
        _note_fetch(machine, role, ask, is_prefix=reply is None)
    if reply is None:
        machine.emit(ServeFetch(token=token, ask=ask))
    else:
        machine.answer(token, reply)
    if isinstance(role, Leading) and machine.role_state is role:
        advance_high_watermark(machine, role)


def refusal_of(machine: QuorumMachine, ask: FetchAsk) -> FetchReply | None:
    """What a fetch is answered with when it is not answered with records; changes nothing."""
    error = _epoch_error(machine, ask.epoch)
    if not error and (ask.offset < 0 or ask.last_epoch < 0 or ask.last_epoch > ask.epoch):
        error = INVALID_REQUEST
    if error:
        return FetchReply(error_code=error, leader=machine.leader, high_watermark=machine.high_watermark)
    snapshot = snapshot_needed(machine.log, ask.offset, ask.last_epoch)
    diverging = None if snapshot is not None else divergence(machine.log, ask.offset, ask.last_epoch)
    if snapshot is None and diverging is None:
        return None
    return FetchReply(
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


def on_snapshot_asked(machine: QuorumMachine, token: int, ask: SnapshotAsk) -> None:
    error = _epoch_error(machine, ask.epoch)
    if error:
        machine.answer(token, SnapshotReply(error_code=error, leader=machine.leader, snapshot=ask.snapshot))
        return
    role = machine.role_state
    assert isinstance(role, Leading)
    _note_alive(machine, role, ask.replica)
    machine.emit(ServeSnapshot(token=token, ask=ask))


def _note_fetch(machine: QuorumMachine, role: Leading, ask: FetchAsk, *, is_prefix: bool) -> None:
    progress = _note_alive(machine, role, ask.replica)
    if progress is None:
        return
    if is_prefix:
        # A replica that was cut, or has lost what it had acknowledged, is believed: it has no more than it says.
        progress.end_offset = ask.offset
        end_offset = machine.log.end_offset
        if ask.offset >= end_offset:
            progress.last_caught_up_ms = machine.now_ms
        elif 0 <= progress.leader_end_at_fetch <= ask.offset:
            progress.last_caught_up_ms = max(progress.last_caught_up_ms, progress.last_fetch_ms)
        progress.leader_end_at_fetch = end_offset
    progress.last_fetch_ms = machine.now_ms


def _note_alive(machine: QuorumMachine, role: Leading, replica: ReplicaKey) -> Progress | None:
    if replica.node_id < 0 or replica.node_id == machine.node_id:
        return None
    voters = machine.history.latest
    progress = role.progress.get(replica)
    if progress is None:
        _forget_silent(machine, role)
        if len(role.progress) >= OBSERVER_COUNT_MAX and not voters.has(replica):
            return None
        _forget_replaced(role, voters, replica)
        progress = role.progress[replica] = Progress(replica)
    if voters.has(replica):
        errand = role.announcements.get(replica.node_id)
        if errand is not None and errand.ask is None:
            errand.due_ms = machine.now_ms + machine.timeouts.begin_epoch_ms
        if replica.node_id not in role.fetched_ids:
            role.fetched_ids.append(replica.node_id)
        _renew_check(machine, role, voters)
    return progress


def _forget_replaced(role: Leading, voters: VoterSet, replica: ReplicaKey) -> None:
    """A static voter has come back with another directory: what it acknowledged with the old one is gone with that."""
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
        changing.on_set_appended(machine, role)
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
    changing.on_committed(machine, role)


def _end_of(machine: QuorumMachine, role: Leading, voter: ReplicaKey) -> int:
    if voter.node_id == machine.node_id:
        return machine.log.flushed_offset if machine.history.latest.has(machine.key) else -1
    progress = progress_of(role, voter)
    return -1 if progress is None else progress.end_offset


def progress_of(role: Leading, voter: ReplicaKey) -> Progress | None:
    """What is known of a voter; one without a directory id is its node."""
    if voter.directory_id != ZERO_UUID:
        return role.progress.get(voter)
    return next((progress for key, progress in role.progress.items() if key.node_id == voter.node_id), None)


def successors(machine: QuorumMachine, role: Leading) -> tuple[ReplicaKey, ...]:
    """The other voters, the most complete first."""
    others = [key for key in machine.history.latest.keys if key.node_id != machine.node_id]
    return tuple(sorted(others, key=lambda key: (-_end_of(machine, role, key), key.node_id)))


# Time.


def next_deadline_ms(role: Leading) -> int:
    change_ms = NEVER_MS if role.change is None else role.change.deadline_ms
    errands = role.announcements.values()
    return min([role.check_quorum_deadline_ms, change_ms, *(errand.next_ms for errand in errands)])


def on_time(machine: QuorumMachine, role: Leading) -> None:
    if machine.now_ms >= role.check_quorum_deadline_ms:
        # Somebody else may lead a majority by now; who asks here should look there.
        machine.resign()
        return
    changing.on_time(machine, role)
    _announce_due(machine, role)


def _announce_due(machine: QuorumMachine, role: Leading) -> None:
    for voter in machine.history.latest.voters:
        errand = role.announcements.get(voter.node_id)
        place = machine.place_of(voter.endpoints)
        if errand is None or errand.next_ms > machine.now_ms or place is None:
            continue
        errand.ask = BeginEpochAsk(
            epoch=machine.epoch,
            leader_id=machine.node_id,
            endpoints=machine.listeners,
            voter=key_of(voter),
        )
        machine.emit(Send(node_id=voter.node_id, endpoint=place, ask=errand.ask))


def on_announced(machine: QuorumMachine, node_id: int, ask: BeginEpochAsk, reply: Reply | None) -> None:
    role = machine.role_state
    errand = role.announcements.get(node_id) if isinstance(role, Leading) else None
    if errand is None or errand.ask != ask:
        return
    errand.ask = None
    timeouts = machine.timeouts
    errand.due_ms = machine.now_ms + (timeouts.retry_backoff_ms if reply is None else timeouts.begin_epoch_ms)
