"""The hand-written Produce codecs equal the generated ones."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millbeck.wire import codec, framing
from millbeck.wire.errors import DecodeError
from millbeck.wire.fast_produce import (
    PartitionResult,
    ProduceRequestView,
    decode_produce_request,
    encode_produce_response,
)
from millbeck.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from millbeck.wire.messages.shared import LeaderIdAndEpoch
from millbeck.wire.varint import unsigned_varint
from tests.model.wire.instances import instances, standalone_versions

VERSIONS = standalone_versions(ProduceRequest)
SETTINGS = settings(max_examples=40, derandomize=True, database=None, deadline=None)


def _as_message(view: ProduceRequestView) -> ProduceRequest:
    topics = []
    for key, partitions in view.topics:
        topic = TopicProduceData(name=key) if isinstance(key, str) else TopicProduceData(topic_id=key)
        topic.partition_data = [
            PartitionProduceData(index, None if records is None else bytes(records)) for index, records in partitions
        ]
        topics.append(topic)
    return ProduceRequest(view.transactional_id, view.acks, view.timeout_ms, topics)


@pytest.mark.parametrize("version", VERSIONS)
def test_requests_are_read_as_the_generated_decoder_reads_them(version: int) -> None:
    @SETTINGS
    @given(instances(ProduceRequest, version))
    def equal(request: Any) -> None:
        encoded = codec.encoder(ProduceRequest, version)(request)
        for buffer, start in ((encoded, 0), (memoryview(b"###" + encoded), 3)):
            view, position = decode_produce_request(version, buffer, start)
            assert (_as_message(view), position) == (request, start + len(encoded))

    equal()


def test_records_are_views_into_the_buffer() -> None:
    request = ProduceRequest(None, 1, 5, [TopicProduceData("t", partition_data=[PartitionProduceData(0, b"batch")])])
    buffer = bytearray(codec.encoder(ProduceRequest, 9)(request))
    view, _ = decode_produce_request(9, memoryview(buffer))
    records = view.topics[0][1][0][1]
    buffer[buffer.index(b"batch") :][:1] = b"B"
    assert records is not None
    assert records.obj is buffer
    assert records == b"batch"


@pytest.mark.parametrize("version", VERSIONS)
def test_mutated_and_cut_requests_fail_where_the_generated_decoder_fails(version: int) -> None:
    generated = codec.decoder(ProduceRequest, version)

    @SETTINGS
    @given(instances(ProduceRequest, version), st.data())
    def same(request: Any, data: st.DataObject) -> None:
        mutated = bytearray(codec.encoder(ProduceRequest, version)(request))
        if data.draw(st.booleans()):
            del mutated[data.draw(st.integers(0, len(mutated) - 1)) :]
        else:
            place = data.draw(st.integers(0, len(mutated) - 1))
            mutated[place] = data.draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]))
        try:
            expected = generated(bytes(mutated))
        except DecodeError:
            with pytest.raises(DecodeError):
                decode_produce_request(version, bytes(mutated))
        else:
            view, position = decode_produce_request(version, bytes(mutated))
            assert (_as_message(view), position) == expected

    same()


def test_a_null_in_more_bytes_than_it_needs_is_a_null() -> None:
    encoded = b"\x80\0" + b"\0\1\0\0\0\5\1\0"
    view, position = decode_produce_request(9, encoded)
    assert (_as_message(view), position) == codec.decoder(ProduceRequest, 9)(encoded)
    assert view.transactional_id is None


LEGACY_HEAD = b"\xff\xff" + bytes(6)
TOO_MANY = {
    "legacy topics": (3, LEGACY_HEAD + b"\x7f\xff\xff\xff"),
    "legacy partitions": (3, LEGACY_HEAD + b"\0\0\0\1\0\1t\x7f\xff\xff\xff"),
    "topics": (9, bytes(7) + b"\xff\xff\xff\xff\x0f"),
    "partitions": (9, bytes(7) + b"\2\2t\xff\xff\xff\xff\x0f"),
    "legacy topics, all there": (3, LEGACY_HEAD + (100_000).to_bytes(4) + bytes(600_000)),
    "legacy partitions, all there": (3, LEGACY_HEAD + b"\0\0\0\1\0\1t" + (100_000).to_bytes(4) + bytes(800_000)),
    "topics, all there": (9, bytes(7) + unsigned_varint(100_001) + b"\1\1\0" * 100_000 + b"\0"),
    "partitions, all there": (9, bytes(7) + b"\2\2t" + unsigned_varint(100_001) + bytes(600_000)),
}


@pytest.mark.parametrize(("version", "encoded"), TOO_MANY.values(), ids=TOO_MANY.keys())
def test_counts_that_lie_or_ask_for_too_much_are_refused(version: int, encoded: bytes) -> None:
    with pytest.raises(DecodeError, match="more topics or partitions"):
        decode_produce_request(version, encoded)


@pytest.mark.parametrize(
    ("version", "encoded"), [(3, LEGACY_HEAD + b"\0\0\0\1\xff\xff" + bytes(8)), (9, bytes(7) + b"\2\0" + bytes(8))]
)
def test_a_topic_needs_a_name(version: int, encoded: bytes) -> None:
    with pytest.raises(DecodeError, match="must not be null"):
        decode_produce_request(version, encoded)


def _result(partition: PartitionProduceResponse) -> PartitionResult:
    leader = partition.current_leader
    return PartitionResult(
        partition.index,
        partition.error_code,
        partition.base_offset,
        partition.log_append_time_ms,
        partition.log_start_offset,
        partition.error_message,
        partition.record_errors,
        None if leader == LeaderIdAndEpoch() else leader,
    )


def _only_failures_have_details(response: ProduceResponse) -> ProduceResponse:
    for topic in response.responses:
        for partition in topic.partition_responses:
            if partition.error_code == 0:
                partition.error_message, partition.record_errors = None, []
                partition.current_leader = LeaderIdAndEpoch()
    return response


@pytest.mark.parametrize("version", VERSIONS)
def test_responses_are_written_as_the_generated_encoder_writes_them(version: int) -> None:
    @SETTINGS
    @given(instances(ProduceResponse, version).map(_only_failures_have_details), st.integers(0, 2**31 - 1))
    def equal(response: Any, correlation_id: int) -> None:
        body = codec.encoder(ProduceResponse, version)(response)
        topics = [
            (topic.topic_id if version >= 13 else topic.name, [_result(p) for p in topic.partition_responses])
            for topic in response.responses
        ]
        written = encode_produce_response(
            version, correlation_id, topics, response.throttle_time_ms, response.node_endpoints
        )
        assert written == framing.response_prefix(0, version, correlation_id, len(body)) + body

    equal()


@pytest.mark.parametrize("version", [3, 7, 8, 9])
def test_details_a_version_lacks_are_left_out(version: int) -> None:
    result = PartitionResult(1, 6, error_message=None, current_leader=LeaderIdAndEpoch(3, 4))
    body = codec.encoder(ProduceResponse, version)(
        ProduceResponse([TopicProduceResponse("t", partition_responses=[PartitionProduceResponse(1, 6, -1)])])
    )
    assert encode_produce_response(version, 5, [("t", [result])])[-len(body) :] == body
