"""Fetch: answer with what is there, or wait for it.

Behaviour
- Whole batches from each offset on, below the high watermark (or the last stable offset for read_committed); the first
  partition with data always gets at least one batch, however large (KIP-74).
- Less than ``min_bytes`` there: the call is held until appends bring it, or ``max_wait_ms`` has passed. An error in any
  partition ends the wait at once.
- Sessions (KIP-227): see `fetch_sessions`. In one, only partitions with something new are listed in the reply.
- Followers do not fetch here: their requests are refused like an unauthorised client's.
Versions
- 7: sessions. 12: a reader whose last epoch is not in our history gets the diverging epoch instead of records.
- 13: topic ids instead of names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from millbeck.kernel.environment import FileSlice, Part
from millbeck.kernel.errors import ApiError, KafkaStorageError, TopicAuthorizationFailed
from millbeck.replication.partition import Partition
from millbeck.security.authorizer import Operation, ResourceType
from millbeck.server.call import Call
from millbeck.server.dispatch import handles_frames
from millbeck.server.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, FetchSession, Wanted
from millbeck.server.handlers.fetch.reading import load
from millbeck.storage.segment import ColdRead
from millbeck.wire.compact import TopicKey
from millbeck.wire.fast_fetch import FetchRequestView, PartitionResult, decode_fetch_request, encode_fetch_response
from millbeck.wire.messages.fetch import AbortedTransaction, EpochEndOffset, FetchResponse

READ_COMMITTED: Final = 1
TOPIC_IDS_FROM: Final = 13
SESSIONS_FROM: Final = 7


class Found:
    """What one partition has for the reply: a finished result, and the slice its records are still in."""

    __slots__ = ("result", "slice", "wanted")

    def __init__(self, wanted: Wanted, result: PartitionResult, slice_: FileSlice | None) -> None:
        self.wanted = wanted
        self.result = result
        self.slice = slice_


class Fetching:
    """One fetch on its way: tried at once, parked when there is too little, answered exactly once."""

    __slots__ = (
        "_deadline_ms",
        "_is_marked",
        "_is_waiting",
        "_timer",
        "call",
        "committed_only",
        "is_full",
        "request",
        "session",
        "size_bytes_max",
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
        self.committed_only = request.isolation_level == READ_COMMITTED
        self.size_bytes_max = min(request.max_bytes, call.broker.config.fetch.fetch_max_bytes)
        self._deadline_ms = call.broker.deadlines.now_ms() + request.max_wait_ms
        self._timer: Any = None
        self._is_waiting = False
        self._is_marked = False

    # waiting

    def start(self) -> None:
        left_ms = self._deadline_ms - self.call.broker.deadlines.now_ms()
        if not self._try(is_last=left_ms <= 0):
            self._park(left_ms)

    def _park(self, left_ms: int) -> None:
        self._is_waiting = True
        self.call.hold()
        self._timer = self.call.broker.deadlines.after(left_ms, self._time_is_up)
        self.call.connection.when_lost(self._abandon)
        if self.session is not None:
            self.session.on_ready = self._wake
        else:
            for wanted in self.wanted:
                if wanted.partition is not None:
                    wanted.partition.watchers[self] = None

    def _unpark(self) -> None:
        self._is_waiting = False
        self._timer.cancel()
        self.call.connection.forget_when_lost(self._abandon)
        if self.session is not None:
            if self.session.on_ready == self._wake:
                self.session.on_ready = None
        else:
            for wanted in self.wanted:
                if wanted.partition is not None:
                    wanted.partition.watchers.pop(self, None)

    def readable_grew(self, partition: Partition) -> None:
        self._wake()

    def _wake(self) -> None:
        """Look again at the end of this turn, once, however many partitions grew in it."""
        if not self._is_marked:
            self._is_marked = True
            self.call.broker.turn.mark_completion(self._look_again)

    def _look_again(self) -> None:
        self._is_marked = False
        if self._is_waiting and self._try(is_last=False):
            self._unpark()

    def _time_is_up(self) -> None:
        if self._is_waiting:
            self._unpark()
            self._try(is_last=True)

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
            return self._find(found, is_last=is_last)
        except ColdRead as cold:
            for outcome in found:
                if outcome.slice is not None:
                    outcome.slice.release()
            self.call.hold()
            self.call.broker.spawn(self._start_warm(cold))
            return True

    async def _start_warm(self, cold: ColdRead) -> None:
        try:
            await self.call.broker.in_thread(cold.job)
        except OSError as error:
            self.call.broker.report(error)
        finally:
            cold.release()
        self.start()

    def _find(self, found: list[Found], *, is_last: bool) -> bool:
        total = 0
        must_answer = is_last
        for wanted in self._candidates():
            left = self.size_bytes_max - total
            outcome = self._look(wanted, max(left, 0), at_least_one=total == 0)
            if outcome.slice is not None:
                total += outcome.slice.size
            elif outcome.result.error_code or outcome.result.diverging_epoch is not None:
                must_answer = True
            found.append(outcome)
        if total >= self.request.min_bytes or must_answer or not self.wanted_anything:
            self._load(found)
            return True
        for outcome in found:
            if outcome.slice is not None:
                outcome.slice.release()
            elif self.session is not None:
                self.session.ready.pop(outcome.wanted.key, None)
        return False

    @property
    def wanted_anything(self) -> bool:
        return bool(self.wanted if self.session is None else self.session.wanted)

    def _look(self, wanted: Wanted, size_bytes_left: int, *, at_least_one: bool) -> Found:
        try:
            partition = self._partition(wanted)
            partition.check_leader_epoch(wanted.current_leader_epoch)
            log = partition.log
            result = PartitionResult(
                wanted.partition_index,
                0,
                partition.high_watermark,
                log.last_stable_offset(partition.high_watermark),
                log.log_start_offset,
                aborted_transactions=[] if self.committed_only else None,
            )
            diverging = self._divergence(partition, wanted)
            if diverging is not None:
                result.diverging_epoch = diverging
                return Found(wanted, result, None)
            piece = partition.read(
                wanted.fetch_offset,
                size_bytes_max=min(wanted.size_bytes_max, size_bytes_left),
                committed_only=self.committed_only,
                at_least_one=at_least_one,
            )
            if piece is None:
                return Found(wanted, result, None)
            if self.committed_only:
                result.aborted_transactions = [
                    AbortedTransaction(aborted.producer_id, aborted.first_offset)
                    for aborted in log.aborted_transactions(wanted.fetch_offset, piece.upper_offset)
                ]
            return Found(wanted, result, piece)
        except ApiError as error:
            return Found(wanted, PartitionResult(wanted.partition_index, error.code), None)

    def _partition(self, wanted: Wanted) -> Partition:
        call = self.call
        if self.request.replica_id >= 0:
            raise TopicAuthorizationFailed
        topic = call.broker.topics.topic(wanted.topic)
        if not call.may(Operation.READ, ResourceType.TOPIC, topic.name):
            raise TopicAuthorizationFailed
        partition = call.broker.topics.partition(wanted.topic, wanted.partition_index)
        if self.session is not None:
            self.session.watch(wanted, partition)
        else:
            wanted.partition = partition
        return partition

    @staticmethod
    def _divergence(partition: Partition, wanted: Wanted) -> EpochEndOffset | None:
        """Where the reader's history leaves ours, if it does (KIP-595's check, for consumers too)."""
        if wanted.last_fetched_epoch < 0:
            return None
        epoch, end_offset = partition.log.end_offset_for_epoch(wanted.last_fetched_epoch)
        if epoch < 0 or (epoch >= wanted.last_fetched_epoch and end_offset >= wanted.fetch_offset):
            return None
        return EpochEndOffset(epoch, end_offset)

    # answering

    def _load(self, found: list[Found]) -> None:
        with_data = [outcome for outcome in found if outcome.slice is not None]
        if not with_data:
            self._answer(found)
            return
        self.call.hold()

        def loaded(parts: list[Sequence[Part]] | KafkaStorageError) -> None:
            if isinstance(parts, KafkaStorageError):
                for outcome in with_data:
                    outcome.result = PartitionResult(outcome.wanted.partition_index, parts.code)
                    outcome.slice = None
                self.call.broker.report(parts)
            else:
                for outcome, records in zip(with_data, parts, strict=True):
                    assert outcome.slice is not None
                    outcome.result.records_size = outcome.slice.size
                    outcome.result.records = records
            self._answer(found)

        load(self.call.broker, [outcome.slice for outcome in with_data if outcome.slice is not None], loaded)

    def _answer(self, found: list[Found]) -> None:
        topics: dict[TopicKey, list[PartitionResult]] = {}
        counted = self.call.broker.topics
        for outcome in found:
            if self._belongs_in_reply(outcome):
                topics.setdefault(outcome.wanted.topic, []).append(outcome.result)
            if outcome.result.records_size:
                counted.topic(outcome.wanted.topic).counts.bytes_out += outcome.result.records_size
        call = self.call
        session_id = self.session.session_id if self.session is not None else 0
        call.complete(encode_fetch_response(call.version, call.correlation_id, 0, 0, session_id, list(topics.items())))

    def _belongs_in_reply(self, outcome: Found) -> bool:
        session = self.session
        if session is None:
            return True
        wanted, result = outcome.wanted, outcome.result
        is_news = (
            result.records_size > 0
            or result.error_code != 0
            or result.diverging_epoch is not None
            or wanted.told_high_watermark != result.high_watermark
            or wanted.told_log_start_offset != result.log_start_offset
        )
        if result.error_code:
            # It is looked at again with every fetch until the error is gone or the client forgets it.
            wanted.told_high_watermark = wanted.told_log_start_offset = -1
        else:
            wanted.told_high_watermark = result.high_watermark
            wanted.told_log_start_offset = result.log_start_offset
            if result.records_size or not _has_more(wanted, outcome):
                session.served(wanted)
        return is_news or self.is_full


def _has_more(wanted: Wanted, outcome: Found) -> bool:
    """Whether there is data that only the reply's size limit kept out."""
    return outcome.slice is None and wanted.fetch_offset < outcome.result.last_stable_offset


