"""The records of ``__transaction_state``: the state of each transactional id.

A key is its type as int16 and the id; a value is its version as int16 and its fields, or null once the id has expired.
Version 1, which has tagged fields, is written from transaction version 1 on.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import Final

from millbeck.coordinator.transaction.status import TransactionState
from millbeck.coordinator.transaction.transaction import Transaction
from millbeck.kernel.ids import TopicPartition
from millbeck.wire import codec
from millbeck.wire.errors import DecodeError
from millbeck.wire.schema import Kind, array, int8, int16, int32, int64, message, string, struct

TRANSACTION_TYPE: Final = 0
VALUE_VERSION_MAX: Final = 1

_INT16 = Struct(">h")


@message(kind=Kind.DATA, versions="0", flexible="none")
class TransactionLogKey:
    transactional_id: str = string()


@struct
class PartitionsSchema:
    """Partitions of one topic that are part of the transaction."""

    topic: str = string()
    partition_ids: list[int] = array(of=int32)


@message(kind=Kind.DATA, versions="0-1", flexible="1+")
class TransactionLogValue:
    """The state of one transactional id."""

    producer_id: int = int64(doc="The current producer id.")
    previous_producer_id: int = int64(versions="1+", tag=0, default=-1, ignorable=True)
    next_producer_id: int = int64(
        versions="1+", tag=1, default=-1, ignorable=True, doc="The producer id to use after the last epoch of this one."
    )
    producer_epoch: int = int16()
    transaction_timeout_ms: int = int32()
    transaction_status: int = int8()
    transaction_partitions: list[PartitionsSchema] | None = array(of=PartitionsSchema, nullable="0+")
    transaction_last_update_timestamp_ms: int = int64()
    transaction_start_timestamp_ms: int = int64()
    client_transaction_version: int = int16(versions="1+", tag=2, default=0, ignorable=True)
    next_producer_epoch: int = int16(
        versions="1+",
        tag=3,
        default=-1,
        ignorable=True,
        doc="Set only if the transaction is kept for another producer (KIP-939).",
    )


@dataclass(frozen=True, slots=True)
class TransactionRecord:
    """``transaction`` is None for a tombstone; ``version`` is that of the value."""

    transactional_id: str
    transaction: Transaction | None
    version: int = VALUE_VERSION_MAX


def encode(record: TransactionRecord) -> tuple[bytes, bytes | None]:
    """Serialize the key and value."""
    key = _INT16.pack(TRANSACTION_TYPE) + codec.encoder(TransactionLogKey, 0)(
        TransactionLogKey(record.transactional_id)
    )
    if record.transaction is None:
        return key, None
    value = _value_of(record.transaction)
    return key, _INT16.pack(record.version) + codec.encoder(TransactionLogValue, record.version)(value)


def _value_of(transaction: Transaction) -> TransactionLogValue:
    topics: dict[str, list[int]] = {}
    for topic, partition in transaction.partitions:
        topics.setdefault(topic, []).append(partition)
    partitions = [PartitionsSchema(topic, ids) for topic, ids in topics.items()]
    return TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.status,
        transaction_partitions=None if transaction.status is TransactionState.EMPTY else partitions,
        transaction_last_update_timestamp_ms=transaction.update_timestamp_ms,
        transaction_start_timestamp_ms=transaction.start_timestamp_ms,
        client_transaction_version=transaction.client_version,
        next_producer_epoch=transaction.next_producer_epoch,
    )


def decode(key: bytes, value: bytes | None) -> TransactionRecord | None:
    """Deserialize a record; None if its type is unknown. Raises DecodeError for malformed bytes."""
    if len(key) < 2:
        raise DecodeError("record key is too short for a type")
    if _INT16.unpack_from(key)[0] != TRANSACTION_TYPE:
        return None
    decoded_key, end = codec.decoder(TransactionLogKey, 0)(key, 2)
    if end != len(key):
        raise DecodeError(f"{len(key) - end} trailing bytes in a key")
    if value is None:
        return TransactionRecord(decoded_key.transactional_id, None)
    if len(value) < 2:
        raise DecodeError("record value is too short for a version")
    version = _INT16.unpack_from(value)[0]
    if not 0 <= version <= VALUE_VERSION_MAX:
        raise DecodeError(f"unsupported transaction record version {version}")
    decoded, _ = codec.decoder(TransactionLogValue, version)(value, 2)
    return TransactionRecord(
        decoded_key.transactional_id, _transaction_of(decoded_key.transactional_id, decoded), version
    )


def _transaction_of(transactional_id: str, value: TransactionLogValue) -> Transaction:
    try:
        status = TransactionState(value.transaction_status)
    except ValueError:
        raise DecodeError(f"unknown transaction state {value.transaction_status}") from None
    return Transaction(
        transactional_id=transactional_id,
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        status=status,
        partitions={
            TopicPartition(topic.topic, partition): None
            for topic in value.transaction_partitions or ()
            for partition in topic.partition_ids
        },
        start_timestamp_ms=value.transaction_start_timestamp_ms,
        update_timestamp_ms=value.transaction_last_update_timestamp_ms,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        client_version=value.client_transaction_version,
        next_producer_epoch=value.next_producer_epoch,
    )
