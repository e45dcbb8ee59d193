"""AllocateProducerIds."""

from __future__ import annotations

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ClusterAuthorizationFailed, StaleBrokerEpoch
from millbeck.server.requests.handlers.broker_requests import handle_allocate_producer_ids
from millbeck.wire.messages.nodes import AllocateProducerIdsRequest
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import deny, run_scenario
from tests.unit.server.harness.controller_requests import ask, broker_of


def test_blocks_follow_each_other() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        epoch = broker_of(harness).quorum.image.cluster.brokers[1].epoch
        request = AllocateProducerIdsRequest(1, epoch)
        first, second = [await ask(harness, handle_allocate_producer_ids, request) for _ in range(2)]
        assert (first.error_code, first.producer_id_len) == (0, 1000)
        assert second.producer_id_start == first.producer_id_start + 1000
        stale = await ask(harness, handle_allocate_producer_ids, AllocateProducerIdsRequest(1, epoch - 1))
        assert stale.error_code == StaleBrokerEpoch.code
        deny(harness)
        denied = await ask(harness, handle_allocate_producer_ids, request)
        assert denied.error_code == ClusterAuthorizationFailed.code

    run_scenario(scenario)
