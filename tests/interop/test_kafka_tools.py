"""``millbeck shims`` beside Kafka's own tools: the same lines on one node, exit codes and parsed output compared."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from bench.systems import SYSTEMS, Node
from bench.systems.apache_kafka import java_command
from bench.systems.millbeck import cli_command, cli_environment
from bench.systems.node import free_ports
from tests.interop.cluster import until
from tests.interop.kafka_tool_lines import (
    CODE,
    GROUPS,
    JSON,
    LINES,
    LOCAL,
    ROWS,
    SHAPE,
    TRANSACTIONS,
    Line,
)

MAIN_CLASSES = {
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-console-share-consumer": "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "kafka-delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-groups": "org.apache.kafka.tools.GroupsCommand",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-server-start": "kafka.Kafka",
    "kafka-share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "kafka-storage": "kafka.tools.StorageTool",
    "kafka-streams-groups": "org.apache.kafka.tools.streams.StreamsGroupCommand",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
}
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:ANONYMOUS",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "share.coordinator.state.topic.num.partitions": "2",
    "transaction.partition.verification.enable": "false",
}
TIMEOUT_S = 120
PREFIXES = ("apk", "mbk")
_ONLY_KAFKA = ("deprecated", "Bootstrap metadata:", "console-consumer-")
"""Parts of lines that only Kafka's tools print: what a release deprecates, its objects, groups of its consumers."""
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_KAFKA_ID = re.compile(r"\b[A-Za-z0-9_-]{22}\b")
_MILLISECONDS = re.compile(r"\b\d{13}\b")


@dataclass(frozen=True, slots=True)
class Run:
    code: int
    stdout: str
    stderr: str


