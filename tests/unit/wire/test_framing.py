from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millbeck.wire import framing
from millbeck.wire.api_keys import APIS
from millbeck.wire.errors import DecodeError
from millbeck.wire.schema import Kind
from tests.model.wire import kio_oracle

client_ids = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
versions = st.sampled_from([(api.key, v) for api in APIS.values() for v in range(api.min_version, api.max_version + 1)])


@given(versions, st.integers(-(2**31), 2**31 - 1), client_ids)
def test_request_headers_agree_with_kio(api: tuple[int, int], correlation_id: int, client_id: str | None) -> None:
    theirs = kio_oracle.header(
        *api,
        Kind.REQUEST,
        request_api_key=api[0],
        request_api_version=api[1],
        correlation_id=correlation_id,
        client_id=client_id,
    )
    frame = framing.request_prefix(*api, correlation_id, client_id, 5) + b"body."
    assert frame == (len(theirs) + 5).to_bytes(4) + theirs + b"body."
    for buffer in (frame, memoryview(frame)):
        header = framing.read_request_header(buffer, 4)
        assert (header.api_key, header.api_version) == api
        assert (header.correlation_id, header.client_id) == (correlation_id, client_id)
        assert frame[header.body_position :] == b"body."


@given(versions, st.integers(-(2**31), 2**31 - 1))
def test_response_headers_agree_with_kio(api: tuple[int, int], correlation_id: int) -> None:
    theirs = kio_oracle.header(*api, Kind.RESPONSE, correlation_id=correlation_id)
    prefix = framing.response_prefix(*api, correlation_id, 5)
    assert prefix == (len(theirs) + 5).to_bytes(4) + theirs
    assert framing.read_response_header(*api, prefix[4:] + b"body.") == (correlation_id, len(theirs))


@pytest.mark.parametrize("version", range(5))
def test_api_versions_responses_have_no_tagged_section(version: int) -> None:
    assert len(framing.response_prefix(18, version, 1, 0)) == 8


def test_the_header_of_a_version_too_new_is_still_read() -> None:
    frame = framing.request_prefix(18, 99, 4, "c", 0)
    header = framing.read_request_header(frame, 4)
    assert (header.api_version, header.client_id, header.body_position) == (99, "c", len(frame))


def test_tagged_fields_of_headers_are_skipped() -> None:
    header = framing.read_request_header(b"\0\3\0\x0c\0\0\0\7\xff\xff\1\5\2ab")
    assert (header.client_id, header.body_position) == (None, 15)
    assert framing.read_response_header(3, 12, b"\0\0\0\7\1\5\2ab") == (7, 9)


BAD_HEADERS = {
    "empty": b"",
    "cut off": b"\0\3\0\x0c\0\0\0",
    "unknown API": b"\x7f\xff\0\0\0\0\0\1\xff\xff",
    "removed API": b"\0\4\0\7\0\0\0\1\xff\xff\0",
    "negative API": b"\xff\xff\0\0\0\0\0\1\xff\xff",
    "client id cut off": b"\0\3\0\0\0\0\0\1\0\5abc",
    "client id not utf-8": b"\0\3\0\0\0\0\0\1\0\1\xff",
    "tagged section missing": b"\0\3\0\x0c\0\0\0\1\xff\xff",
    "tag cut off": b"\0\3\0\x0c\0\0\0\1\xff\xff\1\0\5ab",
}


@pytest.mark.parametrize("encoded", BAD_HEADERS.values(), ids=BAD_HEADERS.keys())
def test_a_malformed_request_header_is_a_decode_error(encoded: bytes) -> None:
    for buffer in (encoded, memoryview(encoded)):
        with pytest.raises(DecodeError):
            framing.read_request_header(buffer)


@pytest.mark.parametrize("encoded", [b"\0\0\0", b"\0\0\0\7", b"\0\0\0\7\1\0\5ab"])
def test_a_malformed_response_header_is_a_decode_error(encoded: bytes) -> None:
    with pytest.raises(DecodeError):
        framing.read_response_header(3, 12, encoded)


@given(st.binary(max_size=40))
def test_random_bytes_never_raise_anything_else(encoded: bytes) -> None:
    try:
        header = framing.read_request_header(encoded)
    except DecodeError:
        return
    assert header.body_position <= len(encoded)
    assert f"api_key={header.api_key}" in repr(header)


@given(st.lists(st.binary(max_size=9), max_size=5), st.binary(max_size=3), st.integers(0, 4))
def test_frames_are_split_and_the_rest_is_left(bodies: list[bytes], rest: bytes, start: int) -> None:
    buffer = bytes(start) + b"".join(len(body).to_bytes(4) + body for body in bodies) + rest
    frames, position = framing.split_frames(memoryview(buffer), start, len(buffer), 9)
    assert [buffer[begin:end] for begin, end in frames] == bodies
    assert position == len(buffer) - len(rest)


def test_a_frame_that_is_not_all_there_waits() -> None:
    assert framing.split_frames(b"\0\0\0\4abc", 0, 7, 100) == ([], 0)


@pytest.mark.parametrize("prefix", [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\0\0\0\x65"])
def test_a_length_out_of_bounds_is_refused_at_once(prefix: bytes) -> None:
    with pytest.raises(DecodeError, match="not between 0 and 100"):
        framing.split_frames(prefix, 0, 4, 100)
