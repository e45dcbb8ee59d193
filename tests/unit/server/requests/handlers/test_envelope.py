"""Envelope: what is inside is checked as if it had come by itself, and only what brokers forward is taken out."""

from __future__ import annotations

from typing import Any, cast

import pytest

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import (
    ApiError,
    ClusterAuthorizationFailed,
    InvalidRequest,
    NotController,
    PrincipalDeserializationFailure,
    UnsupportedVersion,
)
from millbeck.security.authorizer import Operation
from millbeck.security.principal import ANONYMOUS, Principal
from millbeck.security.principal_bytes import encode_principal
from millbeck.wire import codec
from millbeck.wire.framing import read_response_header, request_prefix
from millbeck.wire.messages.groups import ListGroupsRequest
from millbeck.wire.messages.nodes import EnvelopeRequest
from millbeck.wire.messages.topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import Denies, run_scenario

TWO: dict[str, str] = {"listeners": "PLAINTEXT://:9092,CTL://:9093", "controller_listener_names": "CTL"}


def inside(message: Any, key: int, version: int, *, correlation_id: int = 77) -> bytes:
    body = codec.encoder(type(message), version)(message)
    return (request_prefix(key, version, correlation_id, "client", len(body)) + body)[4:]


CREATION = inside(CreateTopicsRequest(topics=[CreatableTopic("t", num_partitions=1, replication_factor=1)]), 19, 7)
GOOD: dict[str, Any] = {
    "request_data": CREATION,
    "request_principal": encode_principal(ANONYMOUS),
    "client_host_address": bytes([10, 0, 0, 7]),
}


async def at_controller(environment: Environment) -> Client:
    _, client = await environment.network.connect(Client, host="n1", port=9093)
    return cast(Client, client)


def test_the_answer_inside_has_the_clients_correlation_id() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        controller = await at_controller(environment)
        answer = await controller.ask(EnvelopeRequest(**GOOD), 0)
        assert answer.error_code == 0
        correlation_id, position = read_response_header(19, 7, answer.response_data)
        response, end = codec.decoder(CreateTopicsResponse, 7)(answer.response_data, position)
        assert correlation_id == 77
        assert end == len(answer.response_data)
        assert [(each.name, each.error_code) for each in response.topics] == [("t", 0)]

    run_scenario(scenario, **TWO)


def test_principal_and_address_are_the_clients() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        seen: list[tuple[Principal, str]] = []

        class Sees(Denies):
            def authorize(self, principal: Principal, host: str, *question: Any) -> bool:
                seen.append((principal, host))
                return super().authorize(principal, host, *question)

        harness.node.broker.authorizer = Sees(lambda *_: False)
        controller = await at_controller(environment)
        named = encode_principal(Principal("User", "alice", True))
        address = bytes(15) + b"\x05"
        await controller.ask(EnvelopeRequest(**GOOD | {"request_principal": named, "client_host_address": address}), 0)
        assert seen[0][0] == ANONYMOUS
        assert set(seen[1:]) == {(Principal("User", "alice", True), "::5")}

    run_scenario(scenario, **TWO)


ENVELOPE = inside(EnvelopeRequest(**GOOD), 58, 0)
BAD: dict[str, tuple[dict[str, Any], type[ApiError]]] = {
    "an envelope in an envelope": ({"request_data": ENVELOPE}, InvalidRequest),
    "what is not forwarded": ({"request_data": inside(ListGroupsRequest(), 16, 4)}, InvalidRequest),
    "no request": ({"request_data": b""}, InvalidRequest),
    "an unknown API": ({"request_data": b"\x7f\xff" + bytes(8)}, InvalidRequest),
    "half a request": ({"request_data": CREATION[:-4]}, InvalidRequest),
    "a version of the future": ({"request_data": b"\0\x13\0\x63" + CREATION[4:]}, UnsupportedVersion),
    "no principal": ({"request_principal": None}, PrincipalDeserializationFailure),
    "half a principal": ({"request_principal": GOOD["request_principal"][:-2]}, PrincipalDeserializationFailure),
    "no address": ({"client_host_address": b""}, InvalidRequest),
    "five bytes of an address": ({"client_host_address": bytes(5)}, InvalidRequest),
}


@pytest.mark.parametrize(("changes", "error"), BAD.values(), ids=BAD.keys())
def test_what_does_not_belong_in_an_envelope_is_refused(changes: dict[str, Any], error: type[ApiError]) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        controller = await at_controller(environment)
        answer = await controller.ask(EnvelopeRequest(**GOOD | changes), 0)
        assert (answer.error_code, answer.response_data) == (error.code, None)
        assert harness.node.broker.image.topics.named("t") is None

    run_scenario(scenario, **TWO)


def test_only_nodes_send_envelopes() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        harness.node.broker.authorizer = Denies(lambda operation, *_: operation is Operation.CLUSTER_ACTION)
        controller = await at_controller(environment)
        answer = await controller.ask(EnvelopeRequest(**GOOD), 0)
        assert answer.error_code == ClusterAuthorizationFailed.code

    run_scenario(scenario, **TWO)


def test_a_controller_that_is_not_active_says_so_outside() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None

        async def elsewhere(_: Any, **origin: Any) -> Any:
            raise NotController

        harness.node.broker.quorum.submit = elsewhere  # type: ignore[method-assign,assignment]
        controller = await at_controller(environment)
        answer = await controller.ask(EnvelopeRequest(**GOOD), 0)
        assert (answer.error_code, answer.response_data) == (NotController.code, None)

    run_scenario(scenario, **TWO)
