from __future__ import annotations

from millbeck.kernel.environment import Environment
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.share_member import ACCEPT, begin, settled, share_harness


def test_share_groups_are_seen() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        member, topic_id = await begin(harness, client, environment)
        await settled(member, topic_id)
        await member.acknowledge(topic_id, (0, 3, [ACCEPT]))
        assert harness.node is not None
        page = harness.node.registry.render()
        for line in (
            "kafka_server_sharesessioncache_numsharesessions 1",
            "kafka_server_sharesessioncache_numsharepartitions 1",
            'kafka_server_sharepartitionmetrics_inflightmessagecount{group="g",topic="t",partition="0"} 6',
            'kafka_server_sharepartitionmetrics_inflightbatchcount{group="g",topic="t",partition="0"} 1',
            'kafka_server_sharegroupmetrics_recordacknowledgement_total{group="g",ack_type="accept"} 4',
            'kafka_server_sharegroupmetrics_recordsacquired_total{group="g"} 10',
            'kafka_server_group_coordinator_metrics_share_group_count{state="stable"} 1',
            'kafka_server_share_coordinator_metrics_num_partitions{state="active"} 3',
        ):
            assert line in page, line

    share_harness().run(scenario)
