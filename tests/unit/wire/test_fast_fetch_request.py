"""The hand-written Fetch request decoder equals the generated one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millbeck.wire import codec
from millbeck.wire.errors import DecodeError
from millbeck.wire.fast_fetch_request import FetchRequestView, decode_fetch_request
from millbeck.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic, ReplicaState
from millbeck.wire.varint import unsigned_varint
from tests.model.wire.instances import instances, standalone_versions

VERSIONS = standalone_versions(FetchRequest)
SETTINGS = settings(max_examples=40, derandomize=True, database=None, deadline=None)


def _as_message(view: FetchRequestView, version: int) -> FetchRequest:
    by_id = version >= 13
    replica = ReplicaState(view.replica_id, view.replica_epoch) if version >= 15 else ReplicaState()
    return FetchRequest(
        cluster_id=view.cluster_id,
        replica_id=-1 if version >= 15 else view.replica_id,
        replica_state=replica,
        max_wait_ms=view.max_wait_ms,
        min_bytes=view.min_bytes,
        max_bytes=view.max_bytes,
        isolation_level=view.isolation_level,
        session_id=view.session_id,
        session_epoch=view.session_epoch,
        topics=[
            FetchTopic(topic_id=key, partitions=partitions) if by_id else FetchTopic(key, partitions=partitions)  # type: ignore[arg-type]
            for key, partitions in view.topics
        ],
        forgotten_topics_data=[
            ForgottenTopic(topic_id=key, partitions=indexes) if by_id else ForgottenTopic(key, partitions=indexes)  # type: ignore[arg-type]
            for key, indexes in view.forgotten
        ],
        rack_id=view.rack_id,
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_requests_are_read_as_the_generated_decoder_reads_them(version: int) -> None:
    @SETTINGS
    @given(instances(FetchRequest, version))
    def equal(request: Any) -> None:
        encoded = codec.encoder(FetchRequest, version)(request)
        for buffer, start in ((encoded, 0), (memoryview(b"###" + encoded), 3)):
            view, position = decode_fetch_request(version, buffer, start)
            assert (_as_message(view, version), position) == (request, start + len(encoded))

    equal()


@pytest.mark.parametrize("version", VERSIONS)
def test_mutated_and_cut_requests_fail_where_the_generated_decoder_fails(version: int) -> None:
    generated = codec.decoder(FetchRequest, version)

    @SETTINGS
    @given(instances(FetchRequest, version), st.data())
    def same(request: Any, data: st.DataObject) -> None:
        mutated = bytearray(codec.encoder(FetchRequest, version)(request))
        if data.draw(st.booleans()):
            del mutated[data.draw(st.integers(0, len(mutated) - 1)) :]
        else:
            place = data.draw(st.integers(0, len(mutated) - 1))
            mutated[place] = data.draw(st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFF]))
        try:
            expected = generated(bytes(mutated))
        except DecodeError:
            with pytest.raises(DecodeError):
                decode_fetch_request(version, bytes(mutated))
        else:
            view, position = decode_fetch_request(version, bytes(mutated))
            assert (_as_message(view, version), position) == expected

    same()


@pytest.mark.parametrize("tags", [b"\0", b"\1\0\1\0", b"\2\x63\1x\1\x0d" + bytes(12) + b"\0"])
def test_tagged_fields_of_the_request(tags: bytes) -> None:
    encoded = codec.encoder(FetchRequest, 15)(FetchRequest())[:-1] + tags
    expected = codec.decoder(FetchRequest, 15)(encoded)
    view, position = decode_fetch_request(15, encoded)
    assert (_as_message(view, 15), position) == expected


LIES = {
    "legacy topics": (4, bytes(17) + b"\x7f\xff\xff\xff"),
    "legacy partitions": (4, bytes(17) + b"\0\0\0\1\0\1t\x7f\xff\xff\xff"),
    "legacy forgotten": (7, bytes(29) + b"\x7f\xff\xff\xff"),
    "legacy forgotten partitions": (7, bytes(29) + b"\0\0\0\1\0\1t\x7f\xff\xff\xff"),
    "topics": (12, bytes(25) + b"\xff\xff\xff\xff\x0f"),
    "partitions": (12, bytes(25) + b"\2\2t\xff\xff\xff\xff\x0f"),
    "forgotten": (12, bytes(25) + b"\1\xff\xff\xff\xff\x0f"),
    "forgotten partitions": (12, bytes(25) + b"\1\2\2t\xff\xff\xff\xff\x0f"),
    "too many legacy topics": (4, bytes(17) + (100_000).to_bytes(4) + bytes(600_000)),
    "too many legacy partitions": (4, bytes(17) + b"\0\0\0\1\0\1t" + (100_000).to_bytes(4) + bytes(1_600_000)),
    "too many partitions": (12, bytes(25) + b"\2\2t" + unsigned_varint(100_001) + bytes(3_300_000)),
    "too many legacy forgotten": (7, bytes(29) + b"\0\0\0\1\0\1t" + (200_000).to_bytes(4) + bytes(800_000)),
    "too many forgotten": (12, bytes(25) + b"\1\2\2t" + unsigned_varint(200_001) + bytes(800_000)),
    "too many topics": (12, bytes(25) + b"\x80\x80\x08" + b"\1\1\0" * 131_071 + bytes(9)),
}


@pytest.mark.parametrize(("version", "encoded"), LIES.values(), ids=LIES.keys())
def test_counts_that_lie_or_ask_for_too_much_are_refused(version: int, encoded: bytes) -> None:
    with pytest.raises(DecodeError, match="more topics or partitions"):
        decode_fetch_request(version, encoded)


BAD_TAGS = {
    "directory id too short": (b"\1\0\x0f" + bytes(15), b"\0"),
    "directory id too long": (b"\1\0\x11" + bytes(17), b"\0"),
    "high watermark too short": (b"\1\1\7" + bytes(7), b"\0"),
    "cluster id does not fill its tag": (b"\0", b"\1\0\4\3ab."),
    "null cluster id does not fill its tag": (b"\0", b"\1\0\2\0."),
    "replica state does not fill its tag": (b"\0", b"\1\1\x0e" + bytes(14)),
    "too many tags in a partition": (unsigned_varint(1025) + b"\7\0" * 1025, b"\0"),
    "too many tags": (b"\0", unsigned_varint(1025) + b"\7\0" * 1025),
}


@pytest.mark.parametrize(("partition_tags", "tags"), BAD_TAGS.values(), ids=BAD_TAGS.keys())
def test_bad_tagged_fields_are_refused_as_the_generated_decoder_does(partition_tags: bytes, tags: bytes) -> None:
    request = FetchRequest(topics=[FetchTopic(partitions=[FetchPartition()])])
    encoded = codec.encoder(FetchRequest, 18)(request)
    # Partition tags, topic tags, no forgotten topics, empty rack, request tags.
    assert encoded.endswith(b"\0\0\1\1\0")
    damaged = encoded[:-5] + partition_tags + b"\0\1\1" + tags
    with pytest.raises(DecodeError):
        codec.decoder(FetchRequest, 18)(damaged)
    with pytest.raises(DecodeError):
        decode_fetch_request(18, damaged)


@pytest.mark.parametrize("version", [4, 12])
def test_a_topic_needs_a_name(version: int) -> None:
    encoded = bytes(17) + b"\0\0\0\1\xff\xff" + bytes(8) if version == 4 else bytes(25) + b"\2\0" + bytes(8)
    with pytest.raises(DecodeError, match="must not be null"):
        decode_fetch_request(version, encoded)
