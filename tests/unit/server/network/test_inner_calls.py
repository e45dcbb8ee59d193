"""Calls without a frame are served as others are, errors included."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import InvalidRequest, NotController, PolicyViolation, UnknownServerError
from millbeck.security.authorizer import AllowAll, Operation, ResourceType
from millbeck.security.principal import ANONYMOUS, Principal
from millbeck.server.network.inner_calls import InnerCall, LocalRequests
from millbeck.server.network.route import Route
from millbeck.wire.messages.nodes import UpdateFeaturesRequest, UpdateFeaturesResponse
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import Denies, in_house


def routed(run: Any, error_reply: Any = None) -> Route:
    def told(request: Any, version: int, error: Any) -> Any:
        return UpdateFeaturesResponse(error_code=error.code)

    return Route(
        57,
        run,
        needs=[],
        reads_frames=False,
        error_reply=error_reply or told,
        max_version=None,
        advertised_min=None,
    )


def call_of(house: BrokerHarness, authorizer: Any = None) -> InnerCall:
    assert house.node is not None
    house.node.broker.authorizer = authorizer or AllowAll()
    return InnerCall(house.node.broker, 1, principal=Principal("User", "alice"), peer_host="10.0.0.7")


def test_plain_and_async_handlers_answer_and_errors_become_replies() -> None:
    async def scenario(house: BrokerHarness, client: Client, environment: Environment) -> None:
        assert house.node is not None
        inner = LocalRequests(house.node.broker, ())

        def plain(call: Any, request: Any) -> Any:
            return UpdateFeaturesResponse(error_code=1)

        async def later(call: Any, request: Any) -> Any:
            return UpdateFeaturesResponse(error_code=2)

        async def refused(call: Any, request: Any) -> Any:
            raise PolicyViolation("no")

        async def broken(call: Any, request: Any) -> Any:
            raise ValueError("oops")

        codes = [
            (await inner.answer(routed(run), call_of(house), UpdateFeaturesRequest())).error_code
            for run in (plain, later, refused, broken)
        ]
        assert codes == [1, 2, PolicyViolation.code, UnknownServerError.code]
        assert house.node.broker.unexpected_errors == 1
        house.node.broker.unexpected_errors = 0

        async def elsewhere(call: Any, request: Any) -> Any:
            raise NotController

        with pytest.raises(NotController):
            await inner.answer(routed(elsewhere), call_of(house), UpdateFeaturesRequest())
        with pytest.raises(InvalidRequest):
            await inner.answer(routed(refused, lambda *_: None), call_of(house), UpdateFeaturesRequest())

    in_house(scenario)


def test_rights_are_those_of_the_principal_in_the_call() -> None:
    async def scenario(house: BrokerHarness, client: Client, environment: Environment) -> None:
        authorizer = Denies(lambda operation, _, name: name == "secret" or operation is Operation.ALTER)
        call = call_of(house, authorizer)
        assert call.may(Operation.READ, ResourceType.TOPIC, "open")
        assert not call.may(Operation.READ, ResourceType.TOPIC, "secret")
        assert authorizer.hosts == ["10.0.0.7", "10.0.0.7"]
        assert call.client_host == "/10.0.0.7"
        assert not call.authorized_operations(ResourceType.TOPIC, "open") & (1 << Operation.ALTER)
        nothing = call_of(house, Denies(lambda *_: True))
        assert nothing.authorized_operations(ResourceType.CLUSTER, "kafka-cluster") == 0
        assert not nothing.may(Operation.READ, ResourceType.TOPIC, "open")
        own = InnerCall(nothing.broker, 1, principal=ANONYMOUS, peer_host="127.0.0.1", is_trusted=True)
        assert own.may(Operation.READ, ResourceType.TOPIC, "open"), "the node's own requests need no authorization"

    in_house(scenario)
