"""A member of the metadata quorum as a state machine: events in, effects out.

`QuorumMachine.step` is the only way its state changes; time comes as an argument, chance as a
function given at the start. The log is read through a `LogView` and changed through effects. The parts: `electing`
(votes), `leading` (fetches, the high watermark, the quorum's check), `following` (replication, snapshots), `changing`
(voters), each a set of functions of this machine.

Rules that everything here keeps
- The epoch never goes back, and within an epoch a replica votes at most once: both are on disk (`PersistState`) before
  anybody hears of them, and effects are carried out in order.
- An epoch is led by one process at most. What led it before a restart is *resigned* in it and begins with the next
  (KAFKA-10527 tells what happens otherwise).
- A record is committed when a majority of the voters has it on disk *and* it, or one after it, is of the leader's own
  epoch (Raft, 5.4.2). A replica fetches from its flushed end, so a fetch is the acknowledgement.
- The voters are those of the newest set in the log, from its append on.

A node that is the only voter takes all steps of an election at once and waits for nobody. Roles and the ways between
them are told in `roles`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from millbeck.kernel.ids import ZERO_UUID
from millbeck.raft import changing, electing, following, leading
from millbeck.raft.effects import Answer, ChangeLeader, Effect, MoveHighWatermark, PersistState
from millbeck.raft.events import (
    Answered,
    Asked,
    Event,
    LogAppended,
    LogFlushed,
    LogTruncated,
    ResignRequested,
    ShutdownRequested,
    SnapshotInstalled,
    SnapshotTaken,
    Started,
    TimePassed,
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
    AddVoterAsk,
    BeginEpochAsk,
    EndEpochAsk,
    FetchAsk,
    RemoveVoterAsk,
    Reply,
    SnapshotAsk,
    UpdateVoterAsk,
    VersionsAsk,
    VoteAsk,
)
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
from millbeck.raft.timeouts import QuorumTimeouts
from millbeck.raft.voters import Leader, ReplicaKey, VoterHistory, endpoint_by
from millbeck.records.control import Voter, VoterEndpoint


class QuorumMachine:
    """``state`` is what the file says, or what it will say once the effects are done."""

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
        can_vote: bool = True,
        timeouts: QuorumTimeouts | None = None,
        listeners: tuple[VoterEndpoint, ...] = (),
        listener_name: str = "",
        bootstrap: tuple[VoterEndpoint, ...] = (),
        auto_join: bool = False,
    ) -> None:
        """``below`` draws a number below its argument; ``bootstrap`` says where somebody may know the leader;
        ``listener_name`` is the one of the others' listeners that this node uses, the first where it is not named."""
        self.key = key
        self.log = log
        self.history = history
        self.can_vote = can_vote
        self.timeouts = timeouts or QuorumTimeouts()
        self.listeners = listeners
        self.listener_name = listener_name
        self.bootstrap = bootstrap
        self.auto_join = auto_join
        self.below = below
        # Without its file a voter cannot know what it promised: it must not promise anything else before it has seen
        # a leader that others elected. A log that is empty, too, has never been anywhere.
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

    # What it is.

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
    def may_stand(self) -> bool:
        """Whether this replica may be elected: it votes, or its removal is not known to be committed.

        Its log may be the only one that others can be brought up to date from (Raft, 4.2.2).
        """
        if self.is_voter or not self.can_vote:
            return self.is_voter
        history = self.history
        is_open = history.latest_offset >= self.high_watermark
        return is_open and history.previous is not None and history.previous.has(self.key)

    @property
    def epoch_start_offset(self) -> int:
        """Where the leader's epoch begins in its log; -1 on everybody else."""
        return self.role_state.epoch_start_offset if isinstance(self.role_state, Leading) else -1

    @property
    def leader(self) -> Leader:
        """The leader of the epoch, as far as this node knows."""
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
        """When `TimePassed` is due at the latest; `NEVER_MS` when nothing waits for time."""
        match self.role_state:
            case Unattached(deadline_ms=deadline_ms, search_ms=search_ms):
                return min(deadline_ms, search_ms)
            case Election():
                return electing.next_deadline_ms(self.role_state)
            case Leading():
                return leading.next_deadline_ms(self.role_state)
            case Following():
                return following.next_deadline_ms(self.role_state)
            case Resigned():
                errands = self.role_state.farewells.values()
                return min([self.role_state.deadline_ms, *(errand.next_ms for errand in errands)])
            case _:
                assert_never(self.role_state)

    # Stepping.

    def step(self, event: Event, now_ms: int) -> list[Effect]:
        """What is to be done because of ``event``; ``now_ms`` is a clock that never goes back."""
        self.now_ms = now_ms
        self.effects = []
        match event:
            case Started():
                self._on_started()
            case TimePassed():
                self._on_time()
            case LogAppended():
                self._on_appended(event)
            case LogFlushed():
                self._on_flushed(event)
            case LogTruncated():
                self.history.truncated(event.end_offset)
                following.fetch_again(self)
            case SnapshotTaken():
                self.history.forget_before(event.end_offset)
            case SnapshotInstalled():
                following.on_installed(self, event)
            case Asked():
                self._on_asked(event)
            case Answered():
                self._on_answered(event)
            case UpgradeRequested():
                changing.on_upgrade(self, event.token)
            case ResignRequested():
                if self.is_leader and event.epoch == self.epoch:
                    self.resign()
            case ShutdownRequested():
                self._on_shutdown()
            case _:
                assert_never(event)
        self._tell_of_leader()
        self.check_invariants()
        return self.effects

    def check_invariants(self) -> None:
        """Cheap enough for every step."""
        role = self.role_state
        if isinstance(role, Leading):
            assert self.state.leader_id == self.node_id, f"leads, but the state names {self.state.leader_id}"
            assert role.epoch_start_offset >= 0, "leads without a first record of the epoch"
        if isinstance(role, Following):
            assert self.state.leader_id == role.leader_id, f"follows {role.leader_id}, not {self.state.leader_id}"
            assert role.leader_id != self.node_id, "follows itself"
        if isinstance(role, Election) and not role.is_pre_vote:
            assert self.state.voted_id == self.node_id, "stands for election without its own vote"

    def emit(self, effect: Effect) -> None:
        self.effects.append(effect)

    def answer(self, token: int, reply: Reply) -> None:
        self.emit(Answer(token=token, reply=reply))

    def refusal(self, error_code: int, message: str = "") -> Reply:
        return Reply(error_code=error_code, message=message, leader=self.leader)

    def move_high_watermark(self, high_watermark: int) -> None:
        """Forward only. The first one a process learns is told even when its snapshot ends there."""
        is_first = high_watermark == self.high_watermark >= 0 and not self.knows_committed
        if high_watermark > self.high_watermark or is_first:
            self.high_watermark = high_watermark
            self.knows_committed = True
            self.emit(MoveHighWatermark(high_watermark=high_watermark))

    def draw_election_ms(self) -> int:
        """Between once and twice the timeout, so that rivals do not keep meeting."""
        election_ms = self.timeouts.election_ms
        return election_ms + (self.below(election_ms) if election_ms else 0)

    # Changing roles: the state is persisted before anything that follows from it.

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
        """Whom this replica voted for in the epoch; `NOBODY` when it has not."""
        if self.state.voted_id == NO_NODE:
            return NOBODY
        return ReplicaKey(self.state.voted_id, self.state.voted_directory_id)

    def become_unattached(self, epoch: int) -> None:
        """Know of ``epoch``, and of no leader in it."""
        self._leave_role()
        if epoch > self.epoch:
            self.persist(epoch=epoch)
        deadline_ms = self.now_ms + self.draw_election_ms() if self.may_stand else NEVER_MS
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
        following.send_due(self)

    def resign(self) -> None:
        """Lead no more in this epoch, and tell the others, who should stand first."""
        assert isinstance(self.role_state, Leading)
        successors = leading.successors(self, self.role_state)
        self._leave_role()
        self.role_state = Resigned(self.now_ms + self.draw_election_ms(), successors)
        electing.say_farewell(self)

    def _leave_role(self) -> None:
        if isinstance(self.role_state, Leading):
            changing.abandon(self, self.role_state)

    def _tell_of_leader(self) -> None:
        if self.leader != self.known_leader:
            self.known_leader = self.leader
            self.emit(ChangeLeader(leader=self.known_leader))

    # Events that do not belong to one role.

    def _on_started(self) -> None:
        last_epoch = self.log.last_epoch
        if last_epoch > self.epoch:
            # The file is older than the log: an epoch in the log was led by someone.
            self.persist(epoch=last_epoch)
        if self.history.latest.is_only(self.key) and self.can_vote:
            self.lost_its_vote = False
            electing.stand(self)
        elif self.state.leader_id == self.node_id:
            # It led this epoch before the restart, and what it appended last may be lost: never again in this epoch.
            self.role_state = Resigned(self.now_ms + self.draw_election_ms())
            electing.say_farewell(self)
        elif self.state.leader_id != NO_NODE:
            self.become_follower(self.epoch, self.state.leader_id, None)
        else:
            self.become_unattached(self.epoch)
            following.search_if_due(self)

    def _on_time(self) -> None:
        match self.role_state:
            case Unattached():
                if self.now_ms >= self.role_state.deadline_ms:
                    electing.ask_around(self)
                else:
                    following.search_if_due(self)
            case Election():
                electing.on_time(self, self.role_state)
            case Leading():
                leading.on_time(self, self.role_state)
            case Following():
                following.on_time(self, self.role_state)
            case Resigned():
                electing.on_time_resigned(self, self.role_state)
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
            following.send_due(self)

    def _on_shutdown(self) -> None:
        self.is_stopping = True
        if self.is_leader:
            self.resign()
        elif not isinstance(self.role_state, Resigned):
            self._leave_role()
            self.role_state = Unattached(NEVER_MS, NEVER_MS)

    @property
    def is_stopped(self) -> bool:
        """After `ShutdownRequested`: everybody who should know does, or nobody needs to."""
        return self.is_stopping and not (isinstance(self.role_state, Resigned) and self.role_state.farewells)

    # Questions.

    def _on_asked(self, event: Asked) -> None:
        ask = event.ask
        match ask:
            case VoteAsk():
                electing.on_vote_asked(self, event.token, ask)
            case BeginEpochAsk():
                self._on_epoch_begun(event.token, ask)
            case EndEpochAsk():
                self._on_epoch_ended(event.token, ask)
            case FetchAsk():
                leading.on_fetch_asked(self, event.token, ask)
            case SnapshotAsk():
                leading.on_snapshot_asked(self, event.token, ask)
            case AddVoterAsk():
                changing.on_add(self, event.token, ask)
            case RemoveVoterAsk():
                changing.on_remove(self, event.token, ask)
            case UpdateVoterAsk():
                changing.on_update(self, event.token, ask)
            case VersionsAsk():
                self.answer(event.token, self.refusal(INVALID_REQUEST))
            case _:
                assert_never(ask)

    def refuse_between_voters(self, node_id: int, epoch: int) -> int:
        """The error with which what voters say to each other is refused before it is looked at; 0 when it is not."""
        if self.is_stopping:
            return NOT_AVAILABLE
        if node_id < 0:
            return INVALID_REQUEST
        return FENCED_LEADER_EPOCH if epoch < self.epoch else NO_ERROR

    def is_meant(self, voter: ReplicaKey) -> bool:
        """Whether a question that names its addressee is for this replica, and not for one that had its place."""
        if voter == NOBODY:
            return True
        return voter.node_id == self.node_id and voter.directory_id in (ZERO_UUID, self.key.directory_id)

    def _on_epoch_begun(self, token: int, ask: BeginEpochAsk) -> None:
        error = self.refuse_between_voters(ask.leader_id, ask.epoch)
        if not error and not self.learn(Leader(node_id=ask.leader_id, epoch=ask.epoch, endpoint=self._first(ask))):
            error = INVALID_REQUEST
        if not error and not self.is_meant(ask.voter):
            error = INVALID_VOTER_KEY
        self.answer(token, self.refusal(error))

    def _on_epoch_ended(self, token: int, ask: EndEpochAsk) -> None:
        error = self.refuse_between_voters(ask.leader_id, ask.epoch)
        if not error and not self.learn(Leader(node_id=ask.leader_id, epoch=ask.epoch, endpoint=self._first(ask))):
            error = INVALID_REQUEST
        if not error and isinstance(self.role_state, Following) and self.role_state.leader_id == ask.leader_id:
            electing.on_leader_resigned(self, self.role_state, ask)
        self.answer(token, self.refusal(error))

    def _first(self, ask: BeginEpochAsk | EndEpochAsk) -> VoterEndpoint | None:
        return self.place_of(ask.endpoints) or self.history.latest.endpoint_of(ask.leader_id, self.listener_name)

    def place_of(self, endpoints: tuple[VoterEndpoint, ...]) -> VoterEndpoint | None:
        """Where this node reaches another that listens there."""
        return endpoint_by(endpoints, self.listener_name)

    # Answers.

    def learn(self, leader: Leader) -> bool:
        """Take over what somebody says of the epoch and its leader, if it is news; False when it contradicts."""
        if leader.epoch < self.epoch:
            return True
        if leader.epoch == self.epoch:
            if not leader.is_known or leader.node_id == self.node_id:
                return leader.node_id != self.node_id or self.state.leader_id == self.node_id
            if self.state.leader_id not in (NO_NODE, leader.node_id):
                return False
            if self.state.leader_id == leader.node_id and isinstance(self.role_state, Election):
                # It knows, and asks around because that leader is silent.
                return True
        if leader.is_known and leader.node_id != self.node_id:
            if not isinstance(self.role_state, Following) or leader.epoch > self.epoch:
                self.become_follower(leader.epoch, leader.node_id, leader.endpoint)
            elif self.role_state.endpoint is None and leader.endpoint is not None:
                self.role_state.endpoint = leader.endpoint
                following.send_due(self)
        elif leader.epoch > self.epoch:
            self.become_unattached(leader.epoch)
            following.search_if_due(self)
        return True

    def _on_answered(self, event: Answered) -> None:
        if self.is_stopping and not isinstance(self.role_state, Resigned):
            return
        reply = event.reply
        is_useful = reply is not None and self._is_still_of_use(reply)
        ask = event.ask
        match ask:
            case VoteAsk():
                electing.on_vote_answered(self, event.node_id, ask, reply if is_useful else None)
            case BeginEpochAsk():
                leading.on_announced(self, event.node_id, ask, reply if is_useful else None)
            case EndEpochAsk():
                electing.on_farewell_answered(self, event.node_id, ask, reply)
            case FetchAsk():
                following.on_fetched(self, ask, reply if is_useful else None)
            case SnapshotAsk():
                following.on_snapshot_part(self, ask, reply if is_useful else None)
            case VersionsAsk():
                changing.on_versions(self, ask, reply)
            case AddVoterAsk() | RemoveVoterAsk() | UpdateVoterAsk():
                following.on_updated(self, ask)
            case _:
                assert_never(ask)

    def _is_still_of_use(self, reply: Reply) -> bool:
        """Learn from an answer who leads; False when there is nothing more to it."""
        if reply.leader.epoch < self.epoch or reply.error_code == UNKNOWN_LEADER_EPOCH:
            return False
        has_news = reply.leader.epoch > self.epoch or reply.error_code in (FENCED_LEADER_EPOCH, NOT_LEADER)
        self.learn(reply.leader)
        return not has_news

    def own_voter(self) -> Voter:
        """This replica as a voters' record should name it."""
        return Voter(
            node_id=self.node_id,
            directory_id=self.key.directory_id,
            endpoints=self.listeners,
            kraft_version_min=0,
            kraft_version_max=1,
        )
