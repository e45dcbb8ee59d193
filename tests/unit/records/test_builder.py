"""A producer's batch grows as told and equals one built at once."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millbeck.records import batch
from millbeck.records.builder import BatchBuilder
from millbeck.records.compression import Codec
from millbeck.records.record import Record
from tests.unit.records.strategies import records


@given(records(), st.sampled_from(Codec))
@settings(max_examples=40)
def test_equals_a_batch_built_at_once(given_records: list[Record], codec: Codec) -> None:
    builder = BatchBuilder(codec)
    for record in given_records:
        told = builder.size_with(record.timestamp, record.key, record.value, record.headers)
        builder.append(record.timestamp, record.key, record.value, record.headers)
        assert builder.size_bytes == told
    built = builder.build(producer_id=1, producer_epoch=2, base_sequence=3, is_transactional=True)
    assert built == batch.build(
        given_records, codec=codec, producer_id=1, producer_epoch=2, base_sequence=3, is_transactional=True
    )
    assert builder.record_count == len(given_records)
    if codec is Codec.NONE:
        assert len(built) == builder.size_bytes


def test_may_be_built_again_after_more_records_or_for_another_epoch() -> None:
    builder = BatchBuilder(Codec.LZ4)
    builder.append(5, b"a", None)
    assert len(batch.records_of(builder.build())) == 1
    builder.append(6, b"b", None)
    assert batch.read_header(builder.build(producer_id=9, producer_epoch=1, base_sequence=0)).producer_epoch == 1
    assert [record.key for record in batch.records_of(builder.build(producer_id=9, producer_epoch=2))] == [b"a", b"b"]


def test_an_empty_batch_is_not_produced() -> None:
    with pytest.raises(ValueError, match="needs a record"):
        BatchBuilder().build()
