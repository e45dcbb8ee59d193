"""A topic's partition on this node: append, high watermark, reads, and those who wait for either.

A partition leads or follows. The leader takes appends; they are staged in the log and written together at the end of
the turn. What waits for a written batch is settled at once with ``acks=1``, and in offset order, as the high watermark
passes it, with ``acks=all``. Whoever reads the partition (a parked fetch, a session, a coordinator's shard) is told at
most once a turn that readable data grew; followers read up to the end of the log and are told when that moves.

The high watermark is the smallest end among the in-sync replicas (`in_sync`); where ``flush.messages=1`` promises that
nothing is acknowledged before it is on the disk, the leader counts its flushed end. A partition whose only replica is
here has no `InSync` at all. On a follower the high watermark is what the leader says, as far as the log goes.

States: `lead` and `follow` switch between the two roles when the controller says so. A leader that is deposed writes
nothing more of what it has staged, and answers everybody who waits with NOT_LEADER_OR_FOLLOWER: their records may
still become part of the log, or not, which only the next leader knows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from millbeck.kernel.environment import Bytes
from millbeck.kernel.errors import (
    ApiError,
    FencedLeaderEpoch,
    KafkaStorageError,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    OutOfOrderSequenceNumber,
    UnknownLeaderEpoch,
)
from millbeck.kernel.ids import TopicPartition, Uuid
from millbeck.records.header import BatchHeader
from millbeck.records.validation import Validated
from millbeck.replication.in_sync import FetchTimes, InSync, IsrProposal, Surroundings
from millbeck.replication.refusals import Refusals
from millbeck.replication.turn import Turn
from millbeck.storage.log import Log
from millbeck.storage.producer_state import Origin
from millbeck.storage.reading import LogSlice
from millbeck.storage.staging import Staged

NO_EPOCH: Final = -1
NO_LEADER: Final = -1


class Watcher(Protocol):
    """Someone to be told that a partition has more to read (or nothing any more)."""

    def readable_grew(self, partition: Partition) -> None: ...


class FollowerWatcher(Watcher, Protocol):
    """A follower's fetch or session: it reads beyond the high watermark, and learns of that by the way."""

    def watermark_grew(self, partition: Partition) -> None: ...


class Settle(Protocol):
    """Called once for each append: with the error, or None when it counts as acknowledged."""

    def __call__(self, error: ApiError | None, /) -> None: ...


class IsrChanges(Protocol):
    """Carries proposals to the controller; the answer comes back by `Partition.isr_answered`."""

    def propose(self, partition: Partition, proposal: IsrProposal) -> None: ...


class PendingAppend:
    __slots__ = ("next_offset", "settle", "wants_all")

    def __init__(self, next_offset: int, wants_all: bool, settle: Settle) -> None:
        self.next_offset = next_offset
        self.wants_all = wants_all
        self.settle = settle


def _settle(append: PendingAppend, error: ApiError | None) -> Exception | None:
    try:
        append.settle(error)
    except Exception as surprise:
        return surprise
    return None


