"""Requests that nodes and administrators make of the active controller, asked of a handler without a connection."""

from __future__ import annotations

from typing import Any

from millbeck.metadata.features import SUPPORTED_FEATURES
from millbeck.security.principal import ANONYMOUS
from millbeck.server.broker import Broker
from millbeck.server.network.inner_calls import InnerCall, LocalRequests
from millbeck.server.network.route import Route
from millbeck.wire import codec
from millbeck.wire.api_keys import APIS
from millbeck.wire.messages.nodes import BrokerRegistrationRequest, Feature, Listener
from tests.unit.server.harness.broker_harness import BrokerHarness


def broker_of(harness: BrokerHarness) -> Broker:
    """The node's parts, with its controller active."""
    assert harness.node is not None
    broker = harness.node.broker
    if not broker.controller.is_active:
        broker.controller.activate(broker.quorum.image, now_ms=0)
    return broker


async def ask(harness: BrokerHarness, route: Route, request: Any, version: int | None = None) -> Any:
    """The response as a client would read it: both messages go through their bytes."""
    broker = broker_of(harness)
    api = APIS[route.api_key]
    if version is None:
        version = api.max_version
    request, _ = codec.decoder(api.request, version)(codec.encoder(api.request, version)(request))
    call = InnerCall(broker, version, principal=ANONYMOUS, peer_host="n2")
    response = await LocalRequests(broker, [route]).answer(route, call, request)
    decoded, _ = codec.decoder(api.response, version)(codec.encoder(api.response, version)(response))
    return decoded


def registering(harness: BrokerHarness, broker_id: int = 2, **fields: Any) -> BrokerRegistrationRequest:
    values: dict[str, Any] = {
        "cluster_id": broker_of(harness).cluster_id,
        "incarnation_id": bytes([broker_id]) * 16,
        "listeners": [Listener("PLAINTEXT", f"n{broker_id}", 9092, 0)],
        "features": [Feature(name, levels.min_level, levels.max_level) for name, levels in SUPPORTED_FEATURES.items()],
        "log_dirs": [bytes([100 + broker_id]) * 16],
        **fields,
    }
    return BrokerRegistrationRequest(broker_id=broker_id, **values)
