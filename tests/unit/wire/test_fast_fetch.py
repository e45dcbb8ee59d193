"""The hand-written Fetch response encoder equals the generated one, with the records left where they are."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millbeck.kernel.environment import File, FileSlice, Part
from millbeck.wire import codec, framing
from millbeck.wire.fast_fetch import PartitionResult, encode_fetch_response
from millbeck.wire.messages.fetch import EpochEndOffset, FetchedPartition, FetchResponse, SnapshotId
from millbeck.wire.messages.shared import LeaderIdAndEpoch
from tests.model.wire.instances import instances, standalone_versions

VERSIONS = standalone_versions(FetchResponse)
SETTINGS = settings(max_examples=40, derandomize=True, database=None, deadline=None)


def _none_at_default(value: Any, default: Any) -> Any:
    return None if value == default else value


def _result(partition: FetchedPartition) -> PartitionResult:
    records = partition.records or b""
    middle = len(records) // 2
    return PartitionResult(
        partition.partition_index,
        partition.error_code,
        partition.high_watermark,
        partition.last_stable_offset,
        partition.log_start_offset,
        len(records),
        [records[:middle], memoryview(records)[middle:]] if records else (),
        partition.aborted_transactions,
        partition.preferred_read_replica,
        _none_at_default(partition.diverging_epoch, EpochEndOffset()),
        _none_at_default(partition.current_leader, LeaderIdAndEpoch()),
        _none_at_default(partition.snapshot_id, SnapshotId()),
    )


def _without_null_records(response: FetchResponse) -> FetchResponse:
    """What there is nothing of is sent as empty: clients differ in how they take a null."""
    for topic in response.responses:
        for partition in topic.partitions:
            partition.records = partition.records or b""
    return response


@pytest.mark.parametrize("version", VERSIONS)
def test_responses_are_written_as_the_generated_encoder_writes_them(version: int) -> None:
    @SETTINGS
    @given(instances(FetchResponse, version).map(_without_null_records), st.integers(0, 2**31 - 1))
    def equal(response: Any, correlation_id: int) -> None:
        body = codec.encoder(FetchResponse, version)(response)
        responses = [
            (topic.topic_id if version >= 13 else topic.topic, [_result(p) for p in topic.partitions])
            for topic in response.responses
        ]
        parts = encode_fetch_response(
            version,
            correlation_id,
            response.throttle_time_ms,
            response.error_code,
            response.session_id,
            responses,
            response.node_endpoints,
        )
        written = b"".join(cast("list[bytes]", parts))
        assert written == framing.response_prefix(1, version, correlation_id, len(body)) + body

    equal()


def _slice(size: int) -> FileSlice:
    return FileSlice(cast("File", None), 0, size, lambda: None)


def _size(part: Part) -> int:
    return part.size if isinstance(part, FileSlice) else len(part)


@pytest.mark.parametrize("version", VERSIONS)
def test_file_slices_stay_whole_and_in_order(version: int) -> None:
    first, second, third = _slice(1_000_000), _slice(5), _slice(70_000)
    results = [
        PartitionResult(0, records_size=1_000_005, records=[first, second]),
        PartitionResult(1),
        PartitionResult(2, records_size=70_000, records=[third]),
    ]
    parts = encode_fetch_response(version, 7, 0, 0, 0, [(bytes(16) if version >= 13 else "t", results)])
    assert [part for part in parts if isinstance(part, FileSlice)] == [first, second, third]
    assert isinstance(parts[0], bytes)
    assert int.from_bytes(parts[0][:4]) + 4 == sum(map(_size, parts))


def test_an_empty_response_is_one_part() -> None:
    assert encode_fetch_response(12, 7, 0, 0, 3, []) == [b"\0\0\0\x11\0\0\0\7\0" + bytes(6) + b"\0\0\0\3\1\0"]
