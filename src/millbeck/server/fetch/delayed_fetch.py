"""One fetch on its way: what its partitions have for it, the wait when that is too little, and the reply."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

from millbeck.kernel.environment import Part
from millbeck.kernel.errors import (
    ApiError,
    KafkaStorageError,
    NotLeaderOrFollower,
    TopicAuthorizationFailed,
)
from millbeck.replication.divergence import divergence
from millbeck.replication.partition import Partition
from millbeck.security.authorizer import Operation, ResourceType
from millbeck.server.call import Call
from millbeck.server.fetch_sessions import FetchSession, PartitionKey, Wanted
from millbeck.server.handlers.fetch.found import Found, give_back
from millbeck.server.handlers.fetch.reading import load
from millbeck.server.leader_hints import ABOUT_LEADERS, addresses_of, leader_of
from millbeck.server.topics import LocalTopic
from millbeck.storage.reading import LogSlice
from millbeck.storage.segment import ColdRead
from millbeck.wire.compact import TopicKey
from millbeck.wire.fast_fetch import FetchRequestView, PartitionResult, encode_fetch_response
from millbeck.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    LeaderIdAndEpoch,
    NodeEndpoint,
)

READ_COMMITTED: Final = 1
FOLLOWER_READS_FROM: Final = 11
LEADER_HINTS_FROM: Final = 16
NO_REPLICA: Final = -1
WARMINGS_MAX: Final = 8
"""How often one fetch sends its search of a partition to a thread. Where the kernel cannot say what is in memory, each
try looks cold; after this many the search goes on as if it were warm, which by then it is."""

log = logging.getLogger(__name__)


class Fetching:
    """One fetch on its way: tried at once, parked when there is too little, answered exactly once."""

    __slots__ = (
        "_deadline_ms",
        "_is_first_look",
        "_is_marked",
        "_is_waiting",
        "_looked_at",
        "_timer",
        "_unreadable",
        "_warmings",
        "call",
        "committed_only",
        "follower_id",
        "is_full",
        "request",
        "session",
        "size_bytes_max",
        "size_bytes_min",
        "wanted",
    )

    def __init__(
        self, call: Call, request: FetchRequestView, session: FetchSession | None, wanted: list[Wanted], is_full: bool
    ) -> None:
        self.call = call
        self.request = request
        self.session = session
        self.wanted = wanted
        self.is_full = is_full
        self.follower_id = request.replica_id if request.replica_id >= 0 else NO_REPLICA
        self.committed_only = request.isolation_level == READ_COMMITTED
        self.size_bytes_max = min(request.max_bytes, call.broker.config.fetch.fetch_max_bytes)
        self.size_bytes_min = min(request.min_bytes, self.size_bytes_max)
        self._deadline_ms = call.broker.deadlines.now_ms() + request.max_wait_ms
        self._timer: Any = None
        self._is_waiting = False
        self._is_marked = False
        self._is_first_look = True
        self._looked_at: Wanted | None = None
        self._warmings: dict[PartitionKey, int] = {}
        self._unreadable: dict[PartitionKey, OSError] = {}

    # waiting

    def start(self) -> None:
        left_ms = self._deadline_ms - self.call.broker.deadlines.now_ms()
        if not self._try(is_last=left_ms <= 0):
            self._park(left_ms)

    def _park(self, left_ms: int) -> None:
        self._is_waiting = True
        self.call.hold()
        self._timer = self.call.broker.deadlines.after(left_ms, self._time_is_up)
        if self.session is not None:
            self.session.on_ready = self._wake
        else:
            for wanted in self.wanted:
                if wanted.partition is None:
                    continue
                if self.follower_id < 0:
                    wanted.partition.watchers[self] = None
                else:
                    wanted.partition.end_watchers[self] = None
        # Last: a connection that was lost meanwhile, during a search on a thread, undoes all of it at once.
        self.call.connection.when_lost(self._abandon)

    def _unpark(self) -> None:
        self._is_waiting = False
        self._timer.cancel()
        # The timer refers to this fetch: letting go of it spares the garbage collector a cycle per wait.
        self._timer = None
        self.call.connection.forget_when_lost(self._abandon)
        if self.session is not None:
            if self.session.on_ready == self._wake:
                self.session.on_ready = None
        else:
            for wanted in self.wanted:
                if wanted.partition is not None:
                    wanted.partition.watchers.pop(self, None)
                    wanted.partition.end_watchers.pop(self, None)

    def readable_grew(self, partition: Partition) -> None:
        self._wake()

    def watermark_grew(self, partition: Partition) -> None:
        """The reply will say so; nobody waits for that alone."""

    def _wake(self) -> None:
        """Look again at the end of this turn, once, however many partitions grew in it."""
        if not self._is_marked:
            self._is_marked = True
            self.call.broker.turn.mark_completion(self._look_again)

    def _look_again(self) -> None:
        self._is_marked = False
        if self._is_waiting:
            self._go_on(is_last=False)

    def _time_is_up(self) -> None:
        if self._is_waiting:
            self._go_on(is_last=True)

    def _go_on(self, *, is_last: bool) -> None:
        """Try again outside of dispatch: what raises here is the call's own trouble."""
        try:
            is_answered = self._try(is_last=is_last)
        except Exception as error:
            self.call.fail_unexpectedly(error)
            is_answered = True
        if is_answered and self._is_waiting:
            self._unpark()

    def _abandon(self) -> None:
        if self._is_waiting:
            self._unpark()

    # reading

    def _candidates(self) -> list[Wanted]:
        if self.session is not None and not self.is_full:
            return list(self.session.ready.values())
        return self.wanted

    def _try(self, *, is_last: bool) -> bool:
        """Answer if there is enough, or if this is the last chance; False to wait on.

        When the search itself needs the disk, a thread warms what is missing and the fetch starts over.
        """
        found: list[Found] = []
        try:
            is_enough = self._find(found)
        except ColdRead as cold:
            give_back(found)
            self.call.hold()
            # Without the exception: that would keep this frame, and with it the received bytes, alive.
            self.call.broker.spawn(self._start_warm(cold.job, cold.release))
            return True
        except BaseException:
            give_back(found)
            raise
        if not (is_enough or is_last):
            self._leave(found)
            return False
        self._load(found)
        return True

    async def _start_warm(self, job: Callable[[], object], release: Callable[[], None]) -> None:
        assert self._looked_at is not None
        key = self._looked_at.key
        try:
            await self.call.broker.in_thread(job)
            self._warmings[key] = self._warmings.get(key, 0) + 1
        except OSError as error:
            self._unreadable[key] = error
        finally:
            release()
        try:
            self.start()
        except Exception as error:
            self.call.fail_unexpectedly(error)

    def _find(self, found: list[Found]) -> bool:
        """Look at every candidate; whether there is enough for an answer."""
        total = 0
        must_answer = not self._wants_anything
        for wanted in self._candidates():
            self._looked_at = wanted
            outcome = self._look(wanted, max(self.size_bytes_max - total, 0), at_least_one=total == 0)
            if outcome.slice is not None:
                total += outcome.slice.size
            elif outcome.needs_answer or self._must_hear_of(outcome):
                must_answer = True
            found.append(outcome)
        self._is_first_look = False
        return must_answer or total >= self.size_bytes_min

    def _must_hear_of(self, outcome: Found) -> bool:
        """A follower that consumers read from is told of the high watermark without waiting for data."""
        return (
            self.follower_id >= 0
            and self.call.broker.replication.around.wakes_followers
            and outcome.wanted.told_high_watermark != outcome.result.high_watermark
        )

    def _leave(self, found: list[Found]) -> None:
        """Wait on; a session looks again only at what grew, and at what its client has yet to be told."""
        for outcome in found:
            if outcome.slice is not None:
                outcome.slice.release()
            elif self.session is not None and not outcome.is_news and not outcome.is_cut_short:
                self.session.ready.pop(outcome.wanted.key, None)

    @property
    def _wants_anything(self) -> bool:
        return bool(self.wanted if self.session is None else self.session.wanted)

    def _look(self, wanted: Wanted, size_bytes_left: int, *, at_least_one: bool) -> Found:
        topic: LocalTopic | None = None
        try:
            topic = self._topic(wanted)
            partition = self._partition(wanted)
            partition.check_leader_epoch(wanted.current_leader_epoch)
            size_bytes_max = min(wanted.size_bytes_max, size_bytes_left)
            if self.follower_id >= 0:
                return self._look_for_follower(topic, partition, wanted, size_bytes_max, at_least_one)
            if not partition.is_leader and self.call.version < FOLLOWER_READS_FROM:
                raise NotLeaderOrFollower
            return self._look_for_consumer(topic, partition, wanted, size_bytes_max, at_least_one)
        except ApiError as error:
            result = PartitionResult(wanted.partition_index, error.code)
            if error.code in ABOUT_LEADERS and self.call.version >= LEADER_HINTS_FROM:
                leader = leader_of(self.call.broker, wanted.topic, wanted.partition_index)
                if leader is not None:
                    result.current_leader = LeaderIdAndEpoch(leader.leader_id, leader.leader_epoch)
            return Found(wanted, result, topic, -1, None)

    def _look_for_consumer(
        self, topic: LocalTopic, partition: Partition, wanted: Wanted, size_bytes_max: int, at_least_one: bool
    ) -> Found:
        log = partition.log
        last_stable_offset = log.last_stable_offset(partition.high_watermark)
        end_offset = last_stable_offset if self.committed_only else partition.high_watermark
        result = PartitionResult(
            wanted.partition_index,
            0,
            partition.high_watermark,
            last_stable_offset,
            log.log_start_offset,
            aborted_transactions=[] if self.committed_only else None,
        )
        diverging = divergence(log, wanted.fetch_offset, wanted.last_fetched_epoch)
        if diverging is not None:
            result.diverging_epoch = EpochEndOffset(diverging.epoch, diverging.end_offset)
            return Found(wanted, result, topic, end_offset, None)
        if self.request.rack_id and self.call.version >= FOLLOWER_READS_FROM:
            listener = self.call.connection.listener.address.name
            result.preferred_read_replica = self.call.broker.replication.nearer_replica(
                partition, wanted.fetch_offset, self.request.rack_id, listener
            )
            if result.preferred_read_replica >= 0:
                return Found(wanted, result, topic, end_offset, None)
        piece = self._read(partition, wanted, size_bytes_max, at_least_one)
        if piece is None:
            return Found(wanted, result, topic, end_offset, None)
        if self.committed_only:
            try:
                result.aborted_transactions = [
                    AbortedTransaction(aborted.producer_id, aborted.first_offset)
                    for aborted in log.aborted_transactions(wanted.fetch_offset, piece.upper_offset)
                ]
            except BaseException:
                piece.release()
                raise
        return Found(wanted, result, topic, end_offset, piece)

    def _look_for_follower(
        self, topic: LocalTopic, partition: Partition, wanted: Wanted, size_bytes_max: int, at_least_one: bool
    ) -> Found:
        """Up to the end of the log. Its progress counts once for each request, and not when its history is another."""
        if not partition.is_leader:
            raise NotLeaderOrFollower
        log = partition.log
        result = PartitionResult(
            wanted.partition_index,
            0,
            partition.high_watermark,
            log.last_stable_offset(partition.high_watermark),
            log.log_start_offset,
        )
        diverging = divergence(log, wanted.fetch_offset, wanted.last_fetched_epoch)
        if diverging is not None:
            result.diverging_epoch = EpochEndOffset(diverging.epoch, diverging.end_offset)
            return Found(wanted, result, topic, log.end_offset, None)
        replication = self.call.broker.replication
        piece = None
        if not replication.holds_back(partition, self.follower_id):
            piece = self._read(partition, wanted, size_bytes_max, at_least_one)
            if piece is not None:
                replication.sent(partition, piece.size)
        if self._is_first_look:
            try:
                partition.follower_fetches(
                    self.follower_id,
                    self.request.replica_epoch,
                    wanted.fetch_offset,
                    wanted.log_start_offset,
                    self.session,
                )
            except BaseException:
                if piece is not None:
                    piece.release()
                raise
        return Found(wanted, result, topic, log.end_offset, piece)

    def _topic(self, wanted: Wanted) -> LocalTopic:
        """A name that may not be read is refused whether or not there is such a topic; ids are no secret."""
        call, topics = self.call, self.call.broker.topics
        if self.follower_id >= 0:
            if not call.may_replicate():
                raise TopicAuthorizationFailed
            return topics.topic(wanted.topic)
        name = wanted.topic if isinstance(wanted.topic, str) else topics.name_of(wanted.topic)
        if not call.may(Operation.READ, ResourceType.TOPIC, name):
            raise TopicAuthorizationFailed
        return topics.topic(wanted.topic)

    def _partition(self, wanted: Wanted) -> Partition:
        partition = self.call.broker.topics.partition(wanted.topic, wanted.partition_index)
        if self.session is not None:
            self.session.watch(wanted, partition)
        else:
            wanted.partition = partition
        return partition

    def _read(self, partition: Partition, wanted: Wanted, size_bytes_max: int, at_least_one: bool) -> LogSlice | None:
        key = wanted.key
        if key in self._unreadable:
            raise KafkaStorageError(f"{partition.name} cannot be read: {self._unreadable[key]}")
        nowait = self._warmings.get(key, 0) < WARMINGS_MAX
        try:
            if self.follower_id >= 0:
                return partition.read_as_follower(
                    wanted.fetch_offset, size_bytes_max=size_bytes_max, at_least_one=at_least_one, nowait=nowait
                )
            return partition.read(
                wanted.fetch_offset,
                size_bytes_max=size_bytes_max,
                committed_only=self.committed_only,
                at_least_one=at_least_one,
                nowait=nowait,
            )
        except OSError as error:
            raise KafkaStorageError(f"{partition.name} cannot be read: {error}") from error

    # answering

    def _load(self, found: list[Found]) -> None:
        with_data = [outcome for outcome in found if outcome.slice is not None]
        if not with_data:
            self._answer(found)
            return
        self.call.hold()

        def loaded(parts: list[Sequence[Part]] | KafkaStorageError) -> None:
            try:
                self._loaded(with_data, parts)
                self._answer(found)
            except Exception as error:
                self.call.fail_unexpectedly(error)

        load(self.call.broker, [outcome.slice for outcome in with_data if outcome.slice is not None], loaded)

    @staticmethod
    def _loaded(with_data: list[Found], parts: list[Sequence[Part]] | KafkaStorageError) -> None:
        if isinstance(parts, KafkaStorageError):
            log.error("a fetch failed: %s", parts)
            for outcome in with_data:
                outcome.result = PartitionResult(outcome.wanted.partition_index, parts.code)
                outcome.slice = None
            return
        for outcome, records in zip(with_data, parts, strict=True):
            assert outcome.slice is not None
            if records:
                outcome.result.records_size = outcome.slice.size
                outcome.result.records = records
            else:
                outcome.leave_out()

    def _answer(self, found: list[Found]) -> None:
        topics: dict[TopicKey, list[PartitionResult]] = {}
        leaders: list[int] = []
        for outcome in found:
            result = outcome.result
            if self._belongs_in_reply(outcome):
                topics.setdefault(outcome.wanted.topic, []).append(result)
                if result.current_leader is not None:
                    leaders.append(result.current_leader.leader_id)
            if outcome.topic is not None:
                counts = outcome.topic.counts
                counts.fetch_requests += 1
                counts.bytes_out += result.records_size
                if result.error_code:
                    counts.fetch_failed += 1
        call = self.call
        session_id = self.session.session_id if self.session is not None else 0
        nodes: list[NodeEndpoint] = []
        if leaders:
            nodes = [
                NodeEndpoint(each.node_id, each.host, each.port, each.rack) for each in addresses_of(call, leaders)
            ]
        call.complete(
            encode_fetch_response(call.version, call.correlation_id, 0, 0, session_id, list(topics.items()), nodes)
        )

    def _belongs_in_reply(self, outcome: Found) -> bool:
        session = self.session
        if session is None:
            return True
        wanted, result = outcome.wanted, outcome.result
        is_news = outcome.is_news
        if result.error_code:
            # It is looked at again with every fetch until the error is gone or the client forgets it.
            wanted.told_high_watermark = wanted.told_log_start_offset = -1
        else:
            wanted.told_high_watermark = result.high_watermark
            wanted.told_log_start_offset = result.log_start_offset
            if result.records_size:
                session.served(wanted)
            elif not outcome.is_cut_short:
                session.is_quiet(wanted)
        return is_news or self.is_full
