"""Following: fetching the leader's log, cutting the own one where it differs, loading snapshots, and finding a leader.

One fetch is on its way at a time. What it brings is appended and flushed before the next one goes out, because a fetch
from an offset tells the leader that everything below is on this disk. Observers do the same; their fetches just do not
count. A replica that knows no leader and has no vote asks one node after another, and each answers who leads; while the
one it knows does not answer, every other fetch asks around, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millbeck.kernel.ids import ZERO_UUID
from millbeck.raft import electing
from millbeck.raft.effects import (
    AppendFetched,
    InstallSnapshot,
    Send,
    TruncateTo,
    WriteSnapshotPart,
)
from millbeck.raft.log_view import truncation_offset
from millbeck.raft.messages import (
    NO_ERROR,
    AddVoterAsk,
    Ask,
    EpochEnd,
    FetchAsk,
    FetchReply,
    RemoveVoterAsk,
    Reply,
    SnapshotAsk,
    SnapshotReply,
    UpdateVoterAsk,
)
from millbeck.raft.roles import NEVER_MS, Errand, Following, SnapshotFetch, Unattached
from millbeck.raft.voters import key_of
from millbeck.records.control import VoterEndpoint

if TYPE_CHECKING:
    from millbeck.raft.events import SnapshotInstalled
    from millbeck.raft.machine import QuorumMachine

BOOTSTRAP_ID_FIRST = -2
"""Nodes of which only the address is known count down from here, as in Kafka."""


def begin(machine: QuorumMachine, leader_id: int, endpoint: VoterEndpoint | None) -> Following:
    role = Following(leader_id, endpoint, machine.now_ms + machine.timeouts.fetch_ms)
    role.fetch = Errand(machine.now_ms)
    role.is_flushing = machine.log.flushed_offset < machine.log.end_offset
    role.update = Errand(machine.now_ms + machine.timeouts.update_voter_ms)
    return role


def next_deadline_ms(role: Following) -> int:
    deadlines = [role.deadline_ms, role.update.next_ms]
    if not role.is_flushing and role.endpoint is not None:
        deadlines.append(role.fetch.next_ms)
    return min(deadlines)


def on_time(machine: QuorumMachine, role: Following) -> None:
    if machine.now_ms >= role.deadline_ms:
        on_leader_silent(machine)
        return
    if machine.now_ms >= role.update.next_ms:
        _send_update(machine, role)
    send_due(machine)


def on_leader_silent(machine: QuorumMachine) -> None:
    if machine.may_stand:
        electing.ask_around(machine)
    else:
        machine.become_unattached(machine.epoch)
        search_if_due(machine)


# Asking.


def send_due(machine: QuorumMachine) -> None:
    """Fetch what comes next, unless a fetch is on its way or what the last one brought is not on disk."""
    role = machine.role_state
    if not isinstance(role, Following) or role.is_flushing or role.fetch.next_ms > machine.now_ms:
        return
    if role.endpoint is None or machine.is_stopping:
        return
    node_id, endpoint = role.leader_id, role.endpoint
    if role.snapshot is None:
        role.fetch.ask = _fetch_ask(machine)
        if role.failed_fetches % 2 and not machine.may_stand:
            # Voters are told of another leader, and find out by themselves that there is none. Others hear of it when
            # they ask somebody else.
            node_id, endpoint = _next_place(machine, but=role.leader_id) or (node_id, endpoint)
    else:
        role.fetch.ask = SnapshotAsk(
            epoch=machine.epoch,
            replica=machine.key,
            snapshot=role.snapshot.snapshot,
            position=role.snapshot.position,
        )
    machine.emit(Send(node_id=node_id, endpoint=endpoint, ask=role.fetch.ask))


def _fetch_ask(machine: QuorumMachine) -> FetchAsk:
    return FetchAsk(
        epoch=machine.epoch,
        replica=machine.key,
        offset=machine.log.end_offset,
        last_epoch=machine.log.last_epoch,
        high_watermark=machine.high_watermark,
    )


def search_if_due(machine: QuorumMachine) -> None:
    """A replica without a vote, and without a leader: ask the next node it knows of."""
    role = machine.role_state
    if not isinstance(role, Unattached) or role.searching is not None or machine.is_stopping:
        return
    if machine.now_ms < role.search_ms:
        return
    place = _next_place(machine)
    if place is None or machine.log.flushed_offset < machine.log.end_offset:
        role.search_ms = machine.now_ms + machine.timeouts.retry_backoff_ms
        return
    node_id, endpoint = place
    role.searching = _fetch_ask(machine)
    role.search_ms = NEVER_MS
    machine.emit(Send(node_id=node_id, endpoint=endpoint, ask=role.searching))


def _next_place(machine: QuorumMachine, *, but: int | None = None) -> tuple[int, VoterEndpoint] | None:
    """One after the other, each time another."""
    places = [place for place in _places(machine) if place[0] != but]
    if not places:
        return None
    machine.search_index += 1
    return places[(machine.search_index - 1) % len(places)]


def _places(machine: QuorumMachine) -> list[tuple[int, VoterEndpoint]]:
    voters = [
        (voter.node_id, place)
        for voter in machine.history.latest.voters
        if voter.node_id != machine.node_id and (place := machine.place_of(voter.endpoints)) is not None
    ]
    servers = [(BOOTSTRAP_ID_FIRST - index, endpoint) for index, endpoint in enumerate(machine.bootstrap)]
    return servers + voters


# Being answered.


def on_fetched(machine: QuorumMachine, ask: FetchAsk, reply: Reply | None) -> None:
    role = machine.role_state
    if isinstance(role, Unattached):
        if role.searching == ask:
            role.searching = None
            role.search_ms = machine.now_ms + machine.timeouts.retry_backoff_ms
        return
    if not isinstance(role, Following) or role.fetch.ask != ask:
        return
    role.fetch.ask = None
    if not isinstance(reply, FetchReply) or reply.error_code != NO_ERROR or ask.epoch != machine.epoch:
        role.failed_fetches += 1
        role.fetch.due_ms = machine.now_ms + machine.timeouts.retry_backoff_ms
        return
    _note_answer(machine, role)
    role.known_high_watermark = reply.high_watermark
    if reply.snapshot is not None:
        role.snapshot = SnapshotFetch(reply.snapshot)
        send_due(machine)
    elif reply.diverging is not None:
        _cut(machine, reply.diverging)
    elif reply.records:
        role.is_flushing = True
        _learn_high_watermark(machine, reply.high_watermark, ask.offset)
        machine.emit(AppendFetched(records=reply.records, epoch=machine.epoch))
    else:
        _learn_high_watermark(machine, reply.high_watermark, ask.offset)
        send_due(machine)


def _note_answer(machine: QuorumMachine, role: Following) -> None:
    role.deadline_ms = machine.now_ms + machine.timeouts.fetch_ms
    role.has_fetched = True
    role.failed_fetches = 0
    role.fetch.due_ms = machine.now_ms
    machine.lost_its_vote = False


def _learn_high_watermark(machine: QuorumMachine, high_watermark: int, end_offset: int) -> None:
    """What the leader has committed counts here as far as this log is known to agree with the leader's."""
    machine.move_high_watermark(min(high_watermark, end_offset))


