"""Followers: fetching the leader's log, truncating divergent records, loading snapshots, and discovering the leader.

One fetch is in flight at a time. Its records are appended and flushed before the next one is sent, because a fetch
offset acknowledges that everything below is on this disk. Observers do the same, but their fetches are not counted. A
replica that knows no leader and is not a voter asks one node after another, and each response names the leader; while
the known leader does not respond, every second fetch goes to another node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millbeck.kernel.ids import ZERO_UUID
from millbeck.raft import elections
from millbeck.raft.effects import (
    AppendFetched,
    InstallSnapshot,
    SendRequest,
    TruncateTo,
    WriteSnapshotPart,
)
from millbeck.raft.log_view import truncation_offset
from millbeck.raft.messages import (
    NO_ERROR,
    AddVoterRequest,
    EpochEnd,
    FetchRequest,
    FetchResponse,
    RemoveVoterRequest,
    Request,
    Response,
    SnapshotRequest,
    SnapshotResponse,
    UpdateVoterRequest,
)
from millbeck.raft.roles import NEVER_MS, FetchingSnapshot, Following, PendingRequest, Unattached
from millbeck.raft.voters import key_of
from millbeck.records.control import VoterEndpoint

if TYPE_CHECKING:
    from millbeck.raft.events import SnapshotInstalled
    from millbeck.raft.machine import QuorumMachine

BOOTSTRAP_ID_FIRST = -2
"""Bootstrap servers, whose node ids are unknown, get ids that count down from here, as in Kafka."""


def begin(machine: QuorumMachine, leader_id: int, endpoint: VoterEndpoint | None) -> Following:
    role = Following(leader_id, endpoint, machine.now_ms + machine.timeouts.fetch_ms)
    role.fetch = PendingRequest(machine.now_ms)
    role.is_flushing = machine.log.flushed_offset < machine.log.end_offset
    role.update = PendingRequest(machine.now_ms + machine.timeouts.update_voter_ms)
    return role


def next_deadline_ms(role: Following) -> int:
    deadlines = [role.deadline_ms, role.update.next_ms]
    if not role.is_flushing and role.endpoint is not None:
        deadlines.append(role.fetch.next_ms)
    return min(deadlines)


def on_time(machine: QuorumMachine, role: Following) -> None:
    if machine.now_ms >= role.deadline_ms:
        on_fetch_timeout(machine)
        return
    if machine.now_ms >= role.update.next_ms:
        _send_update(machine, role)
    send_due_requests(machine)


def on_fetch_timeout(machine: QuorumMachine) -> None:
    if machine.is_electable:
        elections.start_pre_vote(machine)
    else:
        machine.become_unattached(machine.epoch)
        find_leader_if_due(machine)


# Sending requests.


def send_due_requests(machine: QuorumMachine) -> None:
    """Send the next fetch, unless one is in flight or the records of the last one are not flushed."""
    role = machine.role_state
    if not isinstance(role, Following) or role.is_flushing or role.fetch.next_ms > machine.now_ms:
        return
    if role.endpoint is None or machine.is_stopping:
        return
    node_id, endpoint = role.leader_id, role.endpoint
    if role.snapshot is None:
        role.fetch.ask = _fetch_ask(machine)
        if role.failed_fetches % 2 and not machine.is_electable:
            # Voters are notified of a new leader, and detect a failed one by timeout. Observers learn of it by asking
            # another node.
            node_id, endpoint = _next_place(machine, but=role.leader_id) or (node_id, endpoint)
    else:
        role.fetch.ask = SnapshotRequest(
            epoch=machine.epoch,
            replica=machine.key,
            snapshot=role.snapshot.snapshot,
            position=role.snapshot.position,
        )
    machine.emit(SendRequest(node_id=node_id, endpoint=endpoint, ask=role.fetch.ask))


def _fetch_ask(machine: QuorumMachine) -> FetchRequest:
    return FetchRequest(
        epoch=machine.epoch,
        replica=machine.key,
        offset=machine.log.end_offset,
        last_epoch=machine.log.last_epoch,
        high_watermark=machine.high_watermark,
    )


def find_leader_if_due(machine: QuorumMachine) -> None:
    """An observer without a leader asks the next known node."""
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
    machine.emit(SendRequest(node_id=node_id, endpoint=endpoint, ask=role.searching))


def _next_place(machine: QuorumMachine, *, but: int | None = None) -> tuple[int, VoterEndpoint] | None:
    """Return the next node to ask, round robin."""
    places = [place for place in _places(machine) if place[0] != but]
    if not places:
        return None
    machine.search_index += 1
    return places[(machine.search_index - 1) % len(places)]


def _places(machine: QuorumMachine) -> list[tuple[int, VoterEndpoint]]:
    voters = [
        (voter.node_id, place)
        for voter in machine.history.latest.voters
        if voter.node_id != machine.node_id and (place := machine.endpoint_for(voter.endpoints)) is not None
    ]
    servers = [(BOOTSTRAP_ID_FIRST - index, endpoint) for index, endpoint in enumerate(machine.bootstrap)]
    return servers + voters


# Handling responses.


def on_fetched(machine: QuorumMachine, ask: FetchRequest, reply: Response | None) -> None:
    role = machine.role_state
    if isinstance(role, Unattached):
        if role.searching == ask:
            role.searching = None
            role.search_ms = machine.now_ms + machine.timeouts.retry_backoff_ms
        return
    if not isinstance(role, Following) or role.fetch.ask != ask:
        return
    role.fetch.ask = None
    if not isinstance(reply, FetchResponse) or reply.error_code != NO_ERROR or ask.epoch != machine.epoch:
        role.failed_fetches += 1
        role.fetch.due_ms = machine.now_ms + machine.timeouts.retry_backoff_ms
        return
    _note_answer(machine, role)
    role.known_high_watermark = reply.high_watermark
    if reply.snapshot is not None:
        role.snapshot = FetchingSnapshot(reply.snapshot)
        send_due_requests(machine)
    elif reply.diverging is not None:
        _cut(machine, reply.diverging)
    elif reply.records:
        role.is_flushing = True
        _learn_high_watermark(machine, reply.high_watermark, ask.offset)
        machine.emit(AppendFetched(records=reply.records, epoch=machine.epoch))
    else:
        _learn_high_watermark(machine, reply.high_watermark, ask.offset)
        send_due_requests(machine)


def _note_answer(machine: QuorumMachine, role: Following) -> None:
    role.deadline_ms = machine.now_ms + machine.timeouts.fetch_ms
    role.has_fetched = True
    role.failed_fetches = 0
    role.fetch.due_ms = machine.now_ms
    machine.lost_its_vote = False


def _learn_high_watermark(machine: QuorumMachine, high_watermark: int, end_offset: int) -> None:
    """Advance to the leader's high watermark, up to the offset where this log is known to match the leader's."""
    machine.move_high_watermark(min(high_watermark, end_offset))


def on_appended(machine: QuorumMachine, role: Following) -> None:
    _learn_high_watermark(machine, role.known_high_watermark, machine.log.end_offset)
    if machine.log.flushed_offset >= machine.log.end_offset:
        # The leader's response had no records to append.
        role.is_flushing = False
        role.fetch.due_ms = machine.now_ms + machine.timeouts.retry_backoff_ms


def _cut(machine: QuorumMachine, diverging: EpochEnd) -> None:
    offset = truncation_offset(machine.log, diverging)
    assert offset >= machine.high_watermark, (
        f"the leader's log ends epoch {diverging.epoch} at {diverging.end_offset}, below this replica's high watermark "
        f"{machine.high_watermark}"
    )
    machine.emit(TruncateTo(offset=offset))


def fetch_again(machine: QuorumMachine) -> None:
    """Fetch again after a durable truncation: the response shows whether the log matches the leader's."""
    role = machine.role_state
    if isinstance(role, Following):
        role.is_flushing = machine.log.flushed_offset < machine.log.end_offset
        send_due_requests(machine)


