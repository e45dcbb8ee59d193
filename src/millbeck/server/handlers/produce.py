"""Produce: batches in, offsets out.

Behaviour
- One batch for each partition, checked (`records.validation`) and staged in the order of the request; the reply leaves
  when every partition is written (``acks=1``) or behind its high watermark (``acks=all``).
- ``acks=0`` sends no reply; an error then ends the connection, which is the only way to tell.
- Only the wait after the append leaves the connection free. A heavy batch (`heavy_batches`) is checked on a thread, and
  holds the connection meanwhile; so does the question to the transaction's coordinator before the first batch of a
  transaction (`transaction_verification`).
- Errors are per partition. A refused record is named by its index in the batch. Who does not lead says who does.
- ``acks=all`` asks for ``min.insync.replicas``: NOT_ENOUGH_REPLICAS before the append, NOT_ENOUGH_REPLICAS_AFTER_APPEND
  when too few are left while it waits, REQUEST_TIMED_OUT when they take too long.
- What was sent behind a batch that could not be taken just now is refused for the same reason, where Kafka speaks of a
  gap (`replication.refusals`): some clients lose track of everything when they hear of one.
Versions
- 7: zstd. 8: record errors. 10: leader hints (KIP-951). 11: TRANSACTION_ABORTABLE. 12: a partition joins its
  transaction with the first batch. 13: topic ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from millbeck.kernel.errors import (
    ApiError,
    InvalidRequiredAcks,
    InvalidTopic,
    RequestTimedOut,
    TopicAuthorizationFailed,
    TransactionalIdAuthorizationFailed,
    UnknownServerError,
    UnknownTopicOrPartition,
)
from millbeck.kernel.ids import Uuid
from millbeck.records.batch import TRANSACTIONAL_BIT
from millbeck.records.compression import DecompressionLimit
from millbeck.records.validation import Validated, validate
from millbeck.replication.partition import Partition
from millbeck.security.authorizer import Operation, ResourceType
from millbeck.server.call import Call
from millbeck.server.dispatch import handles_frames
from millbeck.server.heavy_batches import RAW_BYTES_MAX, is_heavy
from millbeck.server.leader_hints import ABOUT_LEADERS, addresses_of, leader_of
from millbeck.server.topics import LocalTopic
from millbeck.server.transaction_verification import Guard
from millbeck.server.transactional_produce import ask_about, guard_for
from millbeck.wire.fast_produce import PartitionResult, decode_produce_request, encode_produce_response
from millbeck.wire.messages.produce import BatchIndexAndErrorMessage, LeaderIdAndEpoch, NodeEndpoint

if TYPE_CHECKING:
    from millbeck.server.broker import Broker

ADMIN_CLIENT_ID: Final = "__admin_client"
NO_OFFSET: Final = -1
LEADER_HINTS_FROM: Final = 10


class Appending(PartitionResult):
    """One partition's part of the reply; the partition says when the append counts, or does not."""

    __slots__ = ("is_settled", "reply")

    def __init__(self, reply: ProduceReply, index: int) -> None:
        super().__init__(index)
        self.reply = reply
        self.is_settled = False

    def settled(self, error: ApiError | None) -> None:
        self.is_settled = True
        if error is not None:
            self.refuse(error)
        reply = self.reply
        reply.outstanding -= 1
        if not reply.outstanding:
            reply.send()

    def refuse(self, error: ApiError) -> None:
        self.reply.is_refused = True
        self.error_code = error.code
        self.error_message = str(error) or None
        self.record_errors = [
            BatchIndexAndErrorMessage(refused.batch_index, refused.message)
            for refused in getattr(error, "record_errors", ())
        ]
        self.base_offset = self.log_append_time_ms = self.log_start_offset = NO_OFFSET