def on_appended(machine: QuorumMachine, role: Following) -> None:
    _learn_high_watermark(machine, role.known_high_watermark, machine.log.end_offset)
    if machine.log.flushed_offset >= machine.log.end_offset:
        # The leader's answer held nothing that could be appended.
        role.is_flushing = False
        role.fetch.due_ms = machine.now_ms + machine.timeouts.retry_backoff_ms


def _cut(machine: QuorumMachine, diverging: EpochEnd) -> None:
    offset = truncation_offset(machine.log, diverging)
    assert offset >= machine.high_watermark, (
        f"the leader's log ends epoch {diverging.epoch} at {diverging.end_offset}, but {machine.high_watermark} is "
        "committed here"
    )
    machine.emit(TruncateTo(offset=offset))


def fetch_again(machine: QuorumMachine) -> None:
    """The log was cut: it is on disk as it is, and the next fetch tells whether it agrees now."""
    role = machine.role_state
    if isinstance(role, Following):
        role.is_flushing = machine.log.flushed_offset < machine.log.end_offset
        send_due(machine)


# Snapshots.


def on_snapshot_part(machine: QuorumMachine, ask: SnapshotAsk, reply: Reply | None) -> None:
    role = machine.role_state
    if not isinstance(role, Following) or role.fetch.ask != ask or role.snapshot is None:
        return
    role.fetch.ask = None
    role.fetch.due_ms = machine.now_ms + machine.timeouts.retry_backoff_ms
    if reply is None or ask.epoch != machine.epoch:
        return
    is_part = isinstance(reply, SnapshotReply) and reply.error_code == NO_ERROR
    if not isinstance(reply, SnapshotReply) or not is_part or reply.position != role.snapshot.position:
        # The leader has made another one meanwhile, or this is not what was asked: ask anew what is needed.
        role.snapshot = None
        return
    _note_answer(machine, role)
    if not reply.data and reply.position < reply.size_bytes:
        role.snapshot = None
        role.fetch.due_ms = machine.now_ms + machine.timeouts.retry_backoff_ms
        return
    machine.emit(WriteSnapshotPart(snapshot=ask.snapshot, position=reply.position, data=reply.data))
    role.snapshot.position += len(reply.data)
    if role.snapshot.position >= reply.size_bytes:
        role.snapshot = None
        role.is_flushing = True
        # Should it turn out to be damaged, the leader's own copy may be: the next attempt is not made at once.
        role.fetch.due_ms = machine.now_ms + machine.timeouts.fetch_ms // 2
        machine.emit(InstallSnapshot(snapshot=ask.snapshot))
    else:
        send_due(machine)


