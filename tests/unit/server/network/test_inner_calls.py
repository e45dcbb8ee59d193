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
from tests.unit.server.harness.client_requests import Denies, run_scenario


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


def call_of(harness: BrokerHarness, authorizer: Any = None) -> InnerCall:
    assert harness.node is not None
    harness.node.broker.authorizer = authorizer or AllowAll()
    return InnerCall(harness.node.broker, 1, principal=Principal("User", "alice"), peer_host="10.0.0.7")


def test_plain_and_async_handlers_answer_and_errors_become_replies() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        inner = LocalRequests(harness.node.broker, ())

        def plain(call: Any, request: Any) -> Any:
            return UpdateFeaturesResponse(error_code=1)

        async def later(call: Any, request: Any) -> Any:
            return UpdateFeaturesResponse(error_code=2)

        async def refused(call: Any, request: Any) -> Any:
            raise PolicyViolation("no")

        async def broken(call: Any, request: Any) -> Any:
            raise ValueError("oops")

        codes = [
            (await inner.answer(routed(run), call_of(harness), UpdateFeaturesRequest())).error_code
            for run in (plain, later, refused, broken)
        ]
        assert codes == [1, 2, PolicyViolation.code, UnknownServerError.code]
        assert harness.node.broker.unexpected_errors == 1
        harness.node.broker.unexpected_errors = 0

        async def elsewhere(call: Any, request: Any) -> Any:
            raise NotController

        with pytest.raises(NotController):
            await inner.answer(routed(elsewhere), call_of(harness), UpdateFeaturesRequest())
        with pytest.raises(InvalidRequest):
            await inner.answer(routed(refused, lambda *_: None), call_of(harness), UpdateFeaturesRequest())

    run_scenario(scenario)


def test_rights_are_those_of_the_principal_in_the_call() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        authorizer = Denies(lambda operation, _, name: name == "secret" or operation is Operation.ALTER)
        call = call_of(harness, authorizer)
        assert call.may(Operation.READ, ResourceType.TOPIC, "open")
        assert not call.may(Operation.READ, ResourceType.TOPIC, "secret")
        assert authorizer.hosts == ["10.0.0.7", "10.0.0.7"]
        assert call.client_host == "/10.0.0.7"
        assert not call.authorized_operations(ResourceType.TOPIC, "open") & (1 << Operation.ALTER)
        nothing = call_of(harness, Denies(lambda *_: True))
        assert nothing.authorized_operations(ResourceType.CLUSTER, "kafka-cluster") == 0
        assert not nothing.may(Operation.READ, ResourceType.TOPIC, "open")
        own = InnerCall(nothing.broker, 1, principal=ANONYMOUS, peer_host="127.0.0.1", is_trusted=True)
        assert own.may(Operation.READ, ResourceType.TOPIC, "open"), "the node's own requests need no authorization"

    run_scenario(scenario)