@dataclass(slots=True)
class Side:
    """One of the two who run the lines: with names of its own, in a directory of its own."""

    prefix: str
    shims: Path | None
    """The directory of the shims; None for Kafka's own tools."""
    directory: Path
    node: Node
    closing: ExitStack = field(default_factory=ExitStack)

    def run(self, line: Line) -> Run:
        self.before(line)
        words = line.arguments(prefix=self.prefix, bootstrap=self.node.bootstrap, directory=str(self.directory))
        done = subprocess.run(
            self.command_of(line.tool, words[1:]),
            input=line.stdin,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            env=cli_environment() | {"MILLBECK_BOOTSTRAP": "127.0.0.1:1", "TZ": "UTC"},
            cwd=self.directory,
        )
        return Run(done.returncode, done.stdout, done.stderr)

    def command_of(self, tool: str, arguments: list[str]) -> list[str]:
        if self.shims is not None:
            return [str(self.shims / f"{tool}.sh"), *arguments]
        found = java_command(MAIN_CLASSES[tool], *arguments, heap_mib=192, log_level="error")
        return [found[0], "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *(w for w in found[1:] if "G1" not in w)]

    def before(self, line: Line) -> None:
        """What must be there before the first line of some tools is run."""
        if line is LINES[0]:
            self._write_files()
        elif line is GROUPS[0]:
            self._join_groups()
        elif line is TRANSACTIONS[0]:
            self._begin_transaction()
        elif line is LOCAL[0]:
            self._copy_log()

    def _write_files(self) -> None:
        self.directory.mkdir()
        events, orders = f"{self.prefix}-events", f"{self.prefix}-orders"
        documents = {
            "delete": {"partitions": [{"topic": events, "partition": 0, "offset": 2}], "version": 1},
            "elect": {"partitions": [{"topic": orders, "partition": 1}]},
            "topics": {"topics": [{"topic": orders}], "version": 1},
            "plan": {"version": 1, "partitions": [{"topic": orders, "partition": 0, "replicas": [1]}]},
        }
        for name, document in documents.items():
            (self.directory / f"{name}.json").write_text(json.dumps(document))
        (self.directory / "client.properties").write_text("request.timeout.ms=20000\n")
        port, controller_port = free_ports(2)
        (self.directory / "server.properties").write_text(
            "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
            f"controller.quorum.voters=1@127.0.0.1:{controller_port}\n"
            f"listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}\n"
            f"log.dirs={self.directory}/logs\n"
        )

    def _join_groups(self) -> None:
        """A live member of a consumer group, and a share group that has been there."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.node.bootstrap,
                "group.id": f"{self.prefix}-live",
                "client.id": "app",
                "auto.offset.reset": "earliest",
            }
        )
        self.closing.callback(consumer.close)
        consumer.subscribe([f"{self.prefix}-orders"])
        until(lambda: bool(consumer.poll(0.2)) or bool(consumer.assignment()), "an assignment")
        deadline_s = time.monotonic() + 3
        while time.monotonic() < deadline_s:
            consumer.poll(0.2)
        consumer.commit(asynchronous=False)
        subprocess.run(
            cli_command(
                *("consume", f"{self.prefix}-orders", "--share", "--group", f"{self.prefix}-image-processors"),
                *("--timeout-ms", "4000", "--bootstrap-server", self.node.bootstrap),
            ),
            env=cli_environment(),
            check=True,
            capture_output=True,
            timeout=TIMEOUT_S,
        )

    def _begin_transaction(self) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self.node.bootstrap,
                "transactional.id": f"{self.prefix}-txn",
                "transaction.timeout.ms": 600_000,
            }
        )
        self.closing.callback(producer.flush, 1)
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce(f"{self.prefix}-orders", "open", partition=0)
        producer.flush(30)

    def _copy_log(self) -> None:
        source = self.node.data / f"{self.prefix}_dotted.name-0"
        producer = Producer({"bootstrap.servers": self.node.bootstrap, "linger.ms": 0})
        for number in range(3):
            producer.produce(f"{self.prefix}_dotted.name", f"value {number}", key=f"{number}", headers={"h": "v"})
            producer.flush(30)
        for path in source.iterdir():
            if path.name.startswith("0000"):
                (self.directory / path.name).write_bytes(path.read_bytes())

    def normalised(self, text: str) -> list[str]:
        """The lines without what must differ: names of this side, its directory, random ids, times of day."""
        other = next(each for each in PREFIXES if each != self.prefix)
        text = text.replace(str(self.directory), "<directory>").replace(str(self.node.port), "<port>")
        lines = []
        for line in text.splitlines():
            if other in line or not line.strip() or any(each in line for each in _ONLY_KAFKA):
                continue
            line = line.replace(self.prefix, "<p>")
            line = _UUID.sub("<uuid>", line)
            line = _KAFKA_ID.sub("<id>", line)
            line = _MILLISECONDS.sub("<ms>", line)
            line = re.sub(r"(Epoch|crc): \d+", r"\1: <number>", line)
            head, configs, listed = " ".join(line.split()).partition("Configs: ")
            lines.append(head + configs + ",".join(sorted(listed.split(","))))
        return lines


def parsed(lines: list[str], how: str) -> object:
    if how == ROWS:
        return sorted(lines)
    if how == SHAPE:
        return [re.sub(r"-?\d+(\.\d+)?", "0", line) for line in lines]
    if how == JSON:
        return [_document(line) if line.startswith("{") else line for line in lines]
    return lines


def _document(line: str) -> object:
    """JSON without the order of its lists, which differs from run to run."""

    def sortable(value: object) -> object:
        if isinstance(value, dict):
            return {key: sortable(each) for key, each in value.items()}
        if isinstance(value, list):
            return sorted(map(sortable, value), key=lambda each: json.dumps(each, sort_keys=True))
        return value

    return sortable(json.loads(line))


@pytest.fixture(scope="module")
def sides(system: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    """Kafka's tools and the installed shims, on one node."""
    directory = tmp_path_factory.mktemp("tools")
    shims = directory / "bin"
    subprocess.run(cli_command("shims", "install", str(shims)), env=cli_environment(), check=True, capture_output=True)
    with SYSTEMS[system](directory / "node", overrides=SETTINGS) as node:
        kafka = Side("apk", None, directory / "apk", node)
        ours = Side("mbk", shims, directory / "mbk", node)
        try:
            yield kafka, ours
        finally:
            kafka.closing.close()
            ours.closing.close()


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.text)
def test_a_line_ends_and_prints_as_with_kafkas_own_tool(sides: tuple[Side, Side], line: Line) -> None:
    """The lines depend on those before them, so that the whole file is run, in order."""
    kafka, ours = sides
    expected, found = kafka.run(line), ours.run(line)
    assert found.code == expected.code, f"{expected.stdout}{expected.stderr}\n--\n{found.stdout}{found.stderr}"
    if line.compared != CODE:
        assert parsed(ours.normalised(found.stdout), line.compared) == parsed(
            kafka.normalised(expected.stdout), line.compared
        )
    if found.code != 0:
        assert found.stderr.count("\n") == 1 or "--help" in line.text, found.stderr


def test_the_seeds_lines_and_two_more_of_each_tool_are_in_the_table() -> None:
    counts = dict.fromkeys(MAIN_CLASSES, 0)
    for line in LINES:
        counts[line.tool] += not line.is_of_seeds
    assert min(counts.values()) >= 2, counts
    assert sum(counts.values()) >= 60