class Partition:
    __slots__ = (
        "_appended_ms",
        "_around",
        "_is_marked",
        "_just_written",
        "_pending",
        "_refusals",
        "_told_end_offset",
        "_turn",
        "_waiting_for_all",
        "_written",
        "end_watchers",
        "epoch_start_offset",
        "high_watermark",
        "is_leader",
        "isr_changes",
        "leader_epoch",
        "leader_id",
        "log",
        "name",
        "on_flushed",
        "partition_epoch",
        "replicas",
        "topic_id",
        "watchers",
    )

    def __init__(
        self,
        name: TopicPartition,
        topic_id: Uuid,
        log: Log,
        turn: Turn,
        *,
        leader_epoch: int,
        partition_epoch: int,
        written: Callable[[Partition, int], None],
        around: Surroundings | None = None,
        isr_changes: IsrChanges | None = None,
        leads: bool = True,
        high_watermark: int = -1,
    ) -> None:
        """It leads alone from the start, unless ``leads`` is False: then `lead` or `follow` must come next, and it
        begins with the ``high_watermark`` that was known when the node stopped.

        ``written`` is told of a write behind which it is time to flush or to start writeback, and of its wall time.
        """
        self.name = name
        self.topic_id = topic_id
        self.log = log
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        self.is_leader = leads
        self.leader_id = NO_LEADER if around is None else around.node_id
        self.epoch_start_offset = log.end_offset
        self.high_watermark = (
            log.end_offset if leads else min(max(high_watermark, log.log_start_offset), log.end_offset)
        )
        self.replicas: InSync | None = None
        self.isr_changes = isr_changes
        self._around = around
        self._written = written
        if leads:
            log.assign_epoch(leader_epoch, log.end_offset)
        self.watchers: dict[Watcher, None] = {}
        self.end_watchers: dict[FollowerWatcher, None] = {}
        """Followers: they read beyond the high watermark."""
        self.on_flushed: Callable[[], None] | None = None
        """Called once with the next flush, for a follower that must not fetch on before."""
        self._turn = turn
        self._is_marked = False
        self._appended_ms = 0
        self._told_end_offset = log.end_offset
        self._refusals: Refusals | None = None
        self._pending: list[PendingAppend] = []
        self._just_written: list[PendingAppend] = []
        self._waiting_for_all: deque[PendingAppend] = deque()

    # roles

    def lead(
        self,
        leader_epoch: int,
        partition_epoch: int,
        replicas: tuple[int, ...] = (),
        isr: tuple[int, ...] = (),
        lost: tuple[int, ...] = (),
    ) -> bool:
        """The controller named this node the leader, perhaps anew; True when it was not, or not in this epoch.

        ``lost`` are the replicas whose brokers have no place for them.

        What the controller's answer to a proposal has said already comes a second time: older than that it is passed
        over, and what is proposed since then stays in force, since the controller may have committed it by now.
        """
        if leader_epoch <= self.leader_epoch and self.is_leader and partition_epoch < self.partition_epoch:
            return False
        if leader_epoch < self.leader_epoch and not self.is_leader:
            return False
        is_new = leader_epoch > self.leader_epoch or not self.is_leader
        is_new_leader = not self.is_leader
        is_known = not is_new and partition_epoch == self.partition_epoch
        if is_new:
            if self._pending:
                # They carry the old epoch, and the new one begins behind them.
                self.write()
            self.is_leader = True
            self.leader_epoch = leader_epoch
            self.epoch_start_offset = self._told_end_offset = self.log.end_offset
            self.log.assign_epoch(leader_epoch, self.log.end_offset)
        self.partition_epoch = partition_epoch
        around = self._around
        if around is not None:
            self.leader_id = around.node_id
        self.high_watermark = min(self.high_watermark, self.log.end_offset)
        if len(replicas) > 1 and around is not None:
            self._lead_others(around, replicas, isr, lost, is_new_leader=is_new, is_known=is_known)
        else:
            self.replicas = None
            if is_new_leader:
                # There is nobody who could have less.
                self.high_watermark = self.log.end_offset
        self._turn.mark_watermark(self)
        if is_new:
            self._tell_all()
        elif not is_known:
            self.consider_followers()
        return is_new

    def _lead_others(
        self,
        around: Surroundings,
        replicas: tuple[int, ...],
        isr: tuple[int, ...],
        lost: tuple[int, ...],
        *,
        is_new_leader: bool,
        is_known: bool,
    ) -> None:
        in_sync = self.replicas
        if in_sync is None:
            in_sync = self.replicas = InSync(around)
            is_new_leader = True
        in_sync.begin(replicas, isr, lost, is_new_leader=is_new_leader, is_known=is_known)
        self._refuse_without_enough()

    def follow(self, leader_id: int, leader_epoch: int, partition_epoch: int) -> bool:
        """The controller named another leader, or none (-1); True when that is news to whoever fetches from it."""
        if leader_epoch < self.leader_epoch or (
            leader_epoch == self.leader_epoch and partition_epoch < self.partition_epoch
        ):
            return False
        was_leader = self.is_leader
        is_new = was_leader or leader_epoch > self.leader_epoch or leader_id != self.leader_id
        self.is_leader = False
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        self.replicas = None
        self.high_watermark = min(self.high_watermark, self.log.end_offset)
        if was_leader:
            self.log.discard_staged()
            self._fail(self._everybody(), NotLeaderOrFollower(f"{self.name} is led by broker {leader_id} now"))
        if is_new:
            self._tell_all()
        return is_new

    def _everybody(self) -> list[PendingAppend]:
        everybody = [*self._waiting_for_all, *self._just_written, *self._pending]
        self._waiting_for_all.clear()
        self._just_written, self._pending = [], []
        return everybody

    def _tell_all(self) -> None:
        for watcher in list(self.watchers):
            watcher.readable_grew(self)
        for follower in list(self.end_watchers):
            follower.readable_grew(self)

    # appends

    def append(
        self,
        validated: Validated,
        *,
        wants_all: bool,
        now_ms: int,
        settle: Settle,
        origin: Origin = Origin.CLIENT,
        transaction_version: int = 0,
    ) -> Staged:
        """Stage a validated batch; raises ApiError when it is refused, and then nothing has changed.

        ``settle`` is called in a later step of the turn, never from here. A duplicate waits like the batch it repeats,
        which may itself still be on its way to the high watermark. ``transaction_version`` is for a marker.
        """
        header = validated.header
        try:
            if not self.is_leader:
                raise NotLeaderOrFollower(f"{self.name} is led by broker {self.leader_id}")
            if wants_all and self.replicas is not None:
                self._check_enough(self.replicas)
            if self._refusals is not None and self.log.producer_state.latest(header.producer_id) is None:
                # Whatever comes first of a producer is taken for its first batch.
                self._check_first(self._refusals, header, now_ms)
            staged = self.log.stage(
                validated.batch,
                leader_epoch=self.leader_epoch,
                now_ms=now_ms,
                origin=origin,
                header=header,
                transaction_version=transaction_version,
            )
        except (NotLeaderOrFollower, NotEnoughReplicas) as error:
            if header.base_sequence >= 0 and origin is Origin.CLIENT:
                self._remember(header, type(error), now_ms)
            raise
        except OutOfOrderSequenceNumber:
            if self._refusals is not None:
                self._check_first(self._refusals, header, now_ms)
            raise
        if self._refusals is not None:
            self._refusals.forget(header.producer_id)
            if not len(self._refusals):
                self._refusals = None
        self._appended_ms = now_ms
        self._pending.append(PendingAppend(staged.last_offset + 1, wants_all, settle))
        if not self._is_marked:
            self._is_marked = True
            self._turn.mark_append(self)
        return staged

    def _remember(self, header: BatchHeader, reason: type[ApiError], now_ms: int) -> None:
        if self._refusals is None:
            self._refusals = Refusals()
        self._refusals.add(header.producer_id, header.producer_epoch, header.base_sequence, reason, now_ms)

    def _check_first(self, refusals: Refusals, header: BatchHeader, now_ms: int) -> None:
        """A batch whose predecessor had to be refused is refused for the same reason: both will come again."""
        reason = refusals.before(header.producer_id, header.producer_epoch, header.base_sequence, now_ms)
        if reason is not None:
            raise reason(f"{self.name} could not take the batch before this one a moment ago")

    def _check_enough(self, replicas: InSync) -> None:
        minimum = self.log.config.min_insync_replicas
        if replicas.is_under(minimum):
            raise NotEnoughReplicas(f"{self.name} has the in-sync replicas {replicas.isr}, {minimum} are asked for")

    def write(self) -> None:
        """Write what was staged this turn; each waiting append is settled or goes on to wait."""
        self._is_marked = False
        pending, self._pending = self._pending, []
        if not pending:
            # The leader was deposed, or its epoch changed, before the turn came to its end.
            return
        try:
            if self.log.is_offline:
                # It may have gone offline since, with everything that was staged.
                raise self.log.offline_error()
            self.log.write_staged()
        except ApiError as error:
            if self._around is not None:
                self._around.write_failed(self)
            self._fail(pending, error)
            return
        except Exception as error:
            # Nobody is to wait for what was not written, and nothing of it may be written later.
            self.log.discard_staged()
            self._fail(pending, KafkaStorageError(f"{self.name}: {error}"))
            raise
        if self._just_written:
            self._just_written += pending
        else:
            self._just_written = pending
        self._turn.mark_watermark(self)
        if self.log.upkeep_is_due(self._appended_ms):
            self._written(self, self._appended_ms)

    def _fail(self, appends: Iterable[PendingAppend], error: ApiError) -> None:
        surprises = [surprise for append in appends if (surprise := _settle(append, error)) is not None]
        if surprises:
            raise surprises[0]

    # the high watermark

    def advance_high_watermark(self) -> None:
        """Move it as far as it may go, settle what it passed, and tell the watchers.

        When the log has gone offline it moves no more: whoever waits for it is told so.
        """
        log = self.log
        grew = False
        if self.is_leader:
            watermark = log.flushed_offset if self.waits_for_flush else log.end_offset
            if self.replicas is not None:
                watermark = self._watermark_of_all(self.replicas, watermark)
            if watermark > self.high_watermark:
                self.high_watermark = watermark
                grew = True
        surprise = self._settle_passed() if self._just_written or self._waiting_for_all else None
        if grew or log.is_offline:
            for watcher in list(self.watchers):
                watcher.readable_grew(self)
        if self.end_watchers:
            self._tell_followers(grew)
        if surprise is not None:
            raise surprise

    def _watermark_of_all(self, replicas: InSync, own_offset: int) -> int:
        end_offset = self.log.end_offset
        if end_offset > self._told_end_offset:
            replicas.grows(self._told_end_offset)
        if replicas.is_under(self.log.config.min_insync_replicas):
            return NO_EPOCH
        return replicas.watermark(own_offset, end_offset)

    def _tell_followers(self, watermark_grew: bool) -> None:
        log = self.log
        wakes = self._around is not None and self._around.wakes_followers
        if log.end_offset > self._told_end_offset or log.is_offline or (watermark_grew and wakes):
            for watcher in list(self.end_watchers):
                watcher.readable_grew(self)
        elif watermark_grew:
            for watcher in list(self.end_watchers):
                watcher.watermark_grew(self)
        self._told_end_offset = log.end_offset

    def _settle_passed(self) -> Exception | None:
        """Appends with acks=1 leave at once, those with acks=all in offset order as the watermark passes them.

        What a settlement raises by mistake is returned: the others have theirs all the same.
        """
        written, self._just_written = self._just_written, []
        waiting = self._waiting_for_all
        watermark = self.high_watermark
        error = self.log.offline_error() if self.log.is_offline else None
        surprise: Exception | None = None
        while waiting and (waiting[0].next_offset <= watermark or error is not None):
            append = waiting.popleft()
            surprise = _settle(append, None if append.next_offset <= watermark else error) or surprise
        for append in written:
            if not append.wants_all or append.next_offset <= watermark:
                surprise = _settle(append, None) or surprise
            elif error is not None:
                surprise = _settle(append, error) or surprise
            else:
                self._wait(append)
        return surprise

    def _wait(self, append: PendingAppend) -> None:
        """In line, by offset: only a duplicate is not the last."""
        waiting = self._waiting_for_all
        index = len(waiting)
        while index and waiting[index - 1].next_offset > append.next_offset:
            index -= 1
        waiting.insert(index, append)

    def flushed(self) -> None:
        """A flush ended, or the log went offline; the high watermark, or those who wait for it, may move on now."""
        self._turn.mark_watermark(self)
        if self.on_flushed is not None:
            on_flushed, self.on_flushed = self.on_flushed, None
            on_flushed()

    def log_start_moved(self) -> None:
        """Readers are told of a new log start, as of new data."""
        self._tell_all()

    def close(self, error: ApiError) -> None:
        """The partition goes away: whoever waits is answered with ``error``."""
        everybody = self._everybody()
        self.is_leader = False
        self.leader_id = NO_LEADER
        self._tell_all()
        self._fail(everybody, error)

    @property
    def waits_for_flush(self) -> bool:
        return self.log.waits_for_flush

    @property
    def may_wait(self) -> bool:
        """Whether an append with acks=all may outlive its turn."""
        return self.replicas is not None or self.waits_for_flush

    # followers, as the leader sees them

    def follower_fetches(
        self, broker_id: int, broker_epoch: int, offset: int, log_start_offset: int, session: FetchTimes | None
    ) -> None:
        """A follower has everything below ``offset``: the high watermark may move, and it may come into the ISR.

        Raises NOT_LEADER_OR_FOLLOWER for somebody who is no follower of this partition.
        """
        replicas, around = self.replicas, self._around
        if replicas is None or around is None or not self.is_leader:
            raise NotLeaderOrFollower(f"{self.name} has no follower {broker_id} here")
        follower = replicas.follower(broker_id, broker_epoch)
        if broker_epoch > follower.broker_epoch:
            follower.broker_epoch = broker_epoch
        has_moved = offset != follower.end_offset
        follower.session = session
        follower.fetched(offset, log_start_offset, self.log.end_offset, around.now_ms())
        if has_moved:
            self._turn.mark_watermark(self)
        if broker_id not in replicas.isr:
            self._propose(replicas, replicas.expansion(follower, self.high_watermark, self.epoch_start_offset))
        elif offset < self.high_watermark:
            # It has lost what it had confirmed, and must not be taken for one that could lead.
            self._propose(replicas, replicas.without(broker_id))

    def check_followers(self) -> None:
        """Every now and then: propose an ISR without those that lag, or with those that no longer do."""
        if self.replicas is not None and self.is_leader:
            self._propose(self.replicas, self.replicas.reduction(self.log.end_offset))
            self.consider_followers()

    def consider_followers(self) -> None:
        """Whoever has caught up may have become eligible meanwhile, or had to wait for another proposal."""
        replicas = self.replicas
        if replicas is not None and self.is_leader:
            for follower in replicas.followers.values():
                # Its session speaks for it as long as the partition is in that.
                session = follower.session
                if session is not None and session in self.end_watchers and follower.is_fresh:
                    self._propose(replicas, replicas.expansion(follower, self.high_watermark, self.epoch_start_offset))

    def _propose(self, replicas: InSync, isr: tuple[int, ...] | None) -> None:
        if isr is not None and self.isr_changes is not None:
            self.isr_changes.propose(self, replicas.propose(isr, self.leader_epoch, self.partition_epoch))

    def isr_answered(self, proposal: IsrProposal, isr: tuple[int, ...], partition_epoch: int) -> None:
        """The controller has committed what was proposed, or something else meanwhile, at ``partition_epoch``.

        A set that somebody has left counts when the metadata brings it, not before. With it comes every change of
        ``min.insync.replicas`` that the controller knew of then: by a higher one who has left may lead again (KIP-966),
        so nothing may be committed without it by the lower one.
        """
        replicas = self.replicas
        if replicas is None or proposal.leader_epoch != self.leader_epoch or partition_epoch < self.partition_epoch:
            return
        if any(member not in isr for member in replicas.isr):
            return
        self.partition_epoch = partition_epoch
        replicas.commit(isr)
        self._refuse_without_enough()
        self._turn.mark_watermark(self)
        self.consider_followers()

    def isr_refused(self, proposal: IsrProposal) -> None:
        """The controller has not taken the proposal; what it knows better comes with the metadata."""
        if self.replicas is not None and self.replicas.pending is proposal:
            self.replicas.withdraw()
            self._turn.mark_watermark(self)

    def _refuse_without_enough(self) -> None:
        """Too few are left to acknowledge what waits. It is in the log, and may yet be committed."""
        if self.replicas is not None and self.replicas.is_under(self.log.config.min_insync_replicas):
            waiting = list(self._waiting_for_all)
            self._waiting_for_all.clear()
            self._fail(waiting, NotEnoughReplicasAfterAppend(f"{self.name} has too few in-sync replicas left"))

    # following

    def append_as_follower(self, batches: Bytes, now_ms: int) -> int:
        """Write what the leader sent; returns the new end. See `Log.append_as_follower` for what it raises."""
        assert not self.is_leader, f"{self.name} is led here"
        try:
            end_offset = self.log.append_as_follower(batches, leader_epoch=self.leader_epoch, now_ms=now_ms)
        except KafkaStorageError:
            if self._around is not None:
                self._around.write_failed(self)
            raise
        if self.log.upkeep_is_due(now_ms):
            self._written(self, now_ms)
        return end_offset

    def leader_said(self, high_watermark: int, log_start_offset: int) -> None:
        """What a reply of the leader says of both; the log may not go that far yet."""
        assert not self.is_leader, f"{self.name} is led here"
        log = self.log
        grew = min(high_watermark, log.end_offset) > self.high_watermark
        if grew:
            self.high_watermark = min(high_watermark, log.end_offset)
        has_start = log_start_offset > log.log_start_offset
        if has_start:
            log.delete_records(min(log_start_offset, self.high_watermark))
        if grew or has_start:
            for watcher in list(self.watchers):
                watcher.readable_grew(self)

    def was_truncated(self) -> None:
        """The log was cut, or started over: the high watermark stays within it."""
        self.high_watermark = min(max(self.high_watermark, self.log.log_start_offset), self.log.end_offset)

    def replace_log(self, log: Log) -> None:
        """The log was opened anew, perhaps with less in it."""
        assert not self.is_leader, f"{self.name} is led here"
        self.log = log
        self.was_truncated()

    def swap_log(self, log: Log) -> None:
        """The same log in another place takes over, whatever the role."""
        assert (log.log_start_offset, log.end_offset) == (self.log.log_start_offset, self.log.end_offset)
        assert not self.log.has_staged
        self.log = log

    # reads

    def check_leader_epoch(self, current_leader_epoch: int) -> None:
        """A client that names an epoch must name ours."""
        if current_leader_epoch == NO_EPOCH or current_leader_epoch == self.leader_epoch:
            return
        if current_leader_epoch < self.leader_epoch:
            raise FencedLeaderEpoch
        raise UnknownLeaderEpoch

    def check_leads(self, current_leader_epoch: int = NO_EPOCH) -> None:
        """For what only the leader may answer; a wrong epoch comes first, as it tells the client more."""
        self.check_leader_epoch(current_leader_epoch)
        if not self.is_leader:
            raise NotLeaderOrFollower(f"{self.name} is led by broker {self.leader_id}")

    @property
    def knows_committed(self) -> bool:
        """Whether this leader can say what is committed: a new one learns it from its followers."""
        return self.high_watermark >= self.epoch_start_offset

    def readable_end(self, *, committed_only: bool) -> int:
        """Where a consumer must stop: the high watermark, or the last stable offset for read_committed."""
        if committed_only:
            return self.log.last_stable_offset(self.high_watermark)
        return self.high_watermark

    def read(
        self, offset: int, *, size_bytes_max: int, committed_only: bool, at_least_one: bool, nowait: bool = True
    ) -> LogSlice | None:
        """Whole batches from ``offset`` on, below what this reader may see; None when there is nothing yet.

        With ``nowait`` it never waits for the disk: `ColdRead` carries the job that warms what the search needs.
        """
        log = self.log
        if offset < log.log_start_offset or offset > log.end_offset:
            raise OffsetOutOfRange(
                f"offset {offset} of {self.name} is outside {log.log_start_offset} to {log.end_offset}"
            )
        upto_offset = self.readable_end(committed_only=committed_only)
        if offset >= upto_offset:
            return None
        return log.read(
            offset, size_bytes_max=size_bytes_max, upto_offset=upto_offset, at_least_one=at_least_one, nowait=nowait
        )

    def read_as_follower(
        self, offset: int, *, size_bytes_max: int, at_least_one: bool, nowait: bool
    ) -> LogSlice | None:
        """What a follower copies: everything from ``offset`` to the end of the log."""
        return self.log.read(
            offset,
            size_bytes_max=size_bytes_max,
            upto_offset=self.log.end_offset,
            at_least_one=at_least_one,
            nowait=nowait,
        )
