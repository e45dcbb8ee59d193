"""DescribeLogDirs: what each directory holds, how much room is left, and which have failed."""

from __future__ import annotations

import asyncio

import pytest

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ClusterAuthorizationFailed, KafkaStorageError
from millbeck.simulation.environment.files import SimFiles
from millbeck.wire import codec
from millbeck.wire.framing import read_response_header
from millbeck.wire.messages.metadata import ApiVersionsRequest
from millbeck.wire.messages.replicas import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResponseWithDirtyRatio,
)
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import create, deny, partition_of, produce, run_scenario


@pytest.mark.parametrize("version", range(1, 6))
def test_every_version_tells_sizes(version: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, partitions=2)
        await produce(client, b"x" * 1000)
        response = await client.ask(DescribeLogDirsRequest(topics=None), version)
        (directory,) = response.results
        assert (response.error_code, directory.error_code, directory.log_dir) == (0, 0, "/data")
        (topic,) = directory.topics
        sizes = {each.partition_index: each.partition_size for each in topic.partitions}
        assert sizes == {0: partition_of(harness).log.size_bytes, 1: 0}
        assert sizes[0] > 1000
        assert all((each.offset_lag, each.is_future_key) == (0, False) for each in topic.partitions)
        assert (directory.total_bytes > directory.usable_bytes > 0) == (version >= 4)
        assert not directory.is_cordoned

    run_scenario(scenario)


def test_only_what_is_asked_for_is_listed() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, "a", partitions=2)
        await create(client, "b")
        request = DescribeLogDirsRequest(topics=[DescribableLogDirTopic("a", [1]), DescribableLogDirTopic("c", [0])])
        (directory,) = (await client.ask(request, 4)).results
        listed = [(topic.name, each.partition_index) for topic in directory.topics for each in topic.partitions]
        assert listed == [("a", 1)]
        (directory,) = (await client.ask(DescribeLogDirsRequest(topics=[]), 4)).results
        assert directory.topics == []

    run_scenario(scenario)


def test_several_directories_share_the_logs_and_one_may_fail() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, partitions=4)
        response = await client.ask(DescribeLogDirsRequest(topics=None), 4)
        counts = {each.log_dir: sum(len(topic.partitions) for topic in each.topics) for each in response.results}
        assert counts == {"/one": 2, "/two": 2}
        assert harness.node is not None
        harness.node.broker.logs.directories[1].failed("a test")
        response = await client.ask(DescribeLogDirsRequest(topics=None), 4)
        assert [(each.log_dir, each.error_code, len(each.topics)) for each in response.results] == [
            ("/one", 0, 1),
            ("/two", KafkaStorageError.code, 0),
        ]

    run_scenario(scenario, log_dirs="/one,/two")


def test_a_volume_that_cannot_be_asked_is_an_error_of_its_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        def refuse(*_: object) -> int:
            raise OSError(5, "no")

        monkeypatch.setattr(SimFiles, "total_bytes", refuse)
        (directory,) = (await client.ask(DescribeLogDirsRequest(topics=None), 4)).results
        assert (directory.log_dir, directory.error_code) == ("/data", KafkaStorageError.code)

    run_scenario(scenario)


def test_it_needs_permission_to_describe_the_cluster() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        deny(harness)
        for version in (2, 3):
            response = await client.ask(DescribeLogDirsRequest(topics=None), version)
            assert response.results == []
            assert response.error_code == (ClusterAuthorizationFailed.code if version >= 3 else 0)

    run_scenario(scenario)


@pytest.mark.parametrize(("software", "is_told"), [("millbeck", True), ("apache-kafka-java", False)])
def test_only_our_own_tools_are_told_how_dirty_a_compacted_log_is(
    software: str, is_told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, "table", cleanup_policy="compact", internal_segment_bytes="100")
        await create(client, "plain")
        for _ in range(3):
            await produce(client, b"x", topic="table", key=b"k")
        await asyncio.sleep(1)  # what is not flushed is not dirty yet
        await client.ask(ApiVersionsRequest(client_software_name=software, client_software_version="1"), 3)
        received: list[bytes] = []
        listen = client.data_received

        def noted(data: bytes) -> None:
            received.append(data)
            listen(data)

        monkeypatch.setattr(client, "data_received", noted)
        await client.ask(DescribeLogDirsRequest(topics=None), 4)
        frame = b"".join(received)[4:]
        data = frame[read_response_header(35, 4, frame)[1] :]
        told, size = codec.decoder(DescribeLogDirsResponseWithDirtyRatio, 4)(data)
        plain, plain_size = codec.decoder(DescribeLogDirsResponse, 4)(data)
        assert size == plain_size == len(data)
        assert len(plain.results[0].topics) == 2
        ratios = {topic.name: topic.partitions[0].dirty_ratio for topic in told.results[0].topics}
        assert ratios == {"table": 1.0 if is_told else -1.0, "plain": -1.0}
        assert (data == codec.encoder(DescribeLogDirsResponse, 4)(plain)) is not is_told

    run_scenario(scenario, log_cleaner_backoff_ms="1000000")
