"""The names that dashboards look for, with numbers that are true."""

from __future__ import annotations

import asyncio
import re
from typing import Any, cast

from millbeck.kernel.environment import Environment
from millbeck.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from millbeck.wire.messages.metadata import ApiVersionsRequest
from millbeck.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.unit.server.harness.broker_harness import BrokerHarness, Client, one_batch
from tests.unit.server.harness.client_requests import (
    create,
    fetch,
    find_coordinator,
    partition_of,
    produce,
    run_scenario,
)
from tests.unit.server.harness.scraping import samples


def test_an_empty_node_has_all_its_gauges() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await client.ask(ApiVersionsRequest(), 0)
        found = samples(harness.node)
        for name, value in {
            "kafka_server_replicamanager_leadercount": 0,
            "kafka_server_replicamanager_partitioncount": 0,
            "kafka_server_replicamanager_underreplicatedpartitions": 0,
            "kafka_server_replicamanager_underminisrpartitioncount": 0,
            "kafka_log_logmanager_offlinelogdirectorycount": 0,
            "kafka_controller_kafkacontroller_activecontrollercount": 1,
            "kafka_controller_kafkacontroller_offlinepartitionscount": 0,
            "kafka_controller_controllerstats_uncleanleaderelections_total": 0,
            'kafka_server_socket_server_metrics_connection_count{listener="PLAINTEXT"}': 1,
            "kafka_server_raftmetrics_current_leader": 1,
            'kafka_server_raftmetrics_current_state{current_state="leader"}': 1,
            "millbeck_unexpected_errors_total": 0,
            "millbeck_offline_partitions": 0,
        }.items():
            assert found[name] == value, name
        for name in (
            "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
            "kafka_network_socketserver_networkprocessoravgidle_percent",
            "kafka_server_raftmetrics_current_epoch",
            "kafka_server_raftmetrics_high_watermark",
            "kafka_server_raftmetrics_log_end_offset",
        ):
            assert name in found
        assert found["kafka_server_raftmetrics_high_watermark"] > 0

    run_scenario(scenario)


def test_records_and_bytes_are_counted_by_topic() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, partitions=2)
        batch = one_batch(b"a", b"b")
        for index in (0, 1, 1):
            await produce(client, b"a", b"b", index=index)
        bad = [PartitionProduceData(0, b"garbage"), PartitionProduceData(9, batch)]
        request = ProduceRequest(acks=1, topic_data=[TopicProduceData("t", bytes(16), bad)])
        await client.ask(request, 9)
        await client.ask(fetch((0, 0), (1, 0)), 11)
        await client.ask(fetch((0, 50)), 11)
        found = samples(harness.node)
        for name, value in {
            "messagesin": 6,
            "bytesin": 3 * len(batch),
            "bytesout": 3 * len(batch),
            "totalproducerequests": 5,
            "failedproducerequests": 2,
            "totalfetchrequests": 3,
            "failedfetchrequests": 1,
        }.items():
            assert found[f'kafka_server_brokertopicmetrics_{name}_total{{topic="t"}}'] == value, name

    run_scenario(scenario)


def test_partitions_show_their_sizes_offsets_and_replicas() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, min_insync_replicas="2")
        await produce(client, b"a", b"b", b"c")
        partition_of(harness).log.delete_records(1)
        found = samples(harness.node)
        labels = '{topic="t",partition="0"}'
        for name, value in {
            "kafka_log_log_size": partition_of(harness).log.size_bytes,
            "kafka_log_log_numlogsegments": 1,
            "kafka_topic_partition_current_offset": 3,
            "kafka_topic_partition_oldest_offset": 1,
            "kafka_topic_partition_replicas": 1,
            "kafka_topic_partition_in_sync_replica": 1,
            "kafka_topic_partition_leader_is_preferred": 1,
            "kafka_topic_partition_under_replicated_partition": 0,
            "kafka_cluster_partition_replicascount": 1,
            "kafka_cluster_partition_underminisr": 0,
            "kafka_cluster_partition_atminisr": 1,
        }.items():
            assert found[name + labels] == value, name
        assert found['kafka_topic_partitions{topic="t"}'] == 1
        assert found["kafka_server_replicamanager_leadercount"] == 1
        partition_of(harness).log.mark_offline("a test")
        assert samples(harness.node)["millbeck_offline_partitions"] == 1

    run_scenario(scenario)


