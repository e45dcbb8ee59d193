"""Each rule a leader holds a produced batch to, with the error a client gets; a good batch passes untouched."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millbeck.kernel.errors import (
    ApiError,
    CorruptMessage,
    InvalidRecord,
    InvalidTimestamp,
    MessageTooLarge,
    UnsupportedCompressionType,
)
from millbeck.records import batch
from millbeck.records.batch import Codec, TimestampType
from millbeck.records.compression import DecompressionLimit, compress
from millbeck.records.record import Record
from millbeck.records.validation import (
    DECOMPRESSED_BYTES_MIN,
    INT64_MAX,
    RECORD_ERRORS_MAX,
    InvalidTimestamps,
    ValidatedBatch,
    ValidationRules,
    validate,
)
from tests.unit.records.strategies import records

NOW = 1_700_000_000_000
RULES = ValidationRules()
SAMPLE = [Record(-1, NOW + index, b"k%d" % index, b"value", (("h", None),)) for index in range(5)]


def signed(data: bytes) -> bytes:
    """The batch with the checksum its bytes call for, as a client bent on mischief would send it."""
    return data[:17] + batch.checksum(data).to_bytes(4, "big") + data[21:]


def with_field(data: bytes, position: int, value: int, size: int) -> bytes:
    return signed(data[:position] + value.to_bytes(size, "big", signed=True) + data[position + size :])


def refused(error: type[ApiError], data: bytes, rules: ValidationRules = RULES, *, allow_zstd: bool = True) -> ApiError:
    with pytest.raises(error) as caught:
        validate(data, rules, NOW, allow_zstd)
    return caught.value


@pytest.mark.parametrize("codec", Codec)
def test_a_good_batch_is_stored_as_it_came(codec: Codec) -> None:
    data = batch.build(SAMPLE, codec=codec, producer_id=4, producer_epoch=0, base_sequence=7)
    validated = validate(data, RULES, NOW)
    assert validated.batch is data
    assert validated.header == batch.read_header(data)
    assert validated.record_count == 5
    assert validated.max_timestamp == NOW + 4
    assert validated.append_time_ms == -1


@given(records(), st.sampled_from(Codec))
@settings(max_examples=60)
def test_whatever_a_producer_builds_passes(given_records: list[Record], codec: Codec) -> None:
    data = batch.build(given_records, codec=codec)
    rules = ValidationRules(timestamp_after_max_ms=INT64_MAX)
    assert validate(data, rules, 0).batch is data


def test_a_transactional_batch_passes() -> None:
    data = batch.build(SAMPLE, is_transactional=True, producer_id=4, producer_epoch=0, base_sequence=0)
    assert validate(data, RULES, NOW).header.is_transactional


GOOD = batch.build(SAMPLE)
SHAPES: dict[str, tuple[bytes, type[ApiError]]] = {
    "nothing": (b"", InvalidRecord),
    "less than a magic": (GOOD[:16], InvalidRecord),
    "cut off in the header": (GOOD[:60], InvalidRecord),
    "cut off in the records": (GOOD[:-1], InvalidRecord),
    "two batches": (GOOD + GOOD, InvalidRecord),
    "a byte too many": (GOOD + b"\x00", InvalidRecord),
    "magic 0": (with_field(GOOD, 16, 0, 1), InvalidRecord),
    "magic 1": (with_field(GOOD, 16, 1, 1), InvalidRecord),
    "magic 3": (with_field(GOOD, 16, 3, 1), CorruptMessage),
    "negative magic": (with_field(GOOD, 16, -1, 1), CorruptMessage),
    "negative length": (with_field(GOOD, 8, -1, 4), CorruptMessage),
    "length below the header's": (with_field(GOOD, 8, 48, 4), CorruptMessage),
    "length below the records'": (with_field(GOOD, 8, len(GOOD) - 13, 4), InvalidRecord),
    "length beyond the end": (with_field(GOOD, 8, 2**31 - 1, 4), InvalidRecord),
    "wrong checksum": (GOOD[:17] + b"\x00\x00\x00\x00" + GOOD[21:], CorruptMessage),
    "changed record": (GOOD[:-3] + b"xyz", CorruptMessage),
    "base offset": (with_field(GOOD, 0, 5, 8), InvalidRecord),
    "no records": (with_field(with_field(GOOD, 57, 0, 4), 23, -1, 4), InvalidRecord),
    "negative count": (with_field(with_field(GOOD, 57, -3, 4), 23, -4, 4), InvalidRecord),
    "count above": (with_field(with_field(GOOD, 57, 6, 4), 23, 5, 4), InvalidRecord),
    "count below": (with_field(with_field(GOOD, 57, 4, 4), 23, 3, 4), InvalidRecord),
    "count of two billion": (with_field(with_field(GOOD, 57, 2**31 - 1, 4), 23, 2**31 - 2, 4), InvalidRecord),
    "count and last offset differ": (with_field(GOOD, 23, 5, 4), InvalidRecord),
    "control batch": (batch.build(SAMPLE, is_control=True), InvalidRecord),
    "transactional without a producer": (batch.build(SAMPLE, is_transactional=True), InvalidRecord),
    "producer without a sequence": (batch.build(SAMPLE, producer_id=1, producer_epoch=0), InvalidRecord),
    "producer's timestamp type": (batch.build(SAMPLE, append_timestamp=NOW), InvalidTimestamp),
    "codec 5": (with_field(GOOD, 21, 5, 2), UnsupportedCompressionType),
    "codec 7": (with_field(GOOD, 21, 7, 2), UnsupportedCompressionType),
    "codec that was not used": (with_field(GOOD, 21, 1, 2), InvalidRecord),
    "timestamps beyond 64 bits": (with_field(GOOD, 27, 2**63 - 1, 8), InvalidRecord),
}


@pytest.mark.parametrize(("data", "error"), SHAPES.values(), ids=SHAPES.keys())
def test_what_is_no_good_batch_is_refused(data: bytes, error: type[ApiError]) -> None:
    assert type(refused(error, data)) in (error, *error.__subclasses__())


def test_offset_deltas_with_a_gap_are_refused() -> None:
    gap = batch.build([Record(0, NOW, b"k", b"v"), Record(2, NOW, b"k", b"v")], last_offset=2)
    assert "offset" in str(refused(InvalidRecord, with_field(gap, 23, 1, 4)))


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec is not Codec.NONE])
def test_records_inside_a_compressed_batch_are_checked(codec: Codec) -> None:
    payload = batch.payload_of(GOOD)
    for broken in (payload[:-1], payload + b"\x00", bytes(len(payload))):
        data = batch.assemble(
            compress(codec, broken),
            record_count=5,
            last_offset_delta=4,
            base_timestamp=NOW,
            max_timestamp=NOW + 4,
            attributes=codec,
        )
        assert "malformed" in str(refused(InvalidRecord, data))


def test_zstd_needs_a_request_that_may_carry_it() -> None:
    refused(UnsupportedCompressionType, batch.build(SAMPLE, codec=Codec.ZSTD), allow_zstd=False)
    assert validate(batch.build(SAMPLE, codec=Codec.LZ4), RULES, NOW, False).record_count == 5


def test_size_limit_is_on_the_whole_batch() -> None:
    assert validate(GOOD, ValidationRules(max_message_bytes=len(GOOD)), NOW).batch is GOOD
    refused(MessageTooLarge, GOOD, ValidationRules(max_message_bytes=len(GOOD) - 1))


def test_a_decompression_bomb_is_refused() -> None:
    assert ValidationRules(max_message_bytes=1000).decompressed_bytes_max == DECOMPRESSED_BYTES_MIN
    assert ValidationRules(max_message_bytes=10**8).decompressed_bytes_max == 10**9
    bomb = batch.build([Record(-1, NOW, None, bytes(DECOMPRESSED_BYTES_MIN))], codec=Codec.GZIP)
    assert isinstance(refused(InvalidRecord, bomb), DecompressionLimit)


@pytest.mark.parametrize("codec", Codec)
def test_compacted_topics_need_keys(codec: Codec) -> None:
    mixed = [Record(-1, NOW, key, b"v") for key in (b"k", None, b"", None)]
    data = batch.build(mixed, codec=codec)
    error = refused(InvalidRecord, data, ValidationRules(keys_required=True))
    assert isinstance(error, InvalidRecord)
    assert [one.batch_index for one in error.record_errors] == [1, 3]
    assert all("key" in one.message for one in error.record_errors)
    assert validate(data, RULES, NOW).record_count == 4


def test_an_error_names_a_bounded_number_of_records() -> None:
    error = refused(
        InvalidRecord, batch.build([Record(-1, NOW, None, b"v")] * 500), ValidationRules(keys_required=True)
    )
    assert isinstance(error, InvalidRecord)
    assert len(error.record_errors) == RECORD_ERRORS_MAX


def test_timestamps_stay_between_the_topics_bounds() -> None:
    rules = ValidationRules(timestamp_before_max_ms=100, timestamp_after_max_ms=50)
    edges = [Record(-1, NOW - 100, b"k", b"v"), Record(-1, NOW + 50, b"k", b"v"), Record(-1, -1, b"k", b"v")]
    assert validate(batch.build(edges), rules, NOW).max_timestamp == NOW + 50
    outside = [Record(-1, timestamp, b"k", b"v") for timestamp in (NOW, NOW - 101, NOW + 51, NOW - 100)]
    error = refused(InvalidTimestamp, batch.build(outside), rules)
    assert isinstance(error, InvalidTimestamps)
    assert error.code == InvalidTimestamp.code
    assert [one.batch_index for one in error.record_errors] == [1, 2]


def test_a_missing_key_and_a_bad_timestamp_together_are_a_timestamp_error() -> None:
    rules = ValidationRules(timestamp_before_max_ms=100, keys_required=True)
    error = refused(InvalidTimestamp, batch.build([Record(-1, NOW, None, b""), Record(-1, 0, b"k", b"")]), rules)
    assert isinstance(error, InvalidTimestamps)
    assert [one.batch_index for one in error.record_errors] == [0, 1]


def test_default_bounds_allow_the_past_and_an_hour_ahead() -> None:
    validate(batch.build([Record(-1, 0, None, b"v"), Record(-1, NOW + 3_600_000, None, b"v")]), RULES, NOW)
    refused(InvalidTimestamp, batch.build([Record(-1, NOW + 3_600_001, None, b"v")]))


@pytest.mark.parametrize("codec", Codec)
def test_append_time_is_stamped(codec: Codec) -> None:
    data = batch.build(SAMPLE, codec=codec, producer_id=4, producer_epoch=1, base_sequence=9)
    rules = ValidationRules(
        timestamp_type=TimestampType.LOG_APPEND_TIME, timestamp_before_max_ms=0, timestamp_after_max_ms=0
    )
    validated = validate(data, rules, NOW + 99)
    header = batch.verify(validated.batch)
    assert header == validated.header
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert (header.max_timestamp, validated.max_timestamp, validated.append_time_ms) == (NOW + 99,) * 3
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (4, 1, 9)
    assert header.base_timestamp == NOW
    assert header.codec is codec
    assert validated.batch[batch.HEADER_SIZE :] == data[batch.HEADER_SIZE :], "records are not touched"
    assert {record.timestamp for record in batch.records_of(validated.batch)} == {NOW + 99}


@pytest.mark.parametrize("source", Codec)
@pytest.mark.parametrize("target", Codec)
def test_the_topics_codec_replaces_the_producers(source: Codec, target: Codec) -> None:
    data = batch.build(SAMPLE, codec=source, is_transactional=True, producer_id=4, producer_epoch=1, base_sequence=9)
    validated = validate(data, ValidationRules(codec=target), NOW)
    header = batch.verify(validated.batch)
    assert header == validated.header
    assert header.codec is target
    assert (header.is_transactional, header.producer_id, header.base_sequence) == (True, 4, 9)
    assert (header.base_timestamp, header.max_timestamp, header.record_count) == (NOW, NOW + 4, 5)
    assert batch.records_of(validated.batch) == batch.records_of(data)
    assert (validated.batch is data) == (source is target)


def test_the_topics_level_is_used() -> None:
    many = batch.build([Record(-1, NOW, b"k%d" % index, b"some text %d" % (index * 7)) for index in range(2000)])
    fast, dense = (validate(many, ValidationRules(codec=Codec.ZSTD, level=level), NOW).batch for level in (-7, 19))
    assert len(dense) < len(fast)


def test_size_is_checked_again_after_the_codec_changed() -> None:
    data = batch.build([Record(-1, NOW, None, bytes(5000))], codec=Codec.ZSTD)
    refused(MessageTooLarge, data, ValidationRules(codec=Codec.NONE, max_message_bytes=1000))


def test_a_wrong_largest_timestamp_is_set_right() -> None:
    validated = validate(with_field(GOOD, 35, 5, 8), RULES, NOW)
    assert batch.verify(validated.batch).max_timestamp == validated.max_timestamp == NOW + 4
    assert validated.batch == GOOD


@given(
    st.sampled_from([batch.build(SAMPLE, codec=codec) for codec in Codec]),
    st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=4),
    st.integers(0, 3),
    st.sampled_from(
        [
            RULES,
            ValidationRules(keys_required=True, codec=Codec.GZIP),
            ValidationRules(timestamp_type=TimestampType.LOG_APPEND_TIME),
        ]
    ),
)
@settings(max_examples=300)
def test_mutated_batches_get_an_api_error_or_a_sound_batch(
    data: bytes, mutations: list[tuple[int, int]], cut: int, rules: ValidationRules
) -> None:
    broken = bytearray(data)
    for position, byte in mutations:
        broken[position % len(broken)] = byte
    attempt = bytes(broken[: len(broken) - cut])
    try:
        validated: ValidatedBatch = validate(signed(attempt), rules, NOW)
    except ApiError:
        return
    header = batch.verify(validated.batch)
    assert header == validated.header
    assert len(batch.records_of(validated.batch)) == validated.record_count == header.record_count
