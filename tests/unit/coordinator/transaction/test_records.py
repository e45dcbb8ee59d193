"""Records of the transaction log, byte for byte and back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millbeck.coordinator.transaction.records import TransactionRecord, decode, encode
from millbeck.coordinator.transaction.status import TransactionState
from millbeck.coordinator.transaction.transaction import Transaction
from millbeck.kernel.ids import TopicPartition
from millbeck.wire.errors import DecodeError

OPEN = Transaction(
    transactional_id="tx",
    producer_id=0x0102,
    producer_epoch=3,
    timeout_ms=60_000,
    status=TransactionState.ONGOING,
    partitions={TopicPartition("t", 1): None, TopicPartition("t", 4): None},
    start_timestamp_ms=10,
    update_timestamp_ms=11,
    previous_producer_id=0x0102,
    client_version=2,
)


def test_the_bytes_are_kafkas() -> None:
    key, value = encode(TransactionRecord("tx", OPEN, 0))
    assert key == b"\0\0\0\2tx"
    assert value == (
        b"\0\0"
        b"\0\0\0\0\0\0\1\2"  # producer id
        b"\0\3"  # epoch
        b"\0\0\xea\x60"  # timeout
        b"\1"  # Ongoing
        b"\0\0\0\1\0\1t\0\0\0\2\0\0\0\1\0\0\0\4"
        b"\0\0\0\0\0\0\0\x0b"  # last update
        b"\0\0\0\0\0\0\0\x0a"  # start
    )
    _, newer = encode(TransactionRecord("tx", OPEN, 1))
    assert newer is not None
    assert newer.startswith(b"\0\1\0\0\0\0\0\0\1\2\0\3\0\0\xea\x60\1\2\2t\3\0\0\0\1\0\0\0\4\0")
    # Two tagged fields: the producer before, and the client's version.
    assert newer.endswith(b"\2\0\x08\0\0\0\0\0\0\1\2\2\2\0\2")


def test_a_tombstone_has_no_value() -> None:
    assert encode(TransactionRecord("tx", None)) == (b"\0\0\0\2tx", None)
    assert decode(b"\0\0\0\2tx", None) == TransactionRecord("tx", None)


@settings(max_examples=50)
@given(
    status=st.sampled_from([status for status in TransactionState if status is not TransactionState.EMPTY]),
    epoch=st.integers(-1, 2**15 - 1),
    partitions=st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5)), unique=True),
    next_id=st.integers(-1, 2**40),
)
def test_what_is_written_is_read(
    status: TransactionState, epoch: int, partitions: list[tuple[str, int]], next_id: int
) -> None:
    transaction = Transaction(
        transactional_id="ä",
        producer_id=2**40,
        producer_epoch=epoch,
        timeout_ms=1,
        status=status,
        partitions=dict.fromkeys(TopicPartition(*each) for each in sorted(partitions)),
        next_producer_id=next_id,
        client_version=2,
    )
    assert decode(*encode(TransactionRecord("ä", transaction, 1))) == TransactionRecord("ä", transaction, 1)


def test_what_is_wrong_is_refused_and_what_is_unknown_skipped() -> None:
    key, value = encode(TransactionRecord("tx", OPEN, 0))
    assert value is not None
    assert decode(b"\0\x07\0\2tx", value) is None
    for bad_key, bad_value in [
        (b"\0", value),
        (key + b"x", value),
        (key, b"\0"),
        (key, b"\0\x09" + value[2:]),
        (key, value[:-1]),
        (key, value[:16] + b"\x63" + value[17:]),
    ]:
        with pytest.raises(DecodeError):
            decode(bad_key, bad_value)


def test_a_kept_transaction_has_the_epoch_of_who_is_to_end_it_in_tag_3() -> None:
    _, value = encode(TransactionRecord("tx", OPEN.kept(9, timeout_ms=5, now_ms=12), 1))
    assert value is not None
    assert value.endswith(b"\4\0\x08\0\0\0\0\0\0\1\2\1\x08\0\0\0\0\0\0\1\2\2\2\0\2\3\2\0\4")
