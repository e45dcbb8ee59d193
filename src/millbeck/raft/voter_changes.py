"""Voter changes (KIP-853): one replica at a time, by a record in the log that takes effect when appended.

A leader accepts a change only if a record of its own epoch and the previous voter set are committed: majorities of two
sets that differ by one voter always overlap, those of sets that differ by more need not. Adding a voter is acknowledged
when the new set is committed. A leader that removes itself leads until its removal is committed, then resigns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millbeck.kernel.errors import (
    DuplicateVoter,
    InvalidRequest,
    InvalidUpdateVersion,
    RequestTimedOut,
    UnsupportedVersion,
    VoterNotFound,
)
from millbeck.raft.effects import AppendControl, SendRequest
from millbeck.raft.messages import (
    FENCED_LEADER_EPOCH,
    NO_ERROR,
    NOT_LEADER,
    UNKNOWN_LEADER_EPOCH,
    AddVoterRequest,
    RemoveVoterRequest,
    Response,
    UpdateVoterRequest,
    VersionsRequest,
    VersionsResponse,
)
from millbeck.raft.roles import Leading, VoterChange
from millbeck.raft.voters import ReplicaKey, VoterSet, key_of
from millbeck.records.control import KRaftVersion, Voter, Voters

if TYPE_CHECKING:
    from millbeck.raft.machine import QuorumMachine

RECONFIGURABLE = 1
"""First ``kraft.version`` with the voters in the log."""

CAUGHT_UP_MS_MAX = 3_600_000
"""A new voter must have caught up with the log's end, with its last fetch within this time."""


# Starting a change.


def on_add(machine: QuorumMachine, token: int, ask: AddVoterRequest) -> None:
    role = machine.role_state
    place = machine.endpoint_for(ask.voter.endpoints)
    refused = _refuse_change(machine)
    voters = machine.history.latest
    if isinstance(role, Leading) and place is None:
        refused = machine.refusal(InvalidRequest.code, "The new voter has no listeners.")
    if refused is None and voters.get(ask.voter.node_id) is not None:
        refused = machine.refusal(DuplicateVoter.code, f"Node {ask.voter.node_id} is already a voter.")
    if refused is not None or place is None or not isinstance(role, Leading):
        machine.answer(token, refused or machine.refusal(NOT_LEADER))
        return
    wait_ms = min(max(ask.timeout_ms, 1), machine.timeouts.request_ms)
    role.change = VoterChange(
        token, machine.now_ms + wait_ms, ask.voter, acknowledge_when_committed=ask.acknowledge_when_committed
    )
    key = key_of(ask.voter)
    machine.emit(SendRequest(node_id=key.node_id, endpoint=place, ask=VersionsRequest(replica=key)))


def on_api_versions_response(machine: QuorumMachine, ask: VersionsRequest, reply: Response | None) -> None:
    role = machine.role_state
    change = role.change if isinstance(role, Leading) else None
    if not isinstance(role, Leading) or change is None or change.voter is None or key_of(change.voter) != ask.replica:
        return
    if not isinstance(reply, VersionsResponse) or reply.error_code != NO_ERROR:
        _end(machine, role, RequestTimedOut.code, f"The new voter {ask.replica} did not return its supported versions.")
    elif not reply.kraft_version_min <= machine.history.kraft_version <= reply.kraft_version_max:
        _end(
            machine,
            role,
            InvalidRequest.code,
            f"The new voter supports kraft.version {reply.kraft_version_min} to {reply.kraft_version_max}, "
            f"not {machine.history.kraft_version}.",
        )
    elif not _is_caught_up(machine, role, ask.replica):
        _end(machine, role, RequestTimedOut.code, f"The new voter {ask.replica} is lagging behind.")
    else:
        added = Voter(
            node_id=change.voter.node_id,
            directory_id=change.voter.directory_id,
            endpoints=change.voter.endpoints,
            kraft_version_min=reply.kraft_version_min,
            kraft_version_max=reply.kraft_version_max,
        )
        change.voter = None
        _append(machine, machine.history.latest.with_voter(added))


def on_remove(machine: QuorumMachine, token: int, ask: RemoveVoterRequest) -> None:
    role = machine.role_state
    refused = _refuse_change(machine)
    voters = machine.history.latest
    remaining = voters.without(ask.voter)
    if refused is None and remaining == voters:
        refused = machine.refusal(VoterNotFound.code, f"{ask.voter} is not a voter.")
    if refused is None and not remaining.voters:
        refused = machine.refusal(InvalidRequest.code, "The last voter cannot be removed.")
    if refused is not None or not isinstance(role, Leading):
        machine.answer(token, refused or machine.refusal(NOT_LEADER))
        return
    role.change = VoterChange(token, machine.now_ms + machine.timeouts.request_ms)
    _append(machine, remaining)