def on_installed(machine: QuorumMachine, event: SnapshotInstalled) -> None:
    if event.voters is not None:
        machine.history.restart(event.end_offset, event.voters, event.kraft_version)
    machine.move_high_watermark(event.end_offset)
    if isinstance(machine.role_state, Following):
        machine.role_state.fetch.due_ms = machine.now_ms
    fetch_again(machine)


# Telling the leader about oneself.


def _send_update(machine: QuorumMachine, role: Following) -> None:
    role.update.due_ms = machine.now_ms + machine.timeouts.update_voter_ms
    ask = _update_wanted(machine)
    if ask is not None and role.endpoint is not None and role.has_fetched and not machine.is_stopping:
        role.update.ask = ask
        machine.emit(Send(node_id=role.leader_id, endpoint=role.endpoint, ask=ask))


def _update_wanted(machine: QuorumMachine) -> Ask | None:
    if not machine.can_vote or not machine.listeners:
        return None
    known = machine.history.latest.get(machine.node_id)
    own = machine.own_voter()
    if machine.history.kraft_version < 1:
        # The leader only remembers it, for the day the operator raises kraft.version.
        return UpdateVoterAsk(epoch=machine.epoch, voter=own) if known is not None else None
    if known == own:
        return None
    if known is not None and known.directory_id == machine.key.directory_id:
        return UpdateVoterAsk(epoch=machine.epoch, voter=own)
    if not machine.auto_join or machine.key.directory_id == ZERO_UUID:
        return None
    if known is not None:
        # An earlier disk of this node still has the vote.
        return RemoveVoterAsk(voter=key_of(known))
    return AddVoterAsk(voter=own, acknowledge_when_committed=False)


def on_updated(machine: QuorumMachine, ask: Ask) -> None:
    role = machine.role_state
    if isinstance(role, Following) and role.update.ask == ask:
        role.update.ask = None
        role.update.due_ms = machine.now_ms + machine.timeouts.update_voter_ms