def test_groups_show_their_lag_with_or_without_members() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        await produce(client, b"a", b"b", b"c", b"d")
        await find_coordinator(client, "g")
        rows = [OffsetCommitRequestPartition(0, 1), OffsetCommitRequestPartition(7, 1)]
        topics = [OffsetCommitRequestTopic("t", partitions=rows), OffsetCommitRequestTopic("gone", partitions=rows)]
        commit = OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=-1, topics=topics)
        while (await client.ask(commit, 7)).topics[0].partitions[0].error_code not in (0, 3):
            await asyncio.sleep(0.1)
        found = samples(harness.node)
        labels = '{consumergroup="g",topic="t",partition="0"}'
        assert found[f"kafka_consumergroup_current_offset{labels}"] == 1
        assert found[f"kafka_consumergroup_lag{labels}"] == 3
        assert found['kafka_coordinator_group_groupmetadatamanager_numgroups{state="Empty"}'] == 1
        assert [name for name in found if name.startswith("kafka_consumergroup_lag{")] == [
            f"kafka_consumergroup_lag{labels}"
        ]

    run_scenario(scenario)


def test_requests_and_sessions_are_counted() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, partitions=3)
        await client.ask(fetch((0, 0), (1, 0), session=(0, 0)), 11)
        await client.ask(fetch(session=(99, 1)), 11)
        found = samples(harness.node)
        assert found['kafka_network_requestmetrics_requests_total{request="Fetch"}'] == 2
        errors = 'kafka_network_requestmetrics_errors_total{request="Fetch",error="FETCH_SESSION_ID_NOT_FOUND"}'
        assert found[errors] == 1
        assert found["kafka_server_fetchsessioncache_numincrementalfetchsessions"] == 1
        assert found["kafka_server_fetchsessioncache_numincrementalfetchpartitionscached"] == 2
        assert found['kafka_server_socket_server_metrics_incoming_byte_total{listener="PLAINTEXT"}'] > 100
        assert found['kafka_server_socket_server_metrics_connection_creation_total{listener="PLAINTEXT"}'] == 1
        assert any(name.startswith("kafka_broker_info{id=") for name in found)

    run_scenario(scenario)


class Browser(asyncio.Protocol):
    received = b""

    def data_received(self, data: bytes) -> None:
        self.received += data


def test_the_page_is_served_on_its_own_port() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        assert harness.node.metrics_port == 9404
        transport, browser = await environment.network.connect(Browser, host="n1", port=9404)
        transport.write(b"GET /metrics HTTP/1.1\r\n\r\n")
        await asyncio.sleep(1)
        page: Any = cast(Browser, browser).received
        assert page.startswith(b"HTTP/1.1 200 OK")
        assert b"kafka_server_replicamanager_leadercount 0" in page

    run_scenario(scenario)


def test_a_node_that_is_only_a_controller_shows_nothing_of_brokers() -> None:
    harness = BrokerHarness(
        process_roles="controller",
        listeners="CTL://:9093",
        controller_listener_names="CTL",
        controller_quorum_voters="1@n1:9093",
    )

    async def whole(environment: Environment) -> None:
        await harness.start()
        found = samples(harness.node)
        assert found["kafka_controller_kafkacontroller_activecontrollercount"] == 1
        assert found["kafka_server_raftmetrics_current_leader"] == 1
        of_brokers = ("kafka_server_replicamanager", "kafka_log", "kafka_server_brokermetadata", "kafka_consumergroup")
        assert [name for name in found if name.startswith(of_brokers)] == []

    with harness.world:
        harness.world.run(whole, limit_s=100)


def test_what_is_named_a_total_is_a_counter() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        kinds = dict(re.findall(r"^# TYPE (\S+_total) (\S+)$", harness.node.render_metrics(), re.MULTILINE))
        assert "millbeck_unexpected_errors_total" in kinds
        assert set(kinds.values()) == {"counter"}

    run_scenario(scenario)
