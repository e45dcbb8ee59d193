"""How far a node has followed the metadata."""

from __future__ import annotations

import asyncio

import pytest

from millbeck.kernel.environment import Environment
from millbeck.metadata.features import LATEST_METADATA_VERSION
from millbeck.metadata.image import EMPTY
from millbeck.raft.voters import Leader
from millbeck.server.metrics.metadata import MetadataLag
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import create, run_scenario
from tests.unit.server.harness.scraping import samples


def test_a_broker_shows_what_it_has_applied() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        await create(client)
        broker, prefix = harness.node.broker, "kafka_server_brokermetadatametrics_"
        found = samples(harness.node)
        assert found["kafka_server_metadataloader_currentcontrollerid"] == 1
        assert found["kafka_server_metadataloader_currentmetadataversion"] == LATEST_METADATA_VERSION
        assert found[prefix + "last_applied_record_offset"] == broker.quorum.high_watermark - 1
        assert found[prefix + "last_applied_record_timestamp"] == broker.image.timestamp_ms
        assert found[prefix + "last_applied_record_lag_ms"] == 0
        assert found[prefix + "metadata_load_error_count"] == 0
        assert found[prefix + "metadata_apply_error_count"] == 0
        broker.topics.by_name["t"].unusable[5] = "a test"
        assert samples(harness.node)[prefix + "metadata_apply_error_count"] == 1

    run_scenario(scenario)


def test_without_a_leader_whom_it_could_follow_a_node_is_late() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        quorum = harness.node.broker.quorum
        image = quorum.image
        lag = MetadataLag(quorum, lambda: image)
        assert lag.read_ms() == 0
        quorum._is_stopped = True
        assert quorum.leader == Leader(epoch=quorum.epoch)
        assert lag.read_ms() == 0
        await asyncio.sleep(3)
        assert lag.read_ms() == pytest.approx(3000, abs=2)
        quorum._is_stopped = False
        assert lag.read_ms() == 0
        image = EMPTY
        assert lag.read_ms() == 0
        await asyncio.sleep(2)
        assert lag.read_ms() == pytest.approx(2000, abs=2)

    run_scenario(scenario)