# Snapshots.


def on_snapshot_part(machine: QuorumMachine, ask: SnapshotRequest, reply: Response | None) -> None:
    role = machine.role_state
    if not isinstance(role, Following) or role.fetch.ask != ask or role.snapshot is None:
        return
    role.fetch.ask = None
    role.fetch.due_ms = machine.now_ms + machine.timeouts.retry_backoff_ms
    if reply is None or ask.epoch != machine.epoch:
        return
    is_part = isinstance(reply, SnapshotResponse) and reply.error_code == NO_ERROR
    if not isinstance(reply, SnapshotResponse) or not is_part or reply.position != role.snapshot.position:
        # The leader has a newer snapshot, or this response does not match the request: start over.
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
        # If the snapshot is damaged, the leader's copy may be damaged too: do not retry at once.
        role.fetch.due_ms = machine.now_ms + machine.timeouts.fetch_ms // 2
        machine.emit(InstallSnapshot(snapshot=ask.snapshot))
    else:
        send_due_requests(machine)


def on_installed(machine: QuorumMachine, event: SnapshotInstalled) -> None:
    if event.voters is not None:
        machine.history.restart(event.end_offset, event.voters, event.kraft_version)
    machine.move_high_watermark(event.end_offset)
    if isinstance(machine.role_state, Following):
        machine.role_state.fetch.due_ms = machine.now_ms
    fetch_again(machine)


# Updating this voter's registration.


def _send_update(machine: QuorumMachine, role: Following) -> None:
    role.update.due_ms = machine.now_ms + machine.timeouts.update_voter_ms
    ask = _update_wanted(machine)
    if ask is not None and role.endpoint is not None and role.has_fetched and not machine.is_stopping:
        role.update.ask = ask
        machine.emit(SendRequest(node_id=role.leader_id, endpoint=role.endpoint, ask=ask))


def _update_wanted(machine: QuorumMachine) -> Request | None:
    if not machine.can_vote or not machine.listeners:
        return None
    known = machine.history.latest.get(machine.node_id)
    own = machine.own_voter()
    if machine.history.kraft_version < 1:
        # The leader only keeps it in memory until the operator upgrades kraft.version.
        return UpdateVoterRequest(epoch=machine.epoch, voter=own) if known is not None else None
    if known == own:
        return None
    if known is not None and known.directory_id == machine.key.directory_id:
        return UpdateVoterRequest(epoch=machine.epoch, voter=own)
    if not machine.auto_join or machine.key.directory_id == ZERO_UUID:
        return None
    if known is not None:
        # The voter is still an earlier directory of this node.
        return RemoveVoterRequest(voter=key_of(known))
    return AddVoterRequest(voter=own, acknowledge_when_committed=False)


def on_updated(machine: QuorumMachine, ask: Request) -> None:
    role = machine.role_state
    if isinstance(role, Following) and role.update.ask == ask:
        role.update.ask = None
        role.update.due_ms = machine.now_ms + machine.timeouts.update_voter_ms
