"""Three nodes of the system under test as one cluster, and Kafka's own tools to be run against it.

The nodes have both roles and name each other as voters. Sessions are short, so that a node that was killed is missed
soon. A tool runs in a process of its own, from the artifacts that the broker is run from; what it
printed is the answer.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.systems import SYSTEMS, Node
from bench.systems.node import free_ports
from tools import peers

NODE_IDS = (1, 2, 3)
TOOL_TIMEOUT_S = 120
WAIT_TIMEOUT_S = 60.0
_LIGHT = ("-Xmx192m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error")
TOOLS = {
    "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-streams-groups": "org.apache.kafka.tools.streams.StreamsGroupCommand",
    "kafka-replica-verification": "org.apache.kafka.tools.ReplicaVerificationTool",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
}
CLUSTER_SETTINGS = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
    "auto.leader.rebalance.enable": "false",
    "replica.lag.time.max.ms": "5000",
}


def tool_command(name: str, *arguments: str) -> list[str]:
    properties = os.environ.get("KAFKA_OPTS", "").split()
    return ["java", *_LIGHT, *properties, "-cp", f"{peers.peer_path('kafka')}/*", TOOLS[name], *arguments]


def run_tool(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        tool_command(name, *arguments),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=TOOL_TIMEOUT_S,
    )


def until(condition: Callable[[], bool], what: str, timeout_s: float = WAIT_TIMEOUT_S) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, f"{what} did not come about in {timeout_s} s"
        time.sleep(0.2)


class Cluster:
    """The nodes by their ids; started and stopped together, since none serves before most of them are there."""

    def __init__(self, system: str, directory: Path, *, overrides: Mapping[str, str] | None = None) -> None:
        self.system = system
        self.directory = directory
        ports = free_ports(2 * len(NODE_IDS))
        self.ports = dict(zip(NODE_IDS, ports[: len(NODE_IDS)], strict=True))
        self.controller_ports = dict(zip(NODE_IDS, ports[len(NODE_IDS) :], strict=True))
        self.nodes: dict[int, Node] = {}
        for node_id in NODE_IDS:
            node = SYSTEMS[system](directory / f"node-{node_id}", node_id=node_id, heap_mib=384)
            node.port, node.controller_port = self.ports[node_id], self.controller_ports[node_id]
            node.overrides = CLUSTER_SETTINGS | {"controller.quorum.voters": self.voters} | dict(overrides or {})
            self.nodes[node_id] = node

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self.ports.values())

    @property
    def controllers(self) -> str:
        """What tools call --bootstrap-controller."""
        return ",".join(f"127.0.0.1:{port}" for port in self.controller_ports.values())

    @property
    def voters(self) -> str:
        return ",".join(f"{node_id}@127.0.0.1:{port}" for node_id, port in self.controller_ports.items())

    def start(self) -> None:
        for node in self.nodes.values():
            if node.process is None:
                node.start(wait=False)
        for node in self.nodes.values():
            node.wait_until_serving()

    def stop(self) -> None:
        for node in self.nodes.values():
            if node.process is not None:
                node.process.terminate()
        for node in self.nodes.values():
            node.stop()

    def __enter__(self) -> Cluster:
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for node in self.nodes.values():
            node.kill()

    # Kafka's tools, pointed at this cluster

    def tool(self, name: str, *arguments: str) -> str:
        """Run a tool that must succeed; what it printed."""
        done = run_tool(name, "--bootstrap-server", self.bootstrap, *arguments)
        assert done.returncode == 0, f"{name} {' '.join(arguments)}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def refused(self, name: str, *arguments: str) -> str:
        """Run a tool that must fail; all that it printed."""
        done = run_tool(name, "--bootstrap-server", self.bootstrap, *arguments)
        assert done.returncode != 0, f"{name} {' '.join(arguments)}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def of_cluster(self, command: str, *arguments: str) -> str:
        """kafka-cluster, which takes the addresses behind the command; all that it printed."""
        done = run_tool("kafka-cluster", command, "--bootstrap-server", self.bootstrap, *arguments)
        return done.stdout + done.stderr

    def described(self, topic: str, *flags: str) -> dict[int, dict[str, str]]:
        """What kafka-topics says of the partitions: their columns by name."""
        rows = {}
        for line in self.tool("kafka-topics", "--describe", "--topic", topic, *flags).splitlines():
            columns = [column.strip() for column in line.split("\t") if column.strip()]
            parts = [column.partition(": ") for column in columns]
            row = {name.rstrip(":"): value for name, _, value in parts}
            if "Partition" in row:
                rows[int(row["Partition"])] = row
        return rows

    # records

    def produce(self, topic: str, values: list[bytes], *, partitions: int) -> None:
        """One after the other to the partitions in turn, acknowledged by all."""
        failures: list[object] = []
        producer = Producer({"bootstrap.servers": self.bootstrap, "enable.idempotence": True, "linger.ms": 5})
        for index, value in enumerate(values):
            producer.produce(
                topic,
                value=value,
                partition=index % partitions,
                on_delivery=lambda error, _: None if error is None else failures.append(error),
            )
            producer.poll(0)
        assert producer.flush(60) == 0
        assert failures == []

    def consume(self, topic: str, partition: int) -> list[bytes]:
        return read_all(self.bootstrap, topic, partition)


def read_all(bootstrap: str, topic: str, partition: int) -> list[bytes]:
    """The values from a log's start to its end."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False}
    consumer = Consumer(settings | {"auto.offset.reset": "error"})
    try:
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), 30)
        consumer.assign([TopicPartition(topic, partition, low)])
        found: list[bytes] = []
        deadline_s = time.monotonic() + WAIT_TIMEOUT_S
        while len(found) < high - low and time.monotonic() < deadline_s:
            for message in consumer.consume(5000, 0.2):
                assert not message.error(), message.error()
                found.append(message.value() or b"")
        return found
    finally:
        consumer.close()
