"""ControllerRegistration."""

from __future__ import annotations

from dataclasses import replace

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ClusterAuthorizationFailed, UnsupportedVersion
from millbeck.server.requests.handlers.controllers import handle_controller_registration
from millbeck.wire.messages.nodes import ControllerRegistrationRequest, Feature, Listener
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import deny, run_scenario
from tests.unit.server.harness.controller_requests import ask, broker_of

REQUEST = ControllerRegistrationRequest(
    controller_id=7,
    incarnation_id=b"7" * 16,
    listeners=[Listener("CTL", "n7", 9093, 0)],
    features=[Feature("metadata.version", 7, 30)],
)


def test_a_controller_is_known_with_its_address_and_features() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        answer = await ask(harness, handle_controller_registration, REQUEST)
        assert (answer.error_code, answer.error_message) == (0, None)
        controller = broker_of(harness).quorum.image.cluster.controllers[7]
        assert [(each.listener, each.host, each.port) for each in controller.endpoints] == [("CTL", "n7", 9093)]
        assert controller.features == {"metadata.version": (7, 30)}

    run_scenario(scenario)


def test_old_clusters_have_no_place_for_it() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        quorum = broker_of(harness).quorum
        features = replace(quorum.image.features, levels={"metadata.version": 14})
        quorum.image = replace(quorum.image, features=features)
        answer = await ask(harness, handle_controller_registration, REQUEST)
        assert answer.error_code == UnsupportedVersion.code

    run_scenario(scenario)


def test_it_needs_permission() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        deny(harness)
        answer = await ask(harness, handle_controller_registration, REQUEST)
        assert answer.error_code == ClusterAuthorizationFailed.code

    run_scenario(scenario)
