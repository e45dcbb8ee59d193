"""Numbers of the transactions that a node coordinates."""

from __future__ import annotations

from millbeck.kernel.environment import Environment
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.scraping import samples
from tests.unit.server.harness.transactional_producer import Transacting, settled, transaction_harness


def test_states_markers_and_refusals_are_counted() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        producer = await Transacting(client, version=0).prepare()
        assert await producer.produce(b"uninvited") != 0
        await producer.add(0)
        found = samples(harness.node)
        assert found['millbeck_transactional_ids{state="Ongoing"}'] == 1
        assert found["kafka_server_addpartitionstotxnmanager_verificationfailurerate_total"] == 1
        assert found["kafka_server_addpartitionstotxnmanager_verificationtimems_count"] == 1
        assert harness.node is not None
        sender = harness.node.broker.transactions.sender
        original, waiting = sender._route, []
        sender._route = lambda *arguments: waiting.append(arguments)  # type: ignore[method-assign]
        assert await producer.end(True) == 0
        found = samples(harness.node)
        prefix = "kafka_coordinator_transaction_transactionmarkerchannelmanager_"
        assert found[f"{prefix}logappendretryqueuesize"] == 1
        assert found[f"{prefix}unknowndestinationqueuesize"] == 0
        sender._route = original  # type: ignore[method-assign]
        for arguments in waiting:
            original(*arguments)
        await settled(harness)
        found = samples(harness.node)
        assert found['millbeck_transactional_ids{state="CompleteCommit"}'] == 1
        assert found[f"{prefix}logappendretryqueuesize"] == 0

    transaction_harness().run(scenario)
