"""A member of the metadata quorum as a state machine: events in, effects out.

`QuorumMachine.step` is the only way its state changes; time is an argument, and randomness a function passed to the
constructor. The log is read through a `LogView` and changed through effects. Its parts are sets of functions on this
machine: `elections` (votes), `leading` (fetches, the high watermark, checking the quorum), `following` (replication,
snapshots), `voter_changes` (KIP-853).

Invariants
- The epoch never decreases, and within an epoch a replica votes at most once: both are on disk (`PersistState`) before
  they are sent to any node, and effects are executed in order.
- An epoch is led by at most one process. A process that led it before a restart is *resigned* in it and may lead again
  only in a later one (see KAFKA-10527).
- A record is committed when a majority of the voters has it on disk *and* it, or one after it, is of the leader's own
  epoch (Raft, 5.4.2). A replica fetches from its flushed end, so a fetch is the acknowledgement.
- The current voters are those of the newest voter set in the log, from its append on.

A single voter takes all steps of an election at once. The roles and their transitions are described in `roles`.

The loop of a driver: an event is stepped, its effects are executed in order, and their results (responses, appended
records, a flush) are the next events. Here one of three voters is elected; the caller acts as the driver, so it changes
the log itself. `server.metadata.quorum_driver` is the driver of a node, `simulation.raft.bench` that of the tests.

>>> from types import SimpleNamespace
>>> from millbeck.raft.messages import EpochEnd, VoteResponse
>>> from millbeck.raft.voters import static_voters
>>> addresses = {node: VoterEndpoint(name="CONTROLLER", host=f"c{node}", port=9093) for node in (1, 2, 3)}
>>> log = SimpleNamespace(start_offset=0, start_epoch=0, end_offset=0, flushed_offset=0, last_epoch=0, snapshot=None)
>>> machine = QuorumMachine(
...     key=ReplicaKey(1, ZERO_UUID), log=log, history=VoterHistory(static_voters(addresses)), state=None,
...     below=lambda bound: 0, options=QuorumOptions(listeners=(addresses[1],)),
... )
>>> def names(effects):
...     return [type(effect).__name__ for effect in effects]

There is no leader, so after the election timeout the machine requests pre-votes from the two others, and after the
first grant votes. The new epoch and its own vote must be on disk before any request is sent:

>>> machine.step(ProcessStarted(), 0)
[]
>>> effects = machine.step(TimerExpired(), machine.next_deadline_ms)
>>> names(effects), effects[0].ask.is_pre_vote
(['SendRequest', 'SendRequest'], True)
>>> grant = ResponseReceived(node_id=2, ask=effects[0].ask, reply=VoteResponse(is_granted=True))
>>> effects = machine.step(grant, 1001)
>>> names(effects)
['PersistState', 'SendRequest', 'SendRequest', 'ChangeLeader']
>>> effects[0].state.leader_epoch, effects[0].state.voted_id, effects[1].ask.is_pre_vote
(1, 1, False)

One more vote is a majority. The leader announces its epoch and appends the first record of it:

>>> reply = VoteResponse(is_granted=True, leader=Leader(epoch=1))
>>> effects = machine.step(ResponseReceived(node_id=2, ask=effects[1].ask, reply=reply), 1002)
>>> names(effects)
['PersistState', 'SendRequest', 'SendRequest', 'AppendControl', 'ChangeLeader']
>>> log.end_offset = 1
>>> machine.step(LogAppended(end_offset=1), 1002)
[]

The record is committed when a second voter has it too: its next fetch starts at its flushed end offset.

>>> log.flushed_offset = 1
>>> machine.step(LogFlushed(end_offset=1), 1003)
[]
>>> log.end_of_epoch = lambda epoch: EpochEnd(epoch, 1)
>>> fetch = FetchRequest(epoch=1, replica=ReplicaKey(2, ZERO_UUID), offset=1, last_epoch=1)
>>> effects = machine.step(RequestReceived(token=7, ask=fetch), 1004)
>>> names(effects), effects[1].high_watermark
(['ServeFetch', 'MoveHighWatermark'], 1)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from millbeck.kernel.ids import ZERO_UUID
from millbeck.raft import elections, following, leading, voter_changes
from millbeck.raft.effects import ChangeLeader, Effect, MoveHighWatermark, PersistState, SendResponse
from millbeck.raft.events import (
    Event,
    LogAppended,
    LogFlushed,
    LogTruncated,
    ProcessStarted,
    RequestReceived,
    ResignRequested,
    ResponseReceived,
    ShutdownRequested,
    SnapshotInstalled,
    SnapshotTaken,
    TimerExpired,
    UpgradeRequested,
)
from millbeck.raft.log_view import LogView
from millbeck.raft.messages import (
    FENCED_LEADER_EPOCH,
    INVALID_REQUEST,
    INVALID_VOTER_KEY,
    NO_ERROR,
    NOBODY,
    NOT_AVAILABLE,
    NOT_LEADER,
    UNKNOWN_LEADER_EPOCH,
    AddVoterRequest,
    BeginEpochRequest,
    EndEpochRequest,
    FetchRequest,
    RemoveVoterRequest,
    Response,
    SnapshotRequest,
    UpdateVoterRequest,
    VersionsRequest,
    VoteRequest,
)
from millbeck.raft.options import QuorumOptions
from millbeck.raft.quorum_state import NO_NODE, QuorumState
from millbeck.raft.roles import (
    NEVER_MS,
    Election,
    Following,
    Leading,
    Resigned,
    Role,
    RoleState,
    Unattached,
)
from millbeck.raft.voters import Leader, ReplicaKey, VoterHistory, endpoint_for_listener
from millbeck.records.control import Voter, VoterEndpoint


class QuorumMachine:
    """``state`` is the content of the quorum-state file once the pending effects are executed."""

    __slots__ = (
        "auto_join",
        "below",
        "bootstrap",
        "can_vote",
        "effects",
        "election_count",
        "high_watermark",
        "history",
        "is_stopping",
        "key",
        "known_leader",
        "knows_committed",
        "listener_name",
        "listeners",
        "log",
        "lost_its_vote",
        "now_ms",
        "role_state",
        "search_index",
        "state",
        "timeouts",
    )

    def __init__(
        self,
        *,
        key: ReplicaKey,
        log: LogView,
        history: VoterHistory,
        state: QuorumState | None,
        below: Callable[[int], int],
        options: QuorumOptions,
    ) -> None:
        """``below`` returns a random number below its argument."""
        self.key = key
        self.log = log
        self.history = history
        self.can_vote = options.can_vote
        self.timeouts = options.timeouts
        self.listeners = options.listeners
        self.listener_name = options.listener_name
        self.bootstrap = options.bootstrap
        self.auto_join = options.auto_join
        self.below = below
        # Without quorum-state a voter does not know its vote: it must not vote before it has seen a leader that
        # others elected. If the log is empty as well, the node is new.
        self.lost_its_vote = state is None and log.end_offset > 0
        self.state = state or QuorumState(current_voters=history.latest.ids)
        self.role_state: RoleState = Unattached(NEVER_MS, NEVER_MS)
        self.high_watermark = -1 if log.snapshot is None or not log.snapshot.end_offset else log.snapshot.end_offset
        self.knows_committed = False
        self.known_leader = Leader(epoch=self.state.leader_epoch)
        self.is_stopping = False
        self.election_count = 0
        self.search_index = 0
        self.now_ms = 0
        self.effects: list[Effect] = []

    # Reading.

    @property
    def node_id(self) -> int:
        return self.key.node_id

    @property
    def epoch(self) -> int:
        return self.state.leader_epoch

    @property
    def role(self) -> Role:
        match self.role_state:
            case Unattached():
                return Role.UNATTACHED
            case Election(is_pre_vote=is_pre_vote):
                return Role.PROSPECTIVE if is_pre_vote else Role.CANDIDATE
            case Leading():
                return Role.LEADER
            case Following():
                return Role.FOLLOWER
            case Resigned():
                return Role.RESIGNED
            case _:
                assert_never(self.role_state)

    @property
    def is_leader(self) -> bool:
        return isinstance(self.role_state, Leading)

    @property
    def is_voter(self) -> bool:
        return self.can_vote and self.history.latest.has(self.key)

    @property
    def is_electable(self) -> bool:
        """Whether this replica may start elections: it is a voter, or its removal is not known to be committed.

        In that case its log may be the only one with all committed records (Raft, 4.2.2).
        """
        if self.is_voter or not self.can_vote:
            return self.is_voter
        history = self.history
        is_open = history.latest_offset >= self.high_watermark
        return is_open and history.previous is not None and history.previous.has(self.key)

    @property
    def epoch_start_offset(self) -> int:
        """Start offset of the epoch on the leader; -1 on other nodes."""
        return self.role_state.epoch_start_offset if isinstance(self.role_state, Leading) else -1

    @property
    def leader(self) -> Leader:
        """The leader of the epoch, if this node knows it."""
        match self.role_state:
            case Leading():
                endpoint = next(iter(self.listeners), None)
                return Leader(node_id=self.node_id, epoch=self.epoch, endpoint=endpoint)
            case Following(leader_id=leader_id, endpoint=endpoint):
                return Leader(node_id=leader_id, epoch=self.epoch, endpoint=endpoint)
            case _:
                return Leader(epoch=self.epoch)

    @property
    def next_deadline_ms(self) -> int:
        """The time at which `TimerExpired` must be stepped; `NEVER_MS` if no timer is set."""
        match self.role_state:
            case Unattached(deadline_ms=deadline_ms, search_ms=search_ms):
                return min(deadline_ms, search_ms)
            case Election():
                return elections.next_deadline_ms(self.role_state)
            case Leading():
                return leading.next_deadline_ms(self.role_state)
            case Following():
                return following.next_deadline_ms(self.role_state)
            case Resigned():
                requests = self.role_state.end_epoch_requests.values()
                return min([self.role_state.deadline_ms, *(pending.next_ms for pending in requests)])
            case _:
                assert_never(self.role_state)

    # Stepping.

    def step(self, event: Event, now_ms: int) -> list[Effect]:
        """Process ``event`` and return its effects; ``now_ms`` is a monotonic clock."""
        self.now_ms = now_ms
        self.effects = []
        match event:
            case ProcessStarted():
                self._on_started()
            case TimerExpired():
                self._on_time()
            case LogAppended():
                self._on_appended(event)
            case LogFlushed():
                self._on_flushed(event)
            case LogTruncated():
                self.history.truncated(event.end_offset)
                following.fetch_again(self)
            case SnapshotTaken():
                self.history.truncate_old_entries(event.end_offset)
            case SnapshotInstalled():
                following.on_installed(self, event)
            case RequestReceived():
                self._on_asked(event)
            case ResponseReceived():
                self._on_answered(event)
            case UpgradeRequested():
                voter_changes.on_upgrade(self, event.token)
            case ResignRequested():
                if self.is_leader and event.epoch == self.epoch:
                    self.resign()
            case ShutdownRequested():
                self._on_shutdown()
            case _:
                assert_never(event)
        self._announce_leader()
        self.check_invariants()
        return self.effects

    def check_invariants(self) -> None:
        """Check the invariants that are cheap enough to check after every step."""
        role = self.role_state
        if isinstance(role, Leading):
            assert self.state.leader_id == self.node_id, f"leader, but the state names {self.state.leader_id} as leader"
            assert role.epoch_start_offset >= 0, "leader without a first record of the epoch"
        if isinstance(role, Following):
            assert self.state.leader_id == role.leader_id, (
                f"follower of {role.leader_id}, but the state names {self.state.leader_id} as leader"
            )
            assert role.leader_id != self.node_id, "follows itself"
        if isinstance(role, Election) and not role.is_pre_vote:
            assert self.state.voted_id == self.node_id, "candidate without its own vote"

    def emit(self, effect: Effect) -> None:
        self.effects.append(effect)

    def answer(self, token: int, reply: Response) -> None:
        self.emit(SendResponse(token=token, reply=reply))

    def refusal(self, error_code: int, message: str = "") -> Response:
        return Response(error_code=error_code, message=message, leader=self.leader)

    def move_high_watermark(self, high_watermark: int) -> None:
        """Advance the high watermark, never back. The first one of a process is always emitted, even if the snapshot
        ends there."""
        is_first = high_watermark == self.high_watermark >= 0 and not self.knows_committed
        if high_watermark > self.high_watermark or is_first:
            self.high_watermark = high_watermark
            self.knows_committed = True
            self.emit(MoveHighWatermark(high_watermark=high_watermark))

    def random_election_timeout_ms(self) -> int:
        """A random timeout of one to two election timeouts, so that candidates do not repeatedly split the votes."""
        election_ms = self.timeouts.election_ms
        return election_ms + (self.below(election_ms) if election_ms else 0)

    # Changing roles: the state is persisted before any effect that depends on it.

    def persist(self, *, epoch: int, leader_id: int = NO_NODE, voted: ReplicaKey = NOBODY) -> None:
        version = 1 if self.history.kraft_version >= 1 else 0
        state = QuorumState(
            version=version,
            leader_epoch=epoch,
            leader_id=leader_id,
            voted_id=voted.node_id,
            voted_directory_id=voted.directory_id if version == 1 and voted != NOBODY else ZERO_UUID,
            cluster_id=self.state.cluster_id if version == 0 else "",
            current_voters=self.history.latest.ids if version == 0 else (),
        )
        assert epoch >= self.epoch, f"epoch {epoch} after {self.epoch}"
        if state != self.state:
            self.state = state
            self.emit(PersistState(state=state))

    @property
    def voted(self) -> ReplicaKey:
        """The candidate this replica voted for in the epoch; `NOBODY` if it has not voted."""
        if self.state.voted_id == NO_NODE:
            return NOBODY
        return ReplicaKey(self.state.voted_id, self.state.voted_directory_id)

    def become_unattached(self, epoch: int) -> None:
        """Enter ``epoch`` without a known leader."""
        self._leave_role()
        if epoch > self.epoch:
            self.persist(epoch=epoch)
        deadline_ms = self.now_ms + self.random_election_timeout_ms() if self.is_electable else NEVER_MS
        self.role_state = Unattached(deadline_ms, NEVER_MS if self.is_voter else self.now_ms)

    def become_follower(self, epoch: int, leader_id: int, endpoint: VoterEndpoint | None) -> None:
        assert leader_id != self.node_id, "a leader does not follow"
        self._leave_role()
        voted = self.voted if epoch == self.epoch else NOBODY
        self.persist(epoch=epoch, leader_id=leader_id, voted=voted)
        self.election_count = 0
        self.role_state = following.begin(
            self, leader_id, endpoint or self.history.latest.endpoint_of(leader_id, self.listener_name)
        )
        following.send_due_requests(self)

    def resign(self) -> None:
        """Resign as leader of this epoch and send EndQuorumEpoch with the preferred successors."""
        assert isinstance(self.role_state, Leading)
        successors = leading.successors(self, self.role_state)
        self._leave_role()
        self.role_state = Resigned(self.now_ms + self.random_election_timeout_ms(), successors)
        elections.send_end_quorum_epoch(self)

    def _leave_role(self) -> None:
        if isinstance(self.role_state, Leading):
            voter_changes.abandon(self, self.role_state)

    def _announce_leader(self) -> None:
        if self.leader != self.known_leader:
            self.known_leader = self.leader
            self.emit(ChangeLeader(leader=self.known_leader))

    # Events handled in every role.

    def _on_started(self) -> None:
        last_epoch = self.log.last_epoch
        if last_epoch > self.epoch:
            # The file is older than the log: an epoch in the log had a leader.
            self.persist(epoch=last_epoch)
        if self.history.latest.is_only(self.key) and self.can_vote:
            self.lost_its_vote = False
            elections.stand(self)
        elif self.state.leader_id == self.node_id:
            # It led this epoch before the restart and may have lost records it appended, so it must not lead it again.
            self.role_state = Resigned(self.now_ms + self.random_election_timeout_ms())
            elections.send_end_quorum_epoch(self)
        elif self.state.leader_id != NO_NODE:
            self.become_follower(self.epoch, self.state.leader_id, None)
        else:
            self.become_unattached(self.epoch)
            following.find_leader_if_due(self)

    def _on_time(self) -> None:
        match self.role_state:
            case Unattached():
                if self.now_ms >= self.role_state.deadline_ms:
                    elections.start_pre_vote(self)
                else:
                    following.find_leader_if_due(self)
            case Election():
                elections.on_time(self, self.role_state)
            case Leading():
                leading.on_time(self, self.role_state)
            case Following():
                following.on_time(self, self.role_state)
            case Resigned():
                elections.on_time_resigned(self, self.role_state)
            case _:
                assert_never(self.role_state)

    def _on_appended(self, event: LogAppended) -> None:
        for offset, value in event.changes:
            self.history.appended(offset, value)
        if isinstance(self.role_state, Leading):
            leading.on_appended(self, self.role_state, bool(event.changes))
        elif isinstance(self.role_state, Following):
            following.on_appended(self, self.role_state)

    def _on_flushed(self, event: LogFlushed) -> None:
        if isinstance(self.role_state, Leading):
            leading.advance_high_watermark(self, self.role_state)
        elif isinstance(self.role_state, Following) and event.end_offset >= self.log.end_offset:
            self.role_state.is_flushing = False
            following.send_due_requests(self)

    def _on_shutdown(self) -> None:
        self.is_stopping = True
        if self.is_leader:
            self.resign()
        elif not isinstance(self.role_state, Resigned):
            self._leave_role()
            self.role_state = Unattached(NEVER_MS, NEVER_MS)

    @property
    def is_stopped(self) -> bool:
        """Whether the shutdown can complete: the other voters were notified, or need not be."""
        return self.is_stopping and not (isinstance(self.role_state, Resigned) and self.role_state.end_epoch_requests)

    # Requests.

    def _on_asked(self, event: RequestReceived) -> None:
        ask = event.ask
        match ask:
            case VoteRequest():
                elections.on_vote_asked(self, event.token, ask)
            case BeginEpochRequest():
                self._on_epoch_begun(event.token, ask)
            case EndEpochRequest():
                self._on_epoch_ended(event.token, ask)
            case FetchRequest():
                leading.on_fetch_request(self, event.token, ask)
            case SnapshotRequest():
                leading.on_fetch_snapshot_request(self, event.token, ask)
            case AddVoterRequest():
                voter_changes.on_add(self, event.token, ask)
            case RemoveVoterRequest():
                voter_changes.on_remove(self, event.token, ask)
            case UpdateVoterRequest():
                voter_changes.on_update(self, event.token, ask)
            case VersionsRequest():
                self.answer(event.token, self.refusal(INVALID_REQUEST))
            case _:
                assert_never(ask)

    def validate_voter_request(self, node_id: int, epoch: int) -> int:
        """Validate a request between voters; returns its error code, 0 for none."""
        if self.is_stopping:
            return NOT_AVAILABLE
        if node_id < 0:
            return INVALID_REQUEST
        return FENCED_LEADER_EPOCH if epoch < self.epoch else NO_ERROR

    def is_addressed_to_me(self, voter: ReplicaKey) -> bool:
        """Whether a request is addressed to this replica, and not to a former directory of this node."""
        if voter == NOBODY:
            return True
        return voter.node_id == self.node_id and voter.directory_id in (ZERO_UUID, self.key.directory_id)

    def _on_epoch_begun(self, token: int, ask: BeginEpochRequest) -> None:
        error = self.validate_voter_request(ask.leader_id, ask.epoch)
        if not error and not self.learn(Leader(node_id=ask.leader_id, epoch=ask.epoch, endpoint=self._first(ask))):
            error = INVALID_REQUEST
        if not error and not self.is_addressed_to_me(ask.voter):
            error = INVALID_VOTER_KEY
        self.answer(token, self.refusal(error))

    def _on_epoch_ended(self, token: int, ask: EndEpochRequest) -> None:
        error = self.validate_voter_request(ask.leader_id, ask.epoch)
        if not error and not self.learn(Leader(node_id=ask.leader_id, epoch=ask.epoch, endpoint=self._first(ask))):
            error = INVALID_REQUEST
        if not error and isinstance(self.role_state, Following) and self.role_state.leader_id == ask.leader_id:
            elections.on_leader_resigned(self, self.role_state, ask)
        self.answer(token, self.refusal(error))

    def _first(self, ask: BeginEpochRequest | EndEpochRequest) -> VoterEndpoint | None:
        return self.endpoint_for(ask.endpoints) or self.history.latest.endpoint_of(ask.leader_id, self.listener_name)

    def endpoint_for(self, endpoints: tuple[VoterEndpoint, ...]) -> VoterEndpoint | None:
        """The endpoint at which this node connects to a node with these endpoints."""
        return endpoint_for_listener(endpoints, self.listener_name)

    # Responses.

    def learn(self, leader: Leader) -> bool:
        """Apply another node's view of the epoch and leader if it is newer; False if it conflicts with this node's
        view."""
        if leader.epoch < self.epoch:
            return True
        if leader.epoch == self.epoch:
            if not leader.is_known or leader.node_id == self.node_id:
                return leader.node_id != self.node_id or self.state.leader_id == self.node_id
            if self.state.leader_id not in (NO_NODE, leader.node_id):
                return False
            if self.state.leader_id == leader.node_id and isinstance(self.role_state, Election):
                # The leader is known, but this node asks others because it does not respond.
                return True
        if leader.is_known and leader.node_id != self.node_id:
            if not isinstance(self.role_state, Following) or leader.epoch > self.epoch:
                self.become_follower(leader.epoch, leader.node_id, leader.endpoint)
            elif self.role_state.endpoint is None and leader.endpoint is not None:
                self.role_state.endpoint = leader.endpoint
                following.send_due_requests(self)
        elif leader.epoch > self.epoch:
            self.become_unattached(leader.epoch)
            following.find_leader_if_due(self)
        return True

    def _on_answered(self, event: ResponseReceived) -> None:
        if self.is_stopping and not isinstance(self.role_state, Resigned):
            return
        reply = event.reply
        is_useful = reply is not None and self._is_still_of_use(reply)
        ask = event.ask
        match ask:
            case VoteRequest():
                elections.on_vote_response(self, event.node_id, ask, reply if is_useful else None)
            case BeginEpochRequest():
                leading.on_begin_quorum_epoch_response(self, event.node_id, ask, reply if is_useful else None)
            case EndEpochRequest():
                elections.on_end_quorum_epoch_response(self, event.node_id, ask, reply)
            case FetchRequest():
                following.on_fetched(self, ask, reply if is_useful else None)
            case SnapshotRequest():
                following.on_snapshot_part(self, ask, reply if is_useful else None)
            case VersionsRequest():
                voter_changes.on_api_versions_response(self, ask, reply)
            case AddVoterRequest() | RemoveVoterRequest() | UpdateVoterRequest():
                following.on_updated(self, ask)
            case _:
                assert_never(ask)

    def _is_still_of_use(self, reply: Response) -> bool:
        """Learn the leader from a response; False if the response needs no further handling."""
        if reply.leader.epoch < self.epoch or reply.error_code == UNKNOWN_LEADER_EPOCH:
            return False
        has_news = reply.leader.epoch > self.epoch or reply.error_code in (FENCED_LEADER_EPOCH, NOT_LEADER)
        self.learn(reply.leader)
        return not has_news

    def own_voter(self) -> Voter:
        """This replica's entry for a voters record."""
        return Voter(
            node_id=self.node_id,
            directory_id=self.key.directory_id,
            endpoints=self.listeners,
            kraft_version_min=0,
            kraft_version_max=1,
        )