class ProduceReply:
    """Gathers the partitions' results and answers once all are in, or the request's time is up."""

    __slots__ = ("acks", "call", "is_refused", "is_transactional", "may_wait", "outstanding", "timer", "topics")

    def __init__(self, call: Call, acks: int) -> None:
        self.call = call
        self.acks = acks
        self.outstanding = 1  # held by the handler itself until everything is staged
        self.topics: list[tuple[str | Uuid, list[Appending]]] = []
        self.timer: Any = None
        self.is_refused = False
        self.may_wait = False
        self.is_transactional = False

    def staged(self, timeout_ms: int) -> None:
        """The handler is through; what is outstanding now waits for writes, and not longer than ``timeout_ms``.

        Not before: a time-out answers the call, and that would let the next request of the connection in.
        """
        self.outstanding -= 1
        if not self.outstanding:
            self.send()
        elif self.acks == -1 and self.may_wait:
            # Only an append that must wait for a flush or for another replica can outlive its turn.
            self.timer = self.call.broker.deadlines.after(max(timeout_ms, 0), self.time_out)

    def send(self) -> None:
        call = self.call
        # The results refer to this reply: letting go of them here spares the garbage collector a cycle per request.
        topics, self.topics = self.topics, []
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        if call.parts is not None:
            return
        if self.acks:
            hints = _add_hints(call, topics) if self.is_refused and call.version >= LEADER_HINTS_FROM else ()
            call.complete((encode_produce_response(call.version, call.correlation_id, topics, 0, hints),))
            return
        failed = [result for _, results in topics for result in results if result.error_code]
        call.complete(())
        if failed:
            call.connection.close(f"a produce request with acks=0 failed: {failed[0].error_message}")

    def time_out(self) -> None:
        if self.call.parts is not None:
            return
        for _, results in self.topics:
            for result in results:
                if not (result.is_settled or result.error_code):
                    result.refuse(RequestTimedOut())
        self.timer = None
        self.send()


Heavy = tuple[Appending, LocalTopic, Partition, bytes, Guard | None]
"""A batch that is checked on a thread, or that the coordinator is asked about."""


def error_reply(request: Any, version: int, error: ApiError) -> None:
    """Produce has no place for an error outside its partitions."""
    return


@handles_frames(0, error_reply=error_reply, advertised_min=0)
def handle_produce(call: Call, frame: memoryview, position: int) -> None:
    request, _ = decode_produce_request(call.version, frame, position)
    reply = ProduceReply(call, request.acks)
    refusal = _refusal(call, request.acks, request.transactional_id)
    connection = call.connection
    now_ms = connection.wall_ms
    if now_ms < 0:
        now_ms = connection.wall_ms = call.broker.now_ms()
    allow_zstd = call.version >= 7
    heavy: list[Heavy] = []
    for name_or_id, partitions in request.topics:
        results: list[Appending] = []
        reply.topics.append((name_or_id, results))
        topic: LocalTopic | None = None
        error = refusal
        if error is None:
            try:
                topic = _writable_topic(call, name_or_id)
            except ApiError as refused:
                # Without its traceback: that would keep this frame, and with it the views, alive in a cycle.
                error = refused.with_traceback(None)
        if topic is not None:
            topic.counts.produce_requests += len(partitions)
        for partition_index, records in partitions:
            result = Appending(reply, partition_index)
            results.append(result)
            if topic is None:
                assert error is not None
                result.refuse(error)
                continue
            try:
                partition = topic.partitions.get(partition_index)
                if partition is None:
                    raise call.broker.topics.missing_partition(topic, partition_index)
                batch = b"" if records is None else bytes(records)
                if request.transactional_id is not None:
                    reply.is_transactional = True
                    guard = guard_for(call.broker, partition, batch, call.version)
                    if guard is not None:
                        heavy.append((result, topic, partition, batch, guard))
                        continue
                if not _append_if_light(result, topic, partition, batch, now_ms, allow_zstd):
                    heavy.append((result, topic, partition, batch, None))
            except ApiError as refused:
                topic.counts.produce_failed += 1
                result.refuse(refused)
    if heavy:
        call.hold()
        call.broker.spawn(_append_heavy(call, reply, heavy, request.timeout_ms, request.transactional_id))
    else:
        reply.staged(request.timeout_ms)


def _add_hints(call: Call, topics: list[tuple[str | Uuid, list[Appending]]]) -> list[NodeEndpoint]:
    """Say who leads where we do not; the endpoints of those leaders."""
    leaders = []
    for name_or_id, results in topics:
        for result in results:
            if result.error_code in ABOUT_LEADERS:
                leader = leader_of(call.broker, name_or_id, result.index)
                if leader is not None:
                    result.current_leader = LeaderIdAndEpoch(leader.leader_id, leader.leader_epoch)
                    leaders.append(leader.leader_id)
    return [NodeEndpoint(each.node_id, each.host, each.port, each.rack) for each in addresses_of(call, leaders)]


