"""One fetch request: the reads of its partitions, the delay while there is too little data, and the reply."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

from millbeck.kernel.environment import Part
from millbeck.kernel.errors import (
    ApiError,
    CorruptMessage,
    FetchSessionIdNotFound,
    KafkaStorageError,
    TopicAuthorizationFailed,
)
from millbeck.replication.log_read import HIGH_WATERMARK, LOG_END, TXN_COMMITTED, LogRead, read_partition
from millbeck.replication.partition import Partition
from millbeck.security.authorizer import Operation, ResourceType
from millbeck.server.fetch.partition_read import NOTHING, PartitionRead, release_unsent
from millbeck.server.fetch.reading import load
from millbeck.server.fetch.sessions import CachedPartition, FetchSession, PartitionKey
from millbeck.server.local_topics import LocalTopic
from millbeck.server.network.call import Call
from millbeck.server.quotas.client_quotas import ClientQuotas
from millbeck.server.replicas.leader_hints import ABOUT_LEADERS, addresses_of, leader_of
from millbeck.storage.segment import ColdRead
from millbeck.wire.compact import TopicKey
from millbeck.wire.fast_fetch import FetchRequestView, PartitionResult, encode_fetch_response
from millbeck.wire.messages.fetch import AbortedTransaction
from millbeck.wire.messages.shared import LeaderIdAndEpoch, NodeEndpoint

READ_COMMITTED: Final = 1
FOLLOWER_READS_FROM: Final = 11
LEADER_HINTS_FROM: Final = 16
NO_REPLICA: Final = -1
OFFSETS_ONLY: Final = -1
"""The size limit with which no records are read, see `read_partition`."""
WARMINGS_MAX: Final = 8
"""The maximum number of times one fetch reads data of a partition into the page cache on a thread. Where the kernel
cannot report what is cached, each check looks like a miss; after this many reads the data is taken for cached, which it
then is."""

log = logging.getLogger(__name__)


class DelayedFetch:
    """A fetch: tried at once, delayed when there is too little data, answered exactly once."""

    __slots__ = (
        "_current",
        "_deadline_ms",
        "_is_first_try",
        "_is_marked",
        "_is_waiting",
        "_must_lead",
        "_timer",
        "_unreadable",
        "_warmings",
        "call",
        "follower_id",
        "is_full",
        "isolation",
        "request",
        "session",
        "size_bytes_max",
        "size_bytes_min",
        "wanted",
    )

    def __init__(
        self,
        call: Call,
        request: FetchRequestView,
        session: FetchSession | None,
        wanted: list[CachedPartition],
        is_full: bool,
    ) -> None:
        self.call = call
        self.request = request
        self.session = session
        self.wanted = wanted
        self.is_full = is_full
        self.follower_id = request.replica_id if request.replica_id >= 0 else NO_REPLICA
        if self.follower_id >= 0:
            self.isolation = LOG_END
        else:
            self.isolation = TXN_COMMITTED if request.isolation_level == READ_COMMITTED else HIGH_WATERMARK
        self._must_lead = self.follower_id >= 0 or call.version < FOLLOWER_READS_FROM
        self.size_bytes_max = min(request.max_bytes, call.broker.config.fetch.fetch_max_bytes)
        if call.broker.quotas is not None and self.follower_id < 0:
            allowed = call.broker.quotas.fetch_bytes_max(call)
            if allowed is not None:
                self.size_bytes_max = min(self.size_bytes_max, allowed)
        self.size_bytes_min = min(request.min_bytes, self.size_bytes_max)
        self._deadline_ms = call.broker.deadlines.now_ms() + request.max_wait_ms
        self._timer: Any = None
        self._is_waiting = False
        self._is_marked = False
        self._is_first_try = True
        self._current: CachedPartition | None = None
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
        self._timer = self.call.broker.deadlines.after(left_ms, self._time_out)
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
        # Last: if the connection was lost during a read on a thread, this undoes the registrations at once.
        self.call.connection.when_lost(self._abandon)

    def _unpark(self) -> None:
        self._is_waiting = False
        self._timer.cancel()
        # The timer refers to this fetch: dropping it avoids a reference cycle per delayed fetch.
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

    def readable_end_advanced(self, partition: Partition) -> None:
        self._wake()

    def high_watermark_advanced(self, partition: Partition) -> None:
        """Do nothing: the high watermark is sent with the next response."""

    def _wake(self) -> None:
        """Try again at the end of this event batch, once for all partitions that grew in it."""
        if not self._is_marked:
            self._is_marked = True
            self.call.broker.turn.add_completion(self._retry)

    def _retry(self) -> None:
        self._is_marked = False
        if self._is_waiting:
            self._try_again(is_last=False)

    def _time_out(self) -> None:
        if self._is_waiting:
            self._try_again(is_last=True)

    def _try_again(self, *, is_last: bool) -> None:
        """Try again outside of dispatch; an exception fails only this call."""
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

    def _candidates(self) -> list[CachedPartition]:
        if self.session is not None and not self.is_full:
            return list(self.session.ready.values())
        return self.wanted

    def _try(self, *, is_last: bool) -> bool:
        """Answer if there is enough data or if this is the last try; returns False if the fetch must keep waiting.

        When finding the position needs the disk, a thread reads the missing pages and the fetch starts over.
        """
        if self.session is not None and self.session.is_closed:
            self._answer_closed()
            return True
        found: list[PartitionRead] = []
        try:
            is_enough = self._read_candidates(found)
        except ColdRead as cold:
            release_unsent(found)
            self.call.hold()
            # Do not pass on the exception: it would keep this frame, and with it the received bytes, alive.
            self.call.broker.spawn(self._start_warm(cold.job, cold.release))
            return True
        except BaseException:
            release_unsent(found)
            raise
        if not (is_enough or is_last):
            self._release(found)
            return False
        quotas = self.call.broker.quotas
        if quotas is not None and self.follower_id < 0:
            wait_ms = quotas.fetched(self.call, sum(each.slice.size for each in found if each.slice is not None))
            if wait_ms:
                release_unsent(found)
                self._answer_later(quotas, wait_ms)
                return True
        self._load(found)
        return True

    def _answer_closed(self) -> None:
        """The session was closed or evicted during the wait: the client opens a new one with a full fetch."""
        call, code = self.call, FetchSessionIdNotFound.code
        call.complete(encode_fetch_response(call.version, call.correlation_id, 0, code, 0, [], []))

    def _answer_later(self, quotas: ClientQuotas, wait_ms: int) -> None:
        """Answer without partitions because of a quota; an existing session stays as it was, and a new session is
        closed."""
        call, session_id = self.call, 0
        if self.session is not None:
            if self.is_full:
                call.broker.fetch_sessions.close(self.session.session_id)
            else:
                session_id = self.session.session_id
        call.complete(encode_fetch_response(call.version, call.correlation_id, wait_ms, 0, session_id, [], []))
        quotas.mute(call.connection, wait_ms)

    async def _start_warm(self, job: Callable[[], object], release: Callable[[], None]) -> None:
        assert self._current is not None
        key = self._current.key
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

    def _read_candidates(self, found: list[PartitionRead]) -> bool:
        """Read every candidate partition; returns whether there is enough for a reply."""
        total = 0
        must_answer = not self._has_partitions
        for wanted in self._candidates():
            self._current = wanted
            outcome = self._read_partition(wanted, max(self.size_bytes_max - total, 0), at_least_one=total == 0)
            if outcome.slice is not None:
                total += outcome.slice.size
            elif outcome.must_respond or self._needs_high_watermark(outcome):
                must_answer = True
            found.append(outcome)
        self._is_first_try = False
        return must_answer or total >= self.size_bytes_min

    def _needs_high_watermark(self, outcome: PartitionRead) -> bool:
        """Whether a follower that serves consumers must be sent a new high watermark without waiting for data."""
        return (
            self.follower_id >= 0
            and self.call.broker.replication.context.wakes_followers
            and outcome.wanted.last_sent_high_watermark != outcome.info.high_watermark
        )

    def _release(self, found: list[PartitionRead]) -> None:
        """Keep waiting; the session's ready partitions are then only those with something that the client has not been
        sent."""
        for outcome in found:
            if outcome.slice is not None:
                outcome.slice.release()
            elif self.session is not None and not outcome.is_changed and not outcome.is_size_limited:
                self.session.ready.pop(outcome.wanted.key, None)

    @property
    def _has_partitions(self) -> bool:
        return bool(self.wanted if self.session is None else self.session.wanted)

    def _read_partition(self, wanted: CachedPartition, size_bytes_left: int, *, at_least_one: bool) -> PartitionRead:
        topic: LocalTopic | None = None
        try:
            topic = self._topic(wanted)
            partition = self.call.broker.topics.partition_of(topic, wanted.partition_index)
            if self.session is not None:
                self.session.watch(wanted, partition)
            else:
                wanted.partition = partition
            size_bytes_max = max(0, min(wanted.size_bytes_max, size_bytes_left))
            if self.follower_id >= 0:
                return self._read_for_follower(topic, partition, wanted, size_bytes_max, at_least_one)
            return self._read_for_consumer(topic, partition, wanted, size_bytes_max, at_least_one)
        except ApiError as error:
            outcome = PartitionRead(wanted, topic, NOTHING, error.code)
            if error.code in ABOUT_LEADERS and self.call.version >= LEADER_HINTS_FROM:
                leader = leader_of(self.call.broker, wanted.topic, wanted.partition_index)
                if leader is not None:
                    outcome.current_leader = LeaderIdAndEpoch(leader.leader_id, leader.leader_epoch)
            return outcome

    def _read_for_consumer(
        self, topic: LocalTopic, partition: Partition, wanted: CachedPartition, size_bytes_max: int, at_least_one: bool
    ) -> PartitionRead:
        preferred = -1
        if self.request.rack_id and self.call.version >= FOLLOWER_READS_FROM:
            listener = self.call.connection.listener.address.name
            preferred = self.call.broker.replication.nearer_replica(
                partition, wanted.fetch_offset, self.request.rack_id, listener
            )
            if preferred >= 0:
                size_bytes_max = OFFSETS_ONLY
        outcome = PartitionRead(wanted, topic, self._read(partition, wanted, size_bytes_max, at_least_one))
        info = outcome.info
        if info.diverging_epoch is None:
            outcome.preferred_read_replica = preferred
        if self.isolation == TXN_COMMITTED:
            outcome.aborted_transactions = []
            if info.slice is not None:
                try:
                    outcome.aborted_transactions = [
                        AbortedTransaction(aborted.producer_id, aborted.first_offset)
                        for aborted in partition.log.aborted_transactions(wanted.fetch_offset, info.slice.upper_offset)
                    ]
                except BaseException:
                    info.slice.release()
                    raise
        return outcome

    def _read_for_follower(
        self, topic: LocalTopic, partition: Partition, wanted: CachedPartition, size_bytes_max: int, at_least_one: bool
    ) -> PartitionRead:
        """Read up to the end of the log. The follower's fetch offset counts once per request, and not if its log
        diverges."""
        replication = self.call.broker.replication
        if replication.is_leader_throttled(partition, self.follower_id):
            size_bytes_max = OFFSETS_ONLY
        outcome = PartitionRead(wanted, topic, self._read(partition, wanted, size_bytes_max, at_least_one))
        if outcome.info.diverging_epoch is not None:
            return outcome
        if outcome.slice is not None:
            replication.sent(partition, outcome.slice.size)
        if self._is_first_try:
            try:
                partition.update_follower_fetch_state(
                    self.follower_id,
                    self.request.replica_epoch,
                    wanted.fetch_offset,
                    wanted.log_start_offset,
                    self.session,
                )
            except BaseException:
                if outcome.slice is not None:
                    outcome.slice.release()
                raise
        return outcome

    def _topic(self, wanted: CachedPartition) -> LocalTopic:
        """The topic, authorized by name before its existence is checked; topic ids are not secret."""
        call, topics = self.call, self.call.broker.topics
        if self.follower_id >= 0:
            if not call.is_cluster_action_allowed():
                raise TopicAuthorizationFailed
            call.connection.is_node = True
            return topics.topic(wanted.topic)
        name = wanted.topic if isinstance(wanted.topic, str) else topics.name_of(wanted.topic)
        if not call.may(Operation.READ, ResourceType.TOPIC, name):
            raise TopicAuthorizationFailed
        return topics.topic(wanted.topic)

    def _read(self, partition: Partition, wanted: CachedPartition, size_bytes_max: int, at_least_one: bool) -> LogRead:
        if self._unreadable and wanted.key in self._unreadable:
            raise KafkaStorageError(f"{partition.name} cannot be read: {self._unreadable[wanted.key]}")
        try:
            return read_partition(
                partition,
                wanted,
                self.isolation,
                size_bytes_max=size_bytes_max,
                must_lead=self._must_lead,
                at_least_one=at_least_one,
                nowait=not self._warmings or self._warmings.get(wanted.key, 0) < WARMINGS_MAX,
            )
        except OSError as error:
            raise KafkaStorageError(f"{partition.name} cannot be read: {error}") from error
        except KafkaStorageError as error:
            if self.follower_id < 0 and partition.log.damaged_offset >= 0 and partition.replicas is None:
                # As in Kafka: with no other replica to fetch from, the consumer has to report the error to its user.
                raise CorruptMessage(str(error)) from error
            raise

    # answering

    def _load(self, found: list[PartitionRead]) -> None:
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
    def _loaded(with_data: list[PartitionRead], parts: list[Sequence[Part]] | KafkaStorageError) -> None:
        if isinstance(parts, KafkaStorageError):
            log.error("fetch failed: %s", parts)
            for outcome in with_data:
                outcome.fail(parts.code)
            return
        for outcome, records in zip(with_data, parts, strict=True):
            assert outcome.slice is not None
            if records:
                outcome.records_size = outcome.slice.size
                outcome.records = records
            else:
                outcome.drop_records()

    def _answer(self, found: list[PartitionRead]) -> None:
        topics: dict[TopicKey, list[PartitionResult]] = {}
        leaders: list[int] = []
        for outcome in found:
            if self._belongs_in_reply(outcome):
                topics.setdefault(outcome.wanted.topic, []).append(outcome.result())
                if outcome.current_leader is not None:
                    leaders.append(outcome.current_leader.leader_id)
            if outcome.topic is not None:
                counts = outcome.topic.counts
                counts.fetch_requests += 1
                counts.bytes_out += outcome.records_size
                if outcome.error_code:
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

    def _belongs_in_reply(self, outcome: PartitionRead) -> bool:
        session = self.session
        if session is None:
            return True
        wanted = outcome.wanted
        is_changed = outcome.is_changed
        if outcome.error_code:
            # It is read again with every fetch until the error is gone or the client removes it from the session.
            wanted.last_sent_high_watermark = wanted.last_sent_log_start_offset = -1
        else:
            wanted.last_sent_high_watermark = outcome.info.high_watermark
            wanted.last_sent_log_start_offset = outcome.info.log_start_offset
            if outcome.records_size:
                session.served(wanted)
            elif not outcome.is_size_limited:
                session.mark_without_data(wanted)
        return is_changed or self.is_full
