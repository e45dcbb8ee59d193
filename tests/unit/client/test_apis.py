"""What the client learns from a request's class is what the table of all APIs says."""

from __future__ import annotations

import pytest

from millbeck.client.apis import body_position, call_of, correlation_id_of, request_prefix
from millbeck.wire import framing
from millbeck.wire.api_keys import APIS, Api
from millbeck.wire.errors import DecodeError
from millbeck.wire.messages.metadata import ApiVersionsRequest, MetadataRequest


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_a_call_agrees_with_the_table(api: Api) -> None:
    call = call_of(api.request)
    assert (call.key, call.name) == (api.key, api.name)
    assert (call.min_version, call.max_version) == (api.min_version, api.max_version)
    for version in range(api.min_version, api.max_version + 1):
        for client_id in (None, "", "me"):
            name = None if client_id is None else client_id.encode()
            assert request_prefix(call, version, 7, name, 99) == framing.request_prefix(
                api.key, version, 7, client_id, 99
            )
        frame = framing.response_prefix(api.key, version, 7, 0)[4:]
        assert correlation_id_of(frame) == 7
        assert body_position(call, version, frame) == len(frame)


def test_a_class_has_one_call() -> None:
    assert call_of(MetadataRequest) is call_of(MetadataRequest)
    assert repr(call_of(ApiVersionsRequest)) == "<ApiVersions 0-4>"


def test_tagged_fields_of_a_response_header_are_skipped() -> None:
    frame = b"\0\0\0\7" + b"\1\5\2ab" + b"body"
    assert frame[body_position(call_of(MetadataRequest), 12, frame) :] == b"body"


@pytest.mark.parametrize("frame", [b"", b"\0\0\0"])
def test_a_frame_without_a_number_is_an_error(frame: bytes) -> None:
    with pytest.raises(DecodeError):
        correlation_id_of(frame)


def test_a_cut_header_is_an_error() -> None:
    with pytest.raises(DecodeError):
        body_position(call_of(MetadataRequest), 12, b"\0\0\0\7")
