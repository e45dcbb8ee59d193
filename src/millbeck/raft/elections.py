"""Elections: requesting votes, granting them, and resigning from an epoch.

A voter without contact to its leader first asks whether others would vote for it (pre-vote). That changes no state, so
a node that was only partitioned does not disrupt a working quorum: voters refuse while they have contact to their
leader. With a majority of pre-votes it increments the epoch, votes for itself, persists that, and requests votes. A
voter that refused is asked again while its vote may still help: of two voters whose leader has failed, the one with the
longer log may time out first, and the other must neither win without it nor delay it by another election timeout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millbeck.kernel.ids import ZERO_UUID
from millbeck.raft import following, leading
from millbeck.raft.effects import SendRequest
from millbeck.raft.log_view import end_of
from millbeck.raft.messages import (
    INVALID_REQUEST,
    INVALID_VOTER_KEY,
    NO_ERROR,
    NOBODY,
    EndEpochRequest,
    Response,
    VoteRequest,
    VoteResponse,
)
from millbeck.raft.roles import NEVER_MS, Election, Following, Leading, PendingRequest, Resigned, Unattached
from millbeck.raft.voters import ReplicaKey, key_of

if TYPE_CHECKING:
    from millbeck.raft.machine import QuorumMachine

BACKOFF_MS_FIRST = 50
PRE_VOTE_AGAIN_MS = 50
"""Delay before a pre-vote is requested again from a voter that refused it."""


# Candidates.


def start_pre_vote(machine: QuorumMachine) -> None:
    """Request pre-votes from the other voters. Nothing is persisted, since a pre-vote is not a promise."""
    if machine.lost_its_vote or machine.is_stopping or not machine.is_electable:
        machine.become_unattached(machine.epoch)
        following.find_leader_if_due(machine)
        return
    _begin(machine, is_pre_vote=True)


def stand(machine: QuorumMachine) -> None:
    """Increment the epoch, vote for itself and request votes."""
    assert machine.is_electable, "only voters can start an election"
    machine.persist(epoch=machine.epoch + 1, voted=machine.key)
    machine.election_count += 1
    _begin(machine, is_pre_vote=False)


def _begin(machine: QuorumMachine, *, is_pre_vote: bool) -> None:
    voters = machine.history.latest
    election = Election(machine.now_ms + machine.random_election_timeout_ms(), voters, is_pre_vote)
    if machine.is_voter:
        election.granted[machine.node_id] = True
    election.requests = {
        voter.node_id: PendingRequest(machine.now_ms) for voter in voters.voters if voter.node_id != machine.node_id
    }
    machine.role_state = election
    _decide_if_won(machine, election)
    if machine.role_state is election:
        _send_due(machine, election)


def _decide_if_won(machine: QuorumMachine, election: Election) -> None:
    if not election.is_won:
        return
    if election.is_pre_vote:
        stand(machine)
    else:
        machine.election_count = 0
        grants = tuple(node_id for node_id in sorted(election.granted) if election.granted[node_id])
        leading.begin(machine, grants)


def _send_due(machine: QuorumMachine, election: Election) -> None:
    for voter in election.voters.voters:
        pending = election.requests.get(voter.node_id)
        place = machine.endpoint_for(voter.endpoints)
        if pending is None or pending.next_ms > machine.now_ms or place is None:
            continue
        pending.ask = VoteRequest(
            epoch=machine.epoch,
            candidate=machine.key,
            log_end=end_of(machine.log),
            is_pre_vote=election.is_pre_vote,
            voter=key_of(voter),
        )
        machine.emit(SendRequest(node_id=voter.node_id, endpoint=place, ask=pending.ask))


def next_deadline_ms(election: Election) -> int:
    if election.rests_until_ms < election.deadline_ms:
        return election.rests_until_ms
    return min([election.deadline_ms, *(pending.next_ms for pending in election.requests.values())])


def on_time(machine: QuorumMachine, election: Election) -> None:
    if machine.now_ms >= min(election.deadline_ms, election.rests_until_ms):
        _give_up(machine, election)
    elif not election.is_lost:
        _send_due(machine, election)


def _give_up(machine: QuorumMachine, election: Election) -> None:
    """The election timed out or was lost: a candidate becomes prospective, a prospective node returns to its former
    state."""
    if not election.is_pre_vote:
        start_pre_vote(machine)
    elif machine.state.leader_id >= 0 and machine.state.leader_id != machine.node_id:
        machine.become_follower(machine.epoch, machine.state.leader_id, None)
    else:
        machine.become_unattached(machine.epoch)
        following.find_leader_if_due(machine)


def on_vote_response(machine: QuorumMachine, node_id: int, ask: VoteRequest, reply: Response | None) -> None:
    election = machine.role_state
    if not isinstance(election, Election) or ask.epoch != machine.epoch or ask.is_pre_vote != election.is_pre_vote:
        return
    pending = election.requests.get(node_id)
    if pending is None or pending.ask != ask:
        return
    pending.ask = None
    if not isinstance(reply, VoteResponse) or reply.error_code not in (NO_ERROR, INVALID_VOTER_KEY):
        pending.due_ms = machine.now_ms + machine.timeouts.retry_backoff_ms
        election.unreachable[node_id] = None
        _rest_if_lost(machine, election)
        return
    election.unreachable.pop(node_id, None)
    is_granted = election.granted[node_id] = reply.is_granted and reply.error_code == NO_ERROR
    if election.is_pre_vote and not is_granted:
        # A voter that still has contact to the leader will soon time out as well: ask it again.
        pending.due_ms = machine.now_ms + PRE_VOTE_AGAIN_MS
    else:
        del election.requests[node_id]
    _decide_if_won(machine, election)
    if machine.role_state is election:
        _rest_if_lost(machine, election)


def _rest_if_lost(machine: QuorumMachine, election: Election) -> None:
    """Start the backoff of a lost election. If two voters time out together they may split the votes when only the
    failed leader is left to vote: its response is not waited for."""
    if (election.is_lost or election.is_split) and election.rests_until_ms == NEVER_MS:
        election.rests_until_ms = min(machine.now_ms + _draw_rest_ms(machine), election.deadline_ms)


def _draw_rest_ms(machine: QuorumMachine) -> int:
    """Random backoff with an exponential bound, so that two rivals do not retry at the same time."""
    bound_ms = min(machine.timeouts.election_backoff_ms_max, BACKOFF_MS_FIRST << min(machine.election_count, 10))
    return 1 + (machine.below(bound_ms) if bound_ms > 0 else 0)


# Voting.


def on_vote_asked(machine: QuorumMachine, token: int, ask: VoteRequest) -> None:
    """Answer a vote request; the state is persisted first, since `become_unattached` and `persist` emit their effects
    earlier."""
    log_end, epoch = ask.log_end, ask.epoch
    is_impossible = log_end.epoch > epoch or (log_end.epoch == epoch and not ask.is_pre_vote)
    if log_end.end_offset < 0 or log_end.epoch < 0 or is_impossible:
        machine.answer(token, VoteResponse(error_code=INVALID_REQUEST, leader=machine.leader))
        return
    error = machine.validate_voter_request(ask.candidate.node_id, epoch)
    if not error:
        if epoch > machine.epoch:
            machine.become_unattached(epoch)
            following.find_leader_if_due(machine)
        if not machine.is_addressed_to_me(ask.voter):
            error = INVALID_VOTER_KEY
    if error:
        machine.answer(token, VoteResponse(error_code=error, leader=machine.leader))
        return
    is_granted = _would_grant(machine, ask)
    if is_granted and not ask.is_pre_vote and machine.voted == NOBODY:
        machine.persist(epoch=epoch, voted=ask.candidate)
        # A granted vote implies waiting for the outcome of that election.
        machine.become_unattached(epoch)
    machine.answer(token, VoteResponse(leader=machine.leader, is_granted=is_granted))


def _would_grant(machine: QuorumMachine, ask: VoteRequest) -> bool:
    is_complete = ask.log_end >= end_of(machine.log)
    role = machine.role_state
    if machine.lost_its_vote or not machine.can_vote:
        return False
    if ask.is_pre_vote:
        return is_complete and not isinstance(role, Leading) and not (isinstance(role, Following) and role.has_fetched)
    if machine.voted != NOBODY:
        return _is_same(machine.voted, ask.candidate)
    if machine.state.leader_id >= 0:
        return False
    return is_complete and isinstance(role, Unattached | Election)


def _is_same(voted: ReplicaKey, candidate: ReplicaKey) -> bool:
    return voted.node_id == candidate.node_id and voted.directory_id in (ZERO_UUID, candidate.directory_id)


# Resigning.


def send_end_quorum_epoch(machine: QuorumMachine) -> None:
    """Send EndQuorumEpoch to the other voters: this epoch has no leader any more."""
    role = machine.role_state
    assert isinstance(role, Resigned)
    voters = machine.history.latest.voters
    role.end_epoch_requests = {
        voter.node_id: PendingRequest(machine.now_ms) for voter in voters if voter.node_id != machine.node_id
    }
    _send_end_epoch_requests(machine, role)


def _send_end_epoch_requests(machine: QuorumMachine, role: Resigned) -> None:
    for voter in machine.history.latest.voters:
        pending = role.end_epoch_requests.get(voter.node_id)
        place = machine.endpoint_for(voter.endpoints)
        if pending is None or pending.next_ms > machine.now_ms or place is None:
            continue
        pending.ask = EndEpochRequest(
            epoch=machine.epoch,
            leader_id=machine.node_id,
            endpoints=machine.listeners,
            successors=role.successors,
        )
        machine.emit(SendRequest(node_id=voter.node_id, endpoint=place, ask=pending.ask))


def on_end_quorum_epoch_response(
    machine: QuorumMachine, node_id: int, ask: EndEpochRequest, reply: Response | None
) -> None:
    role = machine.role_state
    pending = role.end_epoch_requests.get(node_id) if isinstance(role, Resigned) else None
    if not isinstance(role, Resigned) or pending is None or pending.ask != ask:
        return
    if reply is None:
        pending.ask = None
        pending.due_ms = machine.now_ms + machine.timeouts.retry_backoff_ms
    else:
        del role.end_epoch_requests[node_id]


def on_time_resigned(machine: QuorumMachine, role: Resigned) -> None:
    if machine.now_ms < role.deadline_ms:
        _send_end_epoch_requests(machine, role)
    elif machine.is_stopping:
        role.end_epoch_requests.clear()
        role.deadline_ms = machine.now_ms + machine.timeouts.election_ms + 1
    else:
        start_pre_vote(machine)


def on_leader_resigned(machine: QuorumMachine, role: Following, ask: EndEpochRequest) -> None:
    """The preferred successor starts an election at once, the others after increasing delays."""
    role.has_fetched = False
    if not machine.is_electable:
        role.deadline_ms = machine.now_ms
        return
    position = len(ask.successors)
    for index, successor in enumerate(ask.successors):
        if _is_same(successor, machine.key):
            position = index
            break
    if not ask.successors:
        wait_ms = machine.below(BACKOFF_MS_FIRST)
    elif position == 0:
        wait_ms = 0
    else:
        wait_ms = min(machine.timeouts.election_backoff_ms_max, BACKOFF_MS_FIRST << min(position, 10))
    role.deadline_ms = machine.now_ms + wait_ms
    if wait_ms == 0:
        following.on_fetch_timeout(machine)
