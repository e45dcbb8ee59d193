"""A produce request after its batches are staged: it waits for the appends and answers when all are complete.

An append is complete after the write at the end of the event batch (``acks=1``), or when the high watermark passes it
(``acks=all``). After the timeout of the request, appends that are still waiting are answered REQUEST_TIMED_OUT; their
records stay in the log and may yet be committed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from millbeck.kernel.errors import ApiError, RecordError, RequestTimedOut
from millbeck.kernel.ids import Uuid
from millbeck.records.validation import ValidatedBatch
from millbeck.replication.partition_appends import DelayedAppend
from millbeck.server.local_topics import LocalTopic, TopicCounts
from millbeck.server.network.call import Call
from millbeck.server.replicas.leader_hints import ABOUT_LEADERS, addresses_of, leader_of
from millbeck.wire.fast_produce import PartitionResult, encode_produce_response
from millbeck.wire.messages.produce import BatchIndexAndErrorMessage
from millbeck.wire.messages.shared import LeaderIdAndEpoch, NodeEndpoint

NO_OFFSET: Final = -1
LEADER_HINTS_FROM: Final = 10


class PartitionAppend(DelayedAppend):
    """The append to one partition of a request: it waits, and then has the offsets or the error."""

    __slots__ = (
        "base_offset",
        "counts",
        "current_leader",
        "error_code",
        "error_message",
        "index",
        "is_complete",
        "log_append_time_ms",
        "log_start_offset",
        "record_errors",
        "reply",
    )

    def __init__(self, reply: DelayedProduce, index: int) -> None:
        self.reply = reply
        self.index = index
        self.wants_all = reply.acks == -1
        self.is_complete = False
        self.error_code = 0
        self.error_message: str | None = None
        self.record_errors: Sequence[RecordError] = ()
        self.counts: TopicCounts
        self.current_leader: LeaderIdAndEpoch | None = None
        """The current leader, if another broker leads the partition."""
        self.base_offset = self.log_append_time_ms = self.log_start_offset = NO_OFFSET

    def staged(self, first_offset: int, validated: ValidatedBatch, topic: LocalTopic, log_start_offset: int) -> None:
        """Called when the partition has accepted the batch; `complete` is called later."""
        reply = self.reply
        reply.outstanding += 1
        if self.may_wait:
            reply.may_wait = True
        self.base_offset = first_offset
        self.log_append_time_ms = validated.append_time_ms
        self.log_start_offset = log_start_offset
        counts = self.counts = topic.counts
        counts.messages_in += validated.record_count
        counts.bytes_in += len(validated.batch)

    def complete(self, error: ApiError | None) -> None:
        self.is_complete = True
        if error is not None:
            # Errors before this, of appends that were never staged, are counted where they are raised.
            self.counts.produce_failed += 1
            self.refuse(error)
        reply = self.reply
        reply.outstanding -= 1
        if not reply.outstanding:
            reply.send()

    def refuse(self, error: ApiError) -> None:
        # Not the error itself: its traceback would keep frames, and with them views of the request, alive.
        self.reply.is_refused = True
        self.error_code = error.code
        self.error_message = str(error) or None
        self.record_errors = getattr(error, "record_errors", ())
        self.base_offset = self.log_append_time_ms = self.log_start_offset = NO_OFFSET

    def result(self) -> PartitionResult:
        return PartitionResult(
            self.index,
            self.error_code,
            self.base_offset,
            self.log_append_time_ms,
            self.log_start_offset,
            self.error_message,
            [BatchIndexAndErrorMessage(each.batch_index, each.message) for each in self.record_errors],
            self.current_leader,
        )


class DelayedProduce:
    """A produce request that collects its partition results and answers when all are in or the timeout has passed."""

    __slots__ = (
        "acks",
        "call",
        "is_refused",
        "is_transactional",
        "may_wait",
        "outstanding",
        "size_bytes",
        "timer",
        "topics",
    )

    def __init__(self, call: Call, acks: int, size_bytes: int = 0) -> None:
        """``size_bytes`` is the size of the request, for quotas."""
        self.size_bytes = size_bytes
        self.call = call
        self.acks = acks
        self.outstanding = 1  # one held by the handler until all batches are staged
        self.topics: list[tuple[str | Uuid, list[PartitionAppend]]] = []
        self.timer: Any = None
        self.is_refused = False
        self.may_wait = False
        self.is_transactional = False

    def staged(self, timeout_ms: int) -> None:
        """Called when all batches are staged: wait at most ``timeout_ms`` for the outstanding appends.

        The timer must not start earlier: a timeout answers the call, which would let the connection's next request in.
        """
        self.outstanding -= 1
        if not self.outstanding:
            self.send()
        elif self.acks == -1 and self.may_wait:
            # Only an append that waits for a flush or another replica can outlive its event batch.
            self.timer = self.call.broker.deadlines.after(max(timeout_ms, 0), self.time_out)

    def send(self) -> None:
        call = self.call
        # The appends refer to this object: dropping them here avoids a reference cycle per request.
        topics, self.topics = self.topics, []
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        if call.parts is not None:
            return
        quotas, wait_ms = call.broker.quotas, 0
        if quotas is not None:
            wait_ms = quotas.produced(call, self.size_bytes, is_answered=self.acks != 0)
        if self.acks:
            leaders = _find_leaders(call, topics) if self.is_refused and call.version >= LEADER_HINTS_FROM else ()
            results = [(key, [append.result() for append in appends]) for key, appends in topics]
            call.complete((encode_produce_response(call.version, call.correlation_id, results, wait_ms, leaders),))
            if quotas is not None and wait_ms:
                quotas.mute(call.connection, wait_ms)
            return
        failed = [append for _, appends in topics for append in appends if append.error_code]
        call.complete(())
        if quotas is not None and wait_ms:
            quotas.mute(call.connection, wait_ms)
        if failed:
            call.connection.close(f"a produce request with acks=0 failed: {failed[0].error_message}")

    def time_out(self) -> None:
        if self.call.parts is not None:
            return
        for _, appends in self.topics:
            for append in appends:
                if not (append.is_complete or append.error_code):
                    append.refuse(RequestTimedOut())
        self.timer = None
        self.send()


def _find_leaders(call: Call, topics: list[tuple[str | Uuid, list[PartitionAppend]]]) -> list[NodeEndpoint]:
    """Add the current leader to appends of partitions led elsewhere; returns the endpoints of those leaders."""
    leader_ids = []
    for name_or_id, appends in topics:
        for append in appends:
            if append.error_code in ABOUT_LEADERS:
                leader = leader_of(call.broker, name_or_id, append.index)
                if leader is not None:
                    append.current_leader = LeaderIdAndEpoch(leader.leader_id, leader.leader_epoch)
                    leader_ids.append(leader.leader_id)
    return [NodeEndpoint(each.node_id, each.host, each.port, each.rack) for each in addresses_of(call, leader_ids)]