def _refusal(call: Call, acks: int, transactional_id: str | None) -> ApiError | None:
    """What is wrong with the request as a whole, if anything."""
    if acks not in (0, 1, -1):
        return InvalidRequiredAcks(f"acks={acks} is not 0, 1 or -1")
    if transactional_id is not None and not call.may(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        return TransactionalIdAuthorizationFailed()
    return None


def _writable_topic(call: Call, name_or_id: str | Uuid) -> LocalTopic:
    topics = call.broker.topics
    name = name_or_id if isinstance(name_or_id, str) else topics.name_of(name_or_id)
    if not call.may(Operation.WRITE, ResourceType.TOPIC, name):
        raise TopicAuthorizationFailed
    topic = topics.topic(name_or_id)
    if topic.is_internal and call.client_id != ADMIN_CLIENT_ID:
        raise InvalidTopic(f"{topic.name} is internal: clients may not write to it")
    return topic


def _append_if_light(
    result: Appending, topic: LocalTopic, partition: Partition, batch: bytes, now_ms: int, allow_zstd: bool
) -> bool:
    """Check and stage a batch here and now; False when it is too heavy for the loop."""
    if is_heavy(batch, topic.rules):
        return False
    try:
        validated = validate(batch, topic.rules, now_ms, allow_zstd, RAW_BYTES_MAX)
    except DecompressionLimit:
        return False
    _append(result, topic, partition, validated, now_ms)
    return True


def _append(
    result: Appending,
    topic: LocalTopic,
    partition: Partition,
    validated: Validated,
    now_ms: int,
    guard: Guard | None = None,
) -> None:
    reply = result.reply
    header = validated.header
    if header.attributes & TRANSACTIONAL_BIT:
        if not reply.is_transactional:
            raise TransactionalIdAuthorizationFailed("a transactional batch in a request without a transactional id")
        reply.call.broker.verification.check(
            partition, guard, header.producer_id, header.producer_epoch, header.base_sequence
        )
    staged = partition.append(validated, wants_all=reply.acks == -1, now_ms=now_ms, settle=result.settled)
    if guard is not None:
        reply.call.broker.verification.drop(partition, header.producer_id)
    reply.outstanding += 1
    if partition.may_wait:
        reply.may_wait = True
    result.base_offset = staged.first_offset
    result.log_append_time_ms = validated.append_time_ms
    result.log_start_offset = partition.log.log_start_offset
    counts = topic.counts
    counts.messages_in += validated.record_count
    counts.bytes_in += len(validated.batch)


async def _append_heavy(
    call: Call, reply: ProduceReply, heavy: list[Heavy], timeout_ms: int, transactional_id: str | None
) -> None:
    """Ask coordinators, check batches on a thread, then stage them; the connection is held until that is done."""
    broker = call.broker
    now_ms = broker.now_ms()
    allow_zstd = call.version >= 7
    refusals: dict[Partition, ApiError] = {}
    if transactional_id is not None:
        guards = [guard for _, _, _, _, guard in heavy if guard is not None]
        refusals = await ask_about(broker, transactional_id, guards, call.version)
    for result, topic, partition, batch, guard in heavy:
        try:
            if partition in refusals:
                raise refusals[partition]
            validated = await _validated(broker, topic, batch, now_ms, allow_zstd)
            # The topic may have been deleted while the batch was being checked.
            if broker.topics.by_id.get(topic.topic_id) is not topic:
                raise UnknownTopicOrPartition(f"{topic.name} was deleted")
            _append(result, topic, partition, validated, now_ms, guard)
        except ApiError as error:
            topic.counts.produce_failed += 1
            result.refuse(error)
        except Exception as error:
            broker.report(error)
            result.refuse(UnknownServerError())
    call.release()
    reply.staged(timeout_ms)


async def _validated(broker: Broker, topic: LocalTopic, batch: bytes, now_ms: int, allow_zstd: bool) -> Validated:
    """Checked on a thread, unless it came here for another reason than its weight."""
    if not is_heavy(batch, topic.rules):
        try:
            return validate(batch, topic.rules, now_ms, allow_zstd, RAW_BYTES_MAX)
        except DecompressionLimit:
            pass
    return await broker.in_thread(validate, batch, topic.rules, now_ms, allow_zstd)
