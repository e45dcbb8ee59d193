"""Requests are numbered, answers come in order, and whatever does not fit is a violation."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.client.apis import call_of
from millbeck.client.errors import ProtocolViolation, UnsupportedByBroker
from millbeck.client.protocol import ConnectionCore, InFlightRequest
from millbeck.wire.codec import encoder
from millbeck.wire.framing import read_request_header, response_prefix
from millbeck.wire.messages.classic_groups import HeartbeatRequest, HeartbeatResponse
from millbeck.wire.messages.groups import ListGroupsRequest
from millbeck.wire.messages.metadata import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    MetadataRequest,
    MetadataResponse,
)

RANGES = {3: (0, 13), 12: (0, 4), 16: (0, 3), 18: (0, 4)}
RESPONSES: dict[type, type] = {
    MetadataRequest: MetadataResponse,
    HeartbeatRequest: HeartbeatResponse,
    ApiVersionsRequest: ApiVersionsResponse,
}


def make_core(**options: Any) -> ConnectionCore:
    core = ConnectionCore("me", frame_size_max=1 << 20, **options)
    core.ranges = RANGES
    return core


def send(core: ConnectionCore, message: Any, version: int | None = None) -> tuple[InFlightRequest, bytes]:
    request = type(message)
    call, chosen = core.choose_version(request)
    chosen = chosen if version is None else version
    exchange = InFlightRequest(call, RESPONSES[request], chosen, lambda outcome: None, 0.0)
    return exchange, core.send(exchange, message)


def answer(
    exchange: InFlightRequest, message: Any, *, version: int | None = None, correlation_id: int | None = None
) -> bytes:
    body = encoder(type(message), exchange.version if version is None else version)(message)
    number = exchange.correlation_id if correlation_id is None else correlation_id
    return response_prefix(exchange.call.key, exchange.version, number, len(body)) + body


@pytest.mark.parametrize("message", [MetadataRequest(topics=[]), HeartbeatRequest(group_id="g"), ApiVersionsRequest()])
def test_a_frame_is_what_a_broker_reads(message: Any) -> None:
    core = make_core()
    exchange, frame = send(core, message)
    assert len(frame) == 4 + int.from_bytes(frame[:4], "big")
    header = read_request_header(frame[4:])
    assert (header.api_key, header.api_version) == (exchange.call.key, exchange.version)
    assert (header.correlation_id, header.client_id) == (exchange.correlation_id, "me")


def test_answers_belong_to_the_oldest_request() -> None:
    core = make_core()
    sent = [send(core, HeartbeatRequest(group_id=str(index)))[0] for index in range(3)]
    data = b"".join(answer(exchange, HeartbeatResponse(error_code=index)) for index, exchange in enumerate(sent))
    received = list(core.receive(data))
    assert [exchange for exchange, _ in received] == sent
    assert [outcome.error_code for _, outcome in received] == [0, 1, 2]
    assert not core.in_flight


def test_an_answer_may_arrive_byte_by_byte() -> None:
    core = make_core()
    exchange, _ = send(core, MetadataRequest(topics=[]))
    data = answer(exchange, MetadataResponse(cluster_id="c"))
    received = [found for index in range(len(data)) for found in core.receive(data[index : index + 1])]
    assert [(found, outcome.cluster_id) for found, outcome in received] == [(exchange, "c")]


def test_correlation_ids_never_repeat_in_flight_and_wrap_around() -> None:
    core = make_core(correlation_id=0x7FFFFFFE)
    numbers = [send(core, HeartbeatRequest())[0].correlation_id for _ in range(4)]
    assert numbers == [0x7FFFFFFF, 0, 1, 2]


def violations() -> dict[str, Any]:
    return {
        "another number": lambda exchange: answer(exchange, HeartbeatResponse(), correlation_id=77),
        "a negative length": lambda exchange: b"\xff\xff\xff\xff",
        "a length beyond the limit": lambda exchange: (1 << 21).to_bytes(4, "big"),
        "a frame without a number": lambda exchange: b"\0\0\0\2\0\0",
    }


@pytest.mark.parametrize("make", violations().values(), ids=violations().keys())
def test_what_is_not_the_next_answer_is_a_violation(make: Any) -> None:
    core = make_core()
    exchange, _ = send(core, HeartbeatRequest())
    with pytest.raises(ProtocolViolation):
        list(core.receive(make(exchange)))


def test_an_answer_to_nothing_is_a_violation() -> None:
    core = make_core()
    exchange, _ = send(core, HeartbeatRequest())
    data = answer(exchange, HeartbeatResponse())
    list(core.receive(data))
    with pytest.raises(ProtocolViolation, match="without a request"):
        list(core.receive(data))


def test_an_unreadable_answer_fails_alone() -> None:
    core = make_core()
    first, _ = send(core, MetadataRequest(topics=[]))
    second, _ = send(core, HeartbeatRequest())
    bad = response_prefix(3, first.version, first.correlation_id, 3) + b"\xff\xff\xff"
    received = list(core.receive(bad + answer(second, HeartbeatResponse(error_code=5))))
    assert isinstance(received[0][1], ProtocolViolation)
    assert received[1][1].error_code == 5


def test_an_api_versions_refusal_is_read_in_version_0() -> None:
    core = make_core()
    exchange, _ = send(core, ApiVersionsRequest(), version=4)
    refusal = ApiVersionsResponse(error_code=35, api_keys=[ApiVersion(api_key=18, min_version=0, max_version=2)])
    ((_, outcome),) = core.receive(answer(exchange, refusal, version=0))
    assert outcome == refusal


def test_api_versions_answers_have_the_old_header() -> None:
    core = make_core()
    exchange, _ = send(core, ApiVersionsRequest(), version=4)
    body = encoder(ApiVersionsResponse, 4)(ApiVersionsResponse(finalized_features_epoch=9))
    frame = (4 + len(body)).to_bytes(4, "big") + exchange.correlation_id.to_bytes(4, "big") + body
    ((_, outcome),) = core.receive(frame)
    assert outcome.finalized_features_epoch == 9


def test_what_a_version_cannot_say_is_unsupported_and_changes_nothing() -> None:
    core = make_core()
    call, version = core.choose_version(ListGroupsRequest)
    with pytest.raises(UnsupportedByBroker, match="ListGroups version 3"):
        core.frame(call, version, ListGroupsRequest(states_filter=["Stable"]))
    assert not core.in_flight
    assert send(core, HeartbeatRequest())[0].correlation_id == 1


def test_abandoning_hands_back_everything_in_flight() -> None:
    core = make_core()
    sent = [send(core, HeartbeatRequest())[0] for _ in range(2)]
    assert core.abandon() == sent
    assert not core.in_flight


def test_a_request_without_an_answer_is_not_in_flight() -> None:
    core = make_core()
    core.frame(call_of(HeartbeatRequest), 4, HeartbeatRequest())
    exchange, _ = send(core, HeartbeatRequest())
    assert exchange.correlation_id == 2
    assert list(core.in_flight) == [exchange]
