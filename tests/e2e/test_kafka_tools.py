"""Kafka's tools by the shims, against a real node: the output that scripts parse."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from millbeck.cli.kafka_tools.running import translated
from millbeck.cli.kafka_tools.tools import TOOLS
from millbeck.cli.main import cli
from millbeck.testing import Broker, broker

Tool = Callable[..., list[str]]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with broker(data=tmp_path_factory.mktemp("node") / "logs", auto_create_topics_enable=False) as running:
        yield running


@pytest.fixture(scope="module")
def tool(node: Broker) -> Tool:
    """Runs a tool, in this process, which must succeed; the lines that it printed, with single spaces."""

    def run(line: str, stdin: str = "") -> list[str]:
        name, *arguments = line.split()
        where = [] if "--bootstrap-server" in arguments else ["--bootstrap-server", node.bootstrap]
        words = translated(TOOLS[name], [*where, *arguments])
        done = CliRunner().invoke(cli, words, input=stdin, prog_name=name, obj=name)
        assert done.exit_code == 0, f"{line}\n{done.stdout}{done.stderr}"
        return [" ".join(each.split()) for each in done.stdout.splitlines() if each.strip()]

    return run


@pytest.fixture(scope="module", autouse=True)
def records(tool: Tool) -> None:
    tool("kafka-topics --create --topic orders --partitions 2 --config retention.ms=86400000")
    keyed = "--reader-property parse.key=true --reader-property key.separator=:"
    tool(f"kafka-console-producer --topic orders {keyed}", stdin="a:1\nb:2\nc:3\nd:4\n")


def test_topics(tool: Tool) -> None:
    assert tool("kafka-topics --create --topic made_here") == [
        "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could collide. To "
        "avoid issues it is best to use either, but not both.",
        "Created topic made_here.",
    ]
    assert tool("kafka-topics --create --topic made_here --if-not-exists") == []
    assert tool("kafka-topics --list --exclude-internal") == ["made_here", "orders"]
    head, *partitions = tool("kafka-topics --describe --topic orders")
    assert re.match(r"Topic: orders TopicId: \S{22} PartitionCount: 2 ReplicationFactor: 1 Configs: .*retention", head)
    assert partitions == [
        f"Topic: orders Partition: {number} Leader: 1 Replicas: 1 Isr: 1 Elr: LastKnownElr:" for number in (0, 1)
    ]
    assert all("Partition: " not in line for line in tool("kafka-topics --describe --topics-with-overrides"))
    assert tool("kafka-topics --alter --topic made_here --partitions 3") == []
    assert tool("kafka-topics --delete --topic made_here") == []


def test_settings(tool: Tool) -> None:
    changed = "kafka-configs --alter --topic orders --add-config"
    assert tool(f"{changed} cleanup.policy=[compact,delete]") == ["Completed updating config for topic orders."]
    lines = tool("kafka-configs --describe --entity-type topics --entity-name orders")
    assert lines[0] == "Dynamic configs for topic orders are:"
    assert lines[1].startswith(
        "cleanup.policy=compact,delete sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact,delete, "
    )
    assert tool("kafka-configs --alter --topic orders --delete-config cleanup.policy") == [
        "Completed updating config for topic orders."
    ]
    defaults = "--entity-type brokers --entity-default"
    assert tool(f"kafka-configs --alter {defaults} --add-config log.cleaner.threads=2") == [
        "Completed updating default config for brokers in the cluster."
    ]
    lines = tool("kafka-configs --describe --entity-type brokers")
    assert "Dynamic configs for broker 1 are:" in lines
    assert "Default configs for brokers in the cluster are:" in lines
    share = "--entity-type groups --entity-name jobs"
    tool(f"kafka-configs --alter {share} --add-config share.record.lock.duration.ms=30000")
    assert "{DYNAMIC_GROUP_CONFIG:share.record.lock.duration.ms=30000" in tool(f"kafka-configs --describe {share}")[1]


def test_users(tool: Tool) -> None:
    user = "--entity-type users --entity-name alice"
    done = ["Completed updating config for user alice."]
    assert tool(f"kafka-configs --alter {user} --add-config SCRAM-SHA-256=[iterations=4096,password=secret]") == done
    assert tool("kafka-configs --describe --user alice") == [
        "SCRAM credential configs for user-principal 'alice' are SCRAM-SHA-256=iterations=4096"
    ]
    assert tool("kafka-configs --alter --user alice --delete-config SCRAM-SHA-256") == done
    assert tool("kafka-configs --describe --entity-type users") == []


def test_client_quotas(tool: Tool) -> None:
    def describe(options: str) -> list[str]:
        return tool(f"kafka-configs --describe {options}")

    both = "--entity-type users --entity-name ann --entity-type clients --entity-default"
    for entity, quota, changed in (
        ("--user ann", "producer_byte_rate=10485760", "config for user ann."),
        (
            "--entity-type clients --entity-default",
            "consumer_byte_rate=2048",
            "default config for clients in the cluster.",
        ),
        ("--ip ::1", "connection_creation_rate=5", "config for ip ::1."),
        (both, "request_percentage=12.5", "config for user ann."),
    ):
        assert tool(f"kafka-configs --alter {entity} --add-config {quota}") == [f"Completed updating {changed}"]
    assert describe("--user ann") == ["Quota configs for user-principal 'ann' are producer_byte_rate=1.048576E7"]
    assert describe("--entity-type users") == describe("--user ann")
    assert describe("--client-defaults") == ["Quota configs for the default client-id are consumer_byte_rate=2048.0"]
    assert describe("--entity-type ips") == ["Quota configs for ip '::1' are connection_creation_rate=5.0"]
    assert describe(both) == [
        "Quota configs for user-principal 'ann', the default client-id are request_percentage=12.5"
    ]
    assert describe("--user ann --client other") == []
    tool(f"kafka-configs --alter {both} --delete-config request_percentage")
    assert describe(both) == []


def test_offsets_and_deleted_records(tool: Tool, tmp_path: Path) -> None:
    tool("kafka-topics --create --topic few --partitions 2")
    tool("kafka-console-producer --topic few", stdin="1\n2\n3\n")
    ends = [line.split(":") for line in tool("kafka-get-offsets --topic few")]
    assert [(name, number) for name, number, _ in ends] == [("few", "0"), ("few", "1")]
    assert sum(int(end) for _, _, end in ends) == 3
    assert tool("kafka-get-offsets --topic-partitions few:1- --time earliest") == ["few:1:0"]
    assert tool("kafka-get-offsets --topic few --time 9999999999999") == []
    path = tmp_path / "offsets.json"
    path.write_text(json.dumps({"partitions": [{"topic": "few", "partition": 0, "offset": -1}]}))
    assert tool(f"kafka-delete-records --offset-json-file {path}") == [
        "Executing records delete operation",
        "Records delete operation completed:",
        f"partition: few-0 low_watermark: {ends[0][2]}",
    ]
    assert tool("kafka-get-offsets --topic-partitions few:0 --time -2") == [f"few:0:{ends[0][2]}"]


def test_groups(tool: Tool) -> None:
    printed = tool("kafka-console-consumer --topic orders --from-beginning --group readers --max-messages 4")
    assert sorted(printed) == ["1", "2", "3", "4"]
    assert tool("kafka-consumer-groups --list") == ["readers"]
    assert tool("kafka-consumer-groups --list --state --type") == ["GROUP TYPE STATE", "readers Classic Empty"]
    every = ["GROUP TYPE PROTOCOL", "readers Classic consumer"]
    assert tool("kafka-groups --list") == tool("kafka-groups --list --consumer") == every
    assert tool("kafka-groups --list --group-type classic --protocol consumer") == every
    assert tool("kafka-groups --list --share") == tool("kafka-groups --list --protocol connect") == every[:1]
    assert tool("kafka-streams-groups --list") == tool("kafka-streams-groups --describe --all-groups") == []
    with pytest.raises(AssertionError, match="readers is not a streams group"):
        tool("kafka-streams-groups --describe --group readers")
    head, *rows = tool("kafka-consumer-groups --describe --group readers")
    assert head == "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID"
    assert [row.split()[0:3] + row.split()[5:] for row in rows] == [
        ["readers", "orders", str(number), "0", "-", "-", "-"] for number in (0, 1)
    ]
    head, row = tool("kafka-consumer-groups --describe --group readers --state")
    assert head == "GROUP COORDINATOR (ID) ASSIGNMENT-STRATEGY STATE #MEMBERS"
    assert re.fullmatch(r"readers \S+:\d+ \(1\) - Empty 0", row)
    reset = "kafka-consumer-groups --reset-offsets --group readers --topic orders"
    assert tool(f"{reset} --to-earliest --execute") == [
        "GROUP TOPIC PARTITION NEW-OFFSET",
        "readers orders 0 0",
        "readers orders 1 0",
    ]
    assert tool("kafka-consumer-groups --delete-offsets --group readers --topic orders") == [
        "Request succeeded for deleting offsets from group readers.",
        "TOPIC PARTITION STATUS",
        "orders 0 Successful",
        "orders 1 Successful",
    ]
    assert tool("kafka-consumer-groups --delete --group readers") == [
        "Deletion of requested consumer groups ('readers') was successful."
    ]


def test_the_cluster(tool: Tool, node: Broker) -> None:
    host, port = node.bootstrap.split(":")
    assert re.fullmatch(r"Cluster ID: \S{22}", tool("kafka-cluster cluster-id")[0])
    assert tool("kafka-cluster list-endpoints") == [
        "ID HOST PORT RACK STATE ENDPOINT_TYPE",
        f"1 {host} {port} null unfenced broker",
    ]
    first, *versions, last = tool("kafka-broker-api-versions")
    assert (first, last) == (f"{node.bootstrap} (id: 1 rack: null isFenced: false) -> (", ")")
    assert "Fetch(1): 4 to 18 [usable: 18]," in versions
    assert "GetTelemetrySubscriptions(71): UNSUPPORTED," in versions
    facts = dict(line.split(": ", 1) for line in tool("kafka-metadata-quorum describe --status"))
    assert (facts["LeaderId"], json.loads(facts["CurrentVoters"])[0]["id"]) == ("1", 1)
    head, row = tool("kafka-metadata-quorum describe --replication")
    assert head == "NodeId DirectoryId LogEndOffset Lag LastFetchTimestamp LastCaughtUpTimestamp Status"
    assert (row.split()[0], row.split()[-1]) == ("1", "Leader")
    assert any(
        re.match(r"Feature: metadata.version Supp.*Finalized\S+ 4.3-IV0 Epoch", each)
        for each in tool("kafka-features describe")
    )
    _, received, document = tool("kafka-log-dirs --describe --topic-list orders")
    assert received == "Received log directory information from brokers 1"
    (directory,) = json.loads(document)["brokers"][0]["logDirs"]
    assert {each["partition"] for each in directory["partitions"]} == {"orders-0", "orders-1"}
    assert directory["error"] is None


def test_moves_and_elections(tool: Tool, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"partitions": [{"topic": "orders", "partition": 0, "replicas": [1]}]}))
    lines = tool(f"kafka-reassign-partitions --execute --reassignment-json-file {plan} --throttle 50000000")
    assert lines[0] == "Current partition replica assignment"
    assert json.loads(lines[1])["partitions"][0]["replicas"] == [1]
    assert lines[-1] == "Successfully started partition reassignment for orders-0"
    assert tool(f"kafka-reassign-partitions --verify --reassignment-json-file {plan}") == [
        "Status of partition reassignment:",
        "Reassignment of partition orders-0 is completed.",
        "Clearing broker-level throttles on broker 1",
        "Clearing topic-level throttles on topic orders",
    ]
    assert tool("kafka-reassign-partitions --list") == ["No partition reassignments found."]
    elected = "kafka-leader-election --election-type preferred --topic orders --partition 0"
    assert tool(elected) == ["Valid replica already elected for partitions orders-0"]


def test_transactions_and_measurements(tool: Tool) -> None:
    assert tool("kafka-transactions list") == ["TransactionalId Coordinator ProducerId TransactionState"]
    assert tool("kafka-transactions find-hanging --topic orders --partition 0") == [
        "Topic Partition ProducerId ProducerEpoch CoordinatorEpoch StartOffset LastTimestamp Duration(min)"
    ]
    tool("kafka-topics --create --topic load")
    sent = tool("kafka-producer-perf-test --topic load --num-records 50 --payload-monotonic --throughput -1")
    assert sent[0].startswith("50 records sent, ")
    head, figures = tool("kafka-consumer-perf-test --topic load --num-records 50")
    assert head.split(", ")[4] == "data.consumed.in.nMsg"
    assert figures.split(", ")[4] == "50"
    assert len(tool("kafka-consumer-perf-test --topic load --num-records 50 --hide-header")) == 1
