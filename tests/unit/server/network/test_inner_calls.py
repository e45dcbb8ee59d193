"""Calls without a frame are served as others are, errors included."""

from __future__ import annotations

from typing import Any

import pytest
from asking import Denies, in_house
from house import Client, House

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import InvalidRequest, NotController, PolicyViolation, UnknownServerError
from millbeck.security.authorizer import AllowAll, Operation, ResourceType
from millbeck.security.principal import Principal
from millbeck.server.dispatch import Route
from millbeck.server.inner_calls import InnerCall, InnerRequests
from millbeck.wire.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse


def routed(run: Any, error_reply: Any = None) -> Route:
    def told(request: Any, version: int, error: Any) -> Any:
        return UpdateFeaturesResponse(error_code=error.code)

    return Route(57, run, reads_frames=False, error_reply=error_reply or told, max_version=None, advertised_min=None)


def call_of(house: House, authorizer: Any = None) -> InnerCall:
    assert house.node is not None
    return InnerCall(
        house.node.broker,
        1,
        principal=Principal("User", "alice"),
        peer_host="10.0.0.7",
        authorizer=authorizer or AllowAll(),
    )


def test_plain_and_async_handlers_answer_and_errors_become_replies() -> None:
    async def scenario(house: House, client: Client, environment: Environment) -> None:
        assert house.node is not None
        inner = InnerRequests(house.node.broker, ())

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
    async def scenario(house: House, client: Client, environment: Environment) -> None:
        authorizer = Denies(lambda operation, _, name: name == "secret" or operation is Operation.ALTER)
        call = call_of(house, authorizer)
        assert call.may(Operation.READ, ResourceType.TOPIC, "open")
        assert not call.may(Operation.READ, ResourceType.TOPIC, "secret")
        assert authorizer.hosts == ["10.0.0.7", "10.0.0.7"]
        assert call.client_host == "/10.0.0.7"
        assert not call.authorized_operations(ResourceType.TOPIC, "open") & (1 << Operation.ALTER)
        nothing = call_of(house, Denies(lambda *_: True))
        assert nothing.authorized_operations(ResourceType.CLUSTER, "kafka-cluster") == 0

    in_house(scenario)