def on_update(machine: QuorumMachine, token: int, ask: UpdateVoterRequest) -> None:
    role = machine.role_state
    error = NO_ERROR
    if ask.epoch != machine.epoch:
        error = FENCED_LEADER_EPOCH if ask.epoch < machine.epoch else UNKNOWN_LEADER_EPOCH
    elif not isinstance(role, Leading):
        error = NOT_LEADER
    elif not ask.voter.endpoints:
        error = InvalidRequest.code
    if error or not isinstance(role, Leading):
        machine.answer(token, machine.refusal(error))
        return
    history = machine.history
    if history.kraft_version < RECONFIGURABLE:
        known = history.latest.get(ask.voter.node_id) is not None
        if known:
            role.upgrade_voters[ask.voter.node_id] = ask.voter
        machine.answer(token, machine.refusal(NO_ERROR if known else VoterNotFound.code))
        return
    refused = _refuse_change(machine)
    known_voter = history.latest.get(ask.voter.node_id)
    if refused is None and (known_voter is None or key_of(known_voter) != key_of(ask.voter)):
        refused = machine.refusal(VoterNotFound.code)
    if refused is None and not ask.voter.kraft_version_min <= history.kraft_version <= ask.voter.kraft_version_max:
        refused = machine.refusal(InvalidRequest.code)
    machine.answer(token, refused or machine.refusal(NO_ERROR))
    if refused is None and known_voter != ask.voter:
        _append(machine, history.latest.with_changed(ask.voter))


def on_upgrade(machine: QuorumMachine, token: int) -> None:
    """Upgrade ``kraft.version`` to 1: the static voters are written to the log with their directory ids."""
    role = machine.role_state
    refused = _refuse_change(machine, needs_reconfigurable=False)
    if refused is not None or not isinstance(role, Leading):
        machine.answer(token, refused or machine.refusal(NOT_LEADER))
        return
    history = machine.history
    if history.kraft_version >= RECONFIGURABLE:
        machine.answer(token, machine.refusal(NO_ERROR))
        return
    known = {**role.upgrade_voters, machine.node_id: machine.own_voter()}
    missing = [node_id for node_id in history.latest.ids if node_id not in known]
    unable = [node_id for node_id, voter in known.items() if voter.kraft_version_max < RECONFIGURABLE]
    if missing or unable or not machine.listeners:
        who = ", ".join(str(node_id) for node_id in sorted([*missing, *unable]))
        machine.answer(
            token,
            machine.refusal(InvalidUpdateVersion.code, f"Voters that are not known to support it: {who or 'this'}."),
        )
        return
    role.change = VoterChange(token, machine.now_ms + machine.timeouts.request_ms)
    voters = VoterSet.of(tuple(known[node_id] for node_id in history.latest.ids))
    values: tuple[KRaftVersion | Voters, ...] = (KRaftVersion(kraft_version=RECONFIGURABLE), voters.record())
    machine.emit(AppendControl(values=values, epoch=machine.epoch))


def _refuse_change(machine: QuorumMachine, *, needs_reconfigurable: bool = True) -> Response | None:
    role, history = machine.role_state, machine.history
    if not isinstance(role, Leading):
        return machine.refusal(NOT_LEADER)
    if role.change is not None:
        return machine.refusal(RequestTimedOut.code, "Another voter change is in progress.")
    if machine.high_watermark <= role.epoch_start_offset:
        return machine.refusal(RequestTimedOut.code, "The leader has not committed a record of its epoch yet.")
    if needs_reconfigurable and history.kraft_version < RECONFIGURABLE:
        return machine.refusal(
            UnsupportedVersion.code, f"Voters cannot be changed with kraft.version {history.kraft_version}."
        )
    if history.latest_offset >= machine.high_watermark:
        return machine.refusal(RequestTimedOut.code, "The last voter change is not committed yet.")
    return None


def _is_caught_up(machine: QuorumMachine, role: Leading, replica: ReplicaKey) -> bool:
    progress = role.progress.get(replica)
    if progress is None or progress.last_caught_up_ms < 0:
        return False
    return machine.now_ms - progress.last_fetch_ms <= CAUGHT_UP_MS_MAX


def _append(machine: QuorumMachine, voters: VoterSet) -> None:
    machine.emit(AppendControl(values=(voters.record(),), epoch=machine.epoch))


# Completing a change.


def on_set_appended(machine: QuorumMachine, role: Leading) -> None:
    change = role.change
    if change is None or change.offset >= 0:
        return
    change.offset = machine.history.latest_offset
    if not change.acknowledge_when_committed:
        _end(machine, role, NO_ERROR)


def on_committed(machine: QuorumMachine, role: Leading) -> None:
    change = role.change
    if change is not None and 0 <= change.offset < machine.high_watermark:
        _end(machine, role, NO_ERROR)
    history = machine.history
    if history.latest_offset < machine.high_watermark and not history.latest.has(machine.key):
        # Its own removal is committed: resign.
        machine.resign()


def on_time(machine: QuorumMachine, role: Leading) -> None:
    change = role.change
    if change is not None and machine.now_ms >= change.deadline_ms:
        _end(machine, role, RequestTimedOut.code, "The voter change timed out; it may still be committed.")


def abandon(machine: QuorumMachine, role: Leading) -> None:
    """Fail the pending change because this node is no longer leader, so that the client asks the new leader."""
    if role.change is not None:
        _end(machine, role, NOT_LEADER)


def _end(machine: QuorumMachine, role: Leading, error_code: int, message: str = "") -> None:
    change, role.change = role.change, None
    assert change is not None
    machine.answer(change.token, machine.refusal(error_code, message))