def error_reply(request: Any, version: int, error: ApiError) -> FetchResponse | None:
    return FetchResponse(error_code=error.code) if version >= SESSIONS_FROM else None


@handles_frames(1, error_reply=error_reply)
def handle_fetch(call: Call, frame: memoryview, position: int) -> None:
    request, _ = decode_fetch_request(call.version, frame, position)
    named = [
        Wanted(
            key,
            partition.partition,
            partition.fetch_offset,
            partition.partition_max_bytes,
            partition.current_leader_epoch,
            partition.last_fetched_epoch,
        )
        for key, partitions in request.topics
        for partition in partitions
    ]
    session, is_full = _session(call, request, named)
    Fetching(call, request, session, named, is_full).start()


def _session(call: Call, request: FetchRequestView, named: list[Wanted]) -> tuple[FetchSession | None, bool]:
    sessions = call.broker.fetch_sessions
    now_ms = call.broker.deadlines.now_ms()
    uses_topic_ids = call.version >= TOPIC_IDS_FROM
    if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
        if request.session_id:
            sessions.close(request.session_id)
        if request.session_epoch == FINAL_EPOCH:
            return None, True
        session = sessions.open(len(named), uses_topic_ids, now_ms)
        if session is not None:
            session.update(named, ())
        return session, True
    session = sessions.next(request.session_id, request.session_epoch, uses_topic_ids, now_ms)
    forgotten = [(key, index) for key, partitions in request.forgotten for index in partitions]
    session.update(named, forgotten)
    if not session.wanted:
        sessions.close(session.session_id)
    return session, False
