"""Client metrics (KIP-714): brokers of Apache Kafka with a collector get what their subscription asks for."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.systems.apache_kafka import ApacheKafka
from millbeck.client import Admin, Consumer, Producer
from millbeck.client.admin.results import ConfigChange, ConfigResource, NewTopic, ResourceType
from millbeck.client.errors import UnsupportedByBroker
from tests.interop.cluster import until
from tools import peers

SOURCE = Path(__file__).parent / "java" / "MetricsCollector.java"
SUBSCRIPTION = {
    "metrics": "org.apache.kafka.producer.record.send.,org.apache.kafka.consumer.fetch.manager.records.consumed.",
    "interval.ms": "1000",
}


class Collecting(ApacheKafka):
    """Apache Kafka with the collector; what it collects is in `collected`."""

    @property
    def collected(self) -> Path:
        return self.directory / "collected"

    def command(self) -> list[str]:
        command = super().command()
        place = command.index("-cp") + 1
        command[place] += f":{self.directory}"
        return [command[0], f"-Dcollected={self.collected}", *command[1:]]

    def lines(self) -> list[list[str]]:
        return [line.split("\t") for line in self.collected.read_text().splitlines()] if self.collected.exists() else []


@pytest.fixture
def collecting(system: str, tmp_path: Path) -> Iterator[Collecting]:
    if system != "apache-kafka":
        pytest.skip("these brokers collect no metrics of clients")
    node = Collecting(tmp_path, overrides={"metric.reporters": "MetricsCollector"})
    subprocess.run(
        ["javac", "-cp", f"{peers.install('kafka')}/*", "-d", str(tmp_path), str(SOURCE)], check=True, timeout=120
    )
    with node:
        yield node


def test_the_collector_gets_what_it_subscribed_to(collecting: Collecting) -> None:
    bootstrap = {"bootstrap.servers": collecting.bootstrap, "client.id": "shop", "client.rack": "rack-1"}

    async def run() -> tuple[str, str]:
        async with Admin(bootstrap) as admin:
            changes = [ConfigChange(name=name, value=value) for name, value in SUBSCRIPTION.items()]
            await admin.incremental_alter_configs(
                {ConfigResource(type=ResourceType.CLIENT_METRICS, name="all"): changes}
            )
            await admin.create_topics([NewTopic(name="t", partition_count=1, replication_factor=1)])
        reading = bootstrap | {"group.id": "billing", "auto.offset.reset": "earliest"}
        async with Producer(bootstrap) as producer, Consumer(reading) as consumer:
            for number in range(5):
                await producer.send("t", b"%d" % number)
            consumer.subscribe(["t"])
            seen = 0
            while seen < 5:
                seen += sum(len(records) for records in (await consumer.poll()).values())
            ids = await producer.client_instance_id(), await consumer.client_instance_id()
            assert await producer.client_instance_id() == ids[0]
            await asyncio.sleep(3.5)
        return ids

    producing, consuming = asyncio.run(run())
    until(
        lambda: {line[0] for line in collecting.lines() if line[1] == "true"} >= {producing, consuming}, "the last push"
    )
    lines = collecting.lines()
    totals = {
        "org.apache.kafka.producer.record.send.total",
        "org.apache.kafka.consumer.fetch.manager.records.consumed.total",
    }
    assert {line[3] for line in lines} >= totals
    assert all(line[3].startswith(tuple(SUBSCRIPTION["metrics"].split(","))) for line in lines)
    for sender, name in zip((producing, consuming), sorted(totals, reverse=True), strict=True):
        own = [line for line in lines if line[0] == sender and line[3] == name and "topic" not in line[6]]
        assert {line[4] for line in own} == {"AGGREGATION_TEMPORALITY_DELTA"}
        assert sum(float(line[5]) for line in own) == 5
        assert all("client_id=shop" in line[6] and "client_rack=rack-1" in line[2] for line in own)
    labels = [line[2] for line in lines if line[0] == consuming]
    assert all("group_id=billing" in each for each in labels)
    assert any("group_member_id=" in each for each in labels)


def test_brokers_without_a_collector_say_so(system: str, tmp_path: Path) -> None:
    from bench.systems import SYSTEMS

    async def run(bootstrap: str) -> None:
        async with Producer(bootstrap_servers=bootstrap) as producer:
            with pytest.raises(UnsupportedByBroker, match="collect no metrics"):
                await producer.client_instance_id()

    with SYSTEMS[system](tmp_path / "plain") as node:
        asyncio.run(run(node.bootstrap))
