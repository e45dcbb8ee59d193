"""Produce: append record batches and return their offsets.

Behaviour
- One batch per partition, validated (`records.validation`) and staged in request order; the response is sent when every
  partition's batch is written (``acks=1``) or below the high watermark (``acks=all``).
- ``acks=0`` has no response; an error then closes the connection, the only way to report it.
- While a request waits after its append, further requests of the connection are handled. They wait while a heavy batch
  (`heavy_batches`) is validated on a thread, and while the transaction coordinator verifies a partition before the
  first batch of a transaction (`transactional_produce`).
- Errors are per partition. An invalid record is reported by its index in the batch. A broker that is not the leader
  returns the current leader.
- With ``confluent.value.schema.validation``, a batch with an unknown schema waits until the broker has read all schemas
  registered by then; it is refused if the schema is still unknown.
- ``acks=all`` requires ``min.insync.replicas``: NOT_ENOUGH_REPLICAS before the append, NOT_ENOUGH_REPLICAS_AFTER_APPEND
  when the ISR shrinks below it during the wait, REQUEST_TIMED_OUT when replication takes too long.
- Batches a producer sent after one that was refused with a retriable error are refused with the same error, where Kafka
  answers OUT_OF_ORDER_SEQUENCE_NUMBER (`replication.refusals`): some clients cannot recover from that.
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
    TopicAuthorizationFailed,
    TransactionalIdAuthorizationFailed,
    UnknownServerError,
    UnknownTopicOrPartition,
)
from millbeck.kernel.ids import Uuid
from millbeck.records.batch import TRANSACTIONAL_BIT
from millbeck.records.compression import DecompressionLimit
from millbeck.records.header import BatchHeader, read_header
from millbeck.records.schema_validation import SchemaIdRefused
from millbeck.records.validation import ValidatedBatch, validate
from millbeck.replication.partition import Partition
from millbeck.security.authorizer import Operation, ResourceType
from millbeck.server.local_topics import LocalTopic
from millbeck.server.network.call import Call
from millbeck.server.network.route import Need, handles_frames
from millbeck.server.requests.delayed_produce import DelayedProduce, PartitionAppend
from millbeck.server.requests.heavy_batches import RAW_BYTES_MAX, is_heavy
from millbeck.server.transactions.transactional_produce import ask_about, guard_for
from millbeck.server.transactions.write_verification import VerificationGuard
from millbeck.wire.fast_produce import decode_produce_request

if TYPE_CHECKING:
    from millbeck.server.broker import Broker

ADMIN_CLIENT_ID: Final = "__admin_client"

Heavy = tuple[PartitionAppend, LocalTopic, Partition, bytes, VerificationGuard | None]
"""A batch that is validated on a thread or needs verification by the transaction coordinator."""


def error_reply(request: Any, version: int, error: ApiError) -> None:
    """Produce responses have no top-level error."""
    return


@handles_frames(
    0,
    needs=[
        Need(
            Operation.WRITE,
            ResourceType.TRANSACTIONAL_ID,
            when="the request has a transactional id, or a batch is transactional",
            denied="TRANSACTIONAL_ID_AUTHORIZATION_FAILED in every partition",
        ),
        Need(Operation.WRITE, ResourceType.TOPIC),
    ],
    error_reply=error_reply,
    advertised_min=0,
)
def handle_produce(call: Call, frame: memoryview, position: int) -> None:
    request, _ = decode_produce_request(call.version, frame, position)
    reply = DelayedProduce(call, request.acks, len(frame))
    refusal = _refusal(call, request.acks, request.transactional_id)
    connection = call.connection
    now_ms = connection.wall_ms
    if now_ms < 0:
        now_ms = connection.wall_ms = call.broker.now_ms()
    allow_zstd = call.version >= 7
    heavy: list[Heavy] = []
    for name_or_id, partitions in request.topics:
        appends: list[PartitionAppend] = []
        reply.topics.append((name_or_id, appends))
        topic: LocalTopic | None = None
        error = refusal
        if error is None:
            try:
                topic = _writable_topic(call, name_or_id)
            except ApiError as refused:
                # Drop the traceback: it would keep this frame, and with it the views, alive in a reference cycle.
                error = refused.with_traceback(None)
        if topic is not None:
            topic.counts.produce_requests += len(partitions)
        for partition_index, records in partitions:
            append = PartitionAppend(reply, partition_index)
            appends.append(append)
            if topic is None:
                assert error is not None
                append.refuse(error)
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
                        heavy.append((append, topic, partition, batch, guard))
                        continue
                if not _append_if_light(append, topic, partition, batch, now_ms, allow_zstd):
                    heavy.append((append, topic, partition, batch, None))
            except ApiError as refused:
                topic.counts.produce_failed += 1
                append.refuse(refused)
    if heavy:
        call.hold()
        call.broker.spawn(_append_heavy(call, reply, heavy, request.timeout_ms, request.transactional_id))
    else:
        reply.staged(request.timeout_ms)


def _refusal(call: Call, acks: int, transactional_id: str | None) -> ApiError | None:
    """The error of the request as a whole, if any."""
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
        raise InvalidTopic(f"{topic.name} is an internal topic: clients may not write to it")
    return topic


def _append_if_light(
    append: PartitionAppend, topic: LocalTopic, partition: Partition, batch: bytes, now_ms: int, allow_zstd: bool
) -> bool:
    """Validate and stage a batch at once; False when it is too heavy for the event loop."""
    if is_heavy(batch, topic.rules):
        return False
    try:
        validated = validate(batch, topic.rules, now_ms, allow_zstd, RAW_BYTES_MAX)
    except DecompressionLimit:
        return False
    except SchemaIdRefused as refused:
        if refused.may_be_new:
            return False
        raise
    if validated.header.attributes & TRANSACTIONAL_BIT:
        _check_transaction(append.reply, partition, validated.header, None)
    staged = partition.append(validated, append, now_ms=now_ms)
    append.staged(staged.first_offset, validated, topic, partition.log.log_start_offset)
    return True


def _check_transaction(
    reply: DelayedProduce, partition: Partition, header: BatchHeader, guard: VerificationGuard | None
) -> None:
    """Raise unless a transactional batch belongs to an open transaction, or to one that ``guard`` has verified."""
    if not reply.is_transactional:
        raise TransactionalIdAuthorizationFailed("the batch is transactional but the request has no transactional id")
    reply.call.broker.verification.check(
        partition, guard, header.producer_id, header.producer_epoch, header.base_sequence
    )


async def _append_heavy(
    call: Call, reply: DelayedProduce, heavy: list[Heavy], timeout_ms: int, transactional_id: str | None
) -> None:
    """Verify with the coordinators, validate on a thread, then stage the batches; meanwhile no further request of the
    connection is handled.
    """
    broker = call.broker
    now_ms = broker.now_ms()
    allow_zstd = call.version >= 7
    refusals: dict[Partition, ApiError] = {}
    if transactional_id is not None:
        guards = [guard for _, _, _, _, guard in heavy if guard is not None]
        refusals = await ask_about(broker, transactional_id, guards, call.version)
    for append, topic, partition, batch, guard in heavy:
        try:
            if partition in refusals:
                raise refusals[partition]
            try:
                validated = await _validated(broker, topic, batch, now_ms, allow_zstd)
            except SchemaIdRefused as refused:
                if not refused.may_be_new:
                    raise
                await _wait_for_schemas(broker, partition, batch, now_ms)
                validated = await _validated(broker, topic, batch, now_ms, allow_zstd)
            # The topic may have been deleted during validation.
            if broker.topics.by_id.get(topic.topic_id) is not topic:
                raise UnknownTopicOrPartition(f"{topic.name} was deleted")
            header = validated.header
            if header.attributes & TRANSACTIONAL_BIT:
                _check_transaction(reply, partition, header, guard)
            staged = partition.append(validated, append, now_ms=now_ms)
            if guard is not None:
                broker.verification.drop(partition, header.producer_id)
            append.staged(staged.first_offset, validated, topic, partition.log.log_start_offset)
        except ApiError as error:
            topic.counts.produce_failed += 1
            append.refuse(error)
        except Exception as error:
            broker.report(error)
            append.refuse(UnknownServerError())
    call.release()
    reply.staged(timeout_ms)


async def _wait_for_schemas(broker: Broker, partition: Partition, batch: bytes, now_ms: int) -> None:
    """Wait until the schemas that are registered by now are known; raises a retriable error if that takes too long."""
    try:
        await broker.schemas.catch_up()
    except ApiError as error:
        partition.remember_rejected(read_header(batch), type(error), now_ms)
        raise


async def _validated(broker: Broker, topic: LocalTopic, batch: bytes, now_ms: int, allow_zstd: bool) -> ValidatedBatch:
    """Validate a batch, on a thread if it is heavy."""
    if not is_heavy(batch, topic.rules):
        try:
            return validate(batch, topic.rules, now_ms, allow_zstd, RAW_BYTES_MAX)
        except DecompressionLimit:
            pass
    return await broker.in_thread(validate, batch, topic.rules, now_ms, allow_zstd)
