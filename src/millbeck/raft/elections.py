"""Elections: asking for votes, giving them, and taking leave of an epoch.

A voter that misses its leader first asks whether others would vote for it (pre-vote). That changes nothing anywhere, so
a node that was merely cut off does not disturb a quorum that works: others say no while they hear from their leader.
With a majority's yes it raises the epoch, votes for itself, has that on disk, and asks in earnest. Who said no is asked
again for as long as it may still help: of two whose leader has died, the one with the longer log may be the first to
notice, and the other must neither win without it nor keep it waiting for another round of timeouts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millbeck.kernel.ids import ZERO_UUID
from millbeck.raft import following, leading
from millbeck.raft.effects import Send
from millbeck.raft.log_view import end_of
from millbeck.raft.messages import (
    INVALID_REQUEST,
    INVALID_VOTER_KEY,
    NO_ERROR,
    NOBODY,
    EndEpochAsk,
    Reply,
    VoteAsk,
    VoteReply,
)
from millbeck.raft.roles import NEVER_MS, Election, Errand, Following, Leading, Resigned, Unattached
from millbeck.raft.voters import ReplicaKey, key_of

if TYPE_CHECKING:
    from millbeck.raft.machine import QuorumMachine

BACKOFF_MS_FIRST = 50
PRE_VOTE_AGAIN_MS = 50
"""After so long a voter that refused a pre-vote is asked again."""


# Standing.


def ask_around(machine: QuorumMachine) -> None:
    """Ask the other voters whether they would vote for this one. Nothing is persisted: nothing was promised."""
    if machine.lost_its_vote or machine.is_stopping or not machine.may_stand:
        machine.become_unattached(machine.epoch)
        following.search_if_due(machine)
        return
    _begin(machine, is_pre_vote=True)


def stand(machine: QuorumMachine) -> None:
    """Raise the epoch and ask for votes, the own one first."""
    assert machine.may_stand, "only voters stand for election"
    machine.persist(epoch=machine.epoch + 1, voted=machine.key)
    machine.election_count += 1
    _begin(machine, is_pre_vote=False)


def _begin(machine: QuorumMachine, *, is_pre_vote: bool) -> None:
    voters = machine.history.latest
    election = Election(machine.now_ms + machine.draw_election_ms(), voters, is_pre_vote)
    if machine.is_voter:
        election.granted[machine.node_id] = True
    election.errands = {
        voter.node_id: Errand(machine.now_ms) for voter in voters.voters if voter.node_id != machine.node_id
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
        errand = election.errands.get(voter.node_id)
        place = machine.place_of(voter.endpoints)
        if errand is None or errand.next_ms > machine.now_ms or place is None:
            continue
        errand.ask = VoteAsk(
            epoch=machine.epoch,
            candidate=machine.key,
            log_end=end_of(machine.log),
            is_pre_vote=election.is_pre_vote,
            voter=key_of(voter),
        )
        machine.emit(Send(node_id=voter.node_id, endpoint=place, ask=errand.ask))


def next_deadline_ms(election: Election) -> int:
    if election.rests_until_ms < election.deadline_ms:
        return election.rests_until_ms
    return min([election.deadline_ms, *(errand.next_ms for errand in election.errands.values())])


def on_time(machine: QuorumMachine, election: Election) -> None:
    if machine.now_ms >= min(election.deadline_ms, election.rests_until_ms):
        _give_up(machine, election)
    elif not election.is_lost:
        _send_due(machine, election)


def _give_up(machine: QuorumMachine, election: Election) -> None:
    """Undecided or lost: a candidate asks around again; who only asked around goes back to what it knew."""
    if not election.is_pre_vote:
        ask_around(machine)
    elif machine.state.leader_id >= 0 and machine.state.leader_id != machine.node_id:
        machine.become_follower(machine.epoch, machine.state.leader_id, None)
    else:
        machine.become_unattached(machine.epoch)
        following.search_if_due(machine)


def on_vote_answered(machine: QuorumMachine, node_id: int, ask: VoteAsk, reply: Reply | None) -> None:
    election = machine.role_state
    if not isinstance(election, Election) or ask.epoch != machine.epoch or ask.is_pre_vote != election.is_pre_vote:
        return
    errand = election.errands.get(node_id)
    if errand is None or errand.ask != ask:
        return
    errand.ask = None
    if not isinstance(reply, VoteReply) or reply.error_code not in (NO_ERROR, INVALID_VOTER_KEY):
        errand.due_ms = machine.now_ms + machine.timeouts.retry_backoff_ms
        election.unreachable[node_id] = None
        _rest_if_lost(machine, election)
        return
    election.unreachable.pop(node_id, None)
    is_granted = election.granted[node_id] = reply.is_granted and reply.error_code == NO_ERROR
    if election.is_pre_vote and not is_granted:
        # Who has heard of the leader a moment longer than this one will soon miss it, too.
        errand.due_ms = machine.now_ms + PRE_VOTE_AGAIN_MS
    else:
        del election.errands[node_id]
    _decide_if_won(machine, election)
    if machine.role_state is election:
        _rest_if_lost(machine, election)


def _rest_if_lost(machine: QuorumMachine, election: Election) -> None:
    """Two who miss their leader at the same moment split the votes, and who could decide is the leader that died: its
    answer is not waited for.
    """
    if (election.is_lost or election.is_split) and election.rests_until_ms == NEVER_MS:
        election.rests_until_ms = min(machine.now_ms + _draw_rest_ms(machine), election.deadline_ms)


def _draw_rest_ms(machine: QuorumMachine) -> int:
    """Longer after every election that was lost, and never the same for two rivals."""
    bound_ms = min(machine.timeouts.election_backoff_ms_max, BACKOFF_MS_FIRST << min(machine.election_count, 10))
    return 1 + (machine.below(bound_ms) if bound_ms > 0 else 0)


# Voting.


def on_vote_asked(machine: QuorumMachine, token: int, ask: VoteAsk) -> None:
    """Persist before answering: `become_unattached` and `persist` come first in the list of effects."""
    log_end, epoch = ask.log_end, ask.epoch
    is_impossible = log_end.epoch > epoch or (log_end.epoch == epoch and not ask.is_pre_vote)
    if log_end.end_offset < 0 or log_end.epoch < 0 or is_impossible:
        machine.answer(token, VoteReply(error_code=INVALID_REQUEST, leader=machine.leader))
        return
    error = machine.refuse_between_voters(ask.candidate.node_id, epoch)
    if not error:
        if epoch > machine.epoch:
            machine.become_unattached(epoch)
            following.search_if_due(machine)
        if not machine.is_meant(ask.voter):
            error = INVALID_VOTER_KEY
    if error:
        machine.answer(token, VoteReply(error_code=error, leader=machine.leader))
        return
    is_granted = _would_grant(machine, ask)
    if is_granted and not ask.is_pre_vote and machine.voted == NOBODY:
        machine.persist(epoch=epoch, voted=ask.candidate)
        # A vote is a promise to wait for what comes of it.
        machine.become_unattached(epoch)
    machine.answer(token, VoteReply(leader=machine.leader, is_granted=is_granted))


def _would_grant(machine: QuorumMachine, ask: VoteAsk) -> bool:
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


# Taking leave.


def say_farewell(machine: QuorumMachine) -> None:
    """Tell the other voters that this epoch has no leader any more."""
    role = machine.role_state
    assert isinstance(role, Resigned)
    voters = machine.history.latest.voters
    role.farewells = {voter.node_id: Errand(machine.now_ms) for voter in voters if voter.node_id != machine.node_id}
    _send_farewells(machine, role)


def _send_farewells(machine: QuorumMachine, role: Resigned) -> None:
    for voter in machine.history.latest.voters:
        errand = role.farewells.get(voter.node_id)
        place = machine.place_of(voter.endpoints)
        if errand is None or errand.next_ms > machine.now_ms or place is None:
            continue
        errand.ask = EndEpochAsk(
            epoch=machine.epoch,
            leader_id=machine.node_id,
            endpoints=machine.listeners,
            successors=role.successors,
        )
        machine.emit(Send(node_id=voter.node_id, endpoint=place, ask=errand.ask))


def on_farewell_answered(machine: QuorumMachine, node_id: int, ask: EndEpochAsk, reply: Reply | None) -> None:
    role = machine.role_state
    errand = role.farewells.get(node_id) if isinstance(role, Resigned) else None
    if not isinstance(role, Resigned) or errand is None or errand.ask != ask:
        return
    if reply is None:
        errand.ask = None
        errand.due_ms = machine.now_ms + machine.timeouts.retry_backoff_ms
    else:
        del role.farewells[node_id]


def on_time_resigned(machine: QuorumMachine, role: Resigned) -> None:
    if machine.now_ms < role.deadline_ms:
        _send_farewells(machine, role)
    elif machine.is_stopping:
        role.farewells.clear()
        role.deadline_ms = machine.now_ms + machine.timeouts.election_ms + 1
    else:
        ask_around(machine)


def on_leader_resigned(machine: QuorumMachine, role: Following, ask: EndEpochAsk) -> None:
    """The best successor stands at once; those after it give it time, each more than the one before."""
    role.has_fetched = False
    if not machine.may_stand:
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
        following.on_leader_silent(machine)
