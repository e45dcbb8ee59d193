"""Kafka's own tools against three nodes: what they print is checked, and so is what they changed."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.systems import SYSTEMS, Node
from bench.systems.apache_kafka import CLUSTER_ID, java_command
from bench.systems.millbeck import cli_command
from tests.interop.cluster import NODE_IDS, Cluster, run_tool, tool_command, until

RECORD_COUNT = 6000
VALUES = [f"{index:08d}".encode() * 40 for index in range(RECORD_COUNT)]


@pytest.fixture(scope="module")
def cluster(system: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    three = Cluster(system, tmp_path_factory.mktemp("cluster"))
    for node in three.nodes.values():
        node.overrides["log.dirs"] = f"{node.data},{_second_directory(node)}"
    with three as running:
        yield running


def _second_directory(node: Node) -> str:
    return f"{node.directory}/second"


def _plan(path: Path, topic: str, replicas: dict[int, list[int]], **more: dict[int, list[str]]) -> str:
    """A file for kafka-reassign-partitions."""
    partitions = [
        {"topic": topic, "partition": partition, "replicas": wanted}
        | {name: by_partition[partition] for name, by_partition in more.items()}
        for partition, wanted in replicas.items()
    ]
    path.write_text(json.dumps({"version": 1, "partitions": partitions}))
    return str(path)


def _ids(text: str) -> list[int]:
    return sorted(int(one) for one in text.split(",") if one)


# kafka-metadata-quorum


def test_metadata_quorum_shows_status_and_replication(cluster: Cluster) -> None:
    status = cluster.tool("kafka-metadata-quorum", "describe", "--status")
    found = dict(re.split(r":\s+", line, maxsplit=1) for line in status.strip().splitlines())
    assert int(found["LeaderId"]) in NODE_IDS
    assert int(found["LeaderEpoch"]) >= 1
    assert int(found["HighWatermark"]) > 0
    voters = json.loads(found["CurrentVoters"])
    assert [voter["id"] for voter in voters] == list(NODE_IDS)
    assert [voter["endpoints"] for voter in voters] == [
        [f"CONTROLLER://127.0.0.1:{cluster.controller_ports[node_id]}"] for node_id in NODE_IDS
    ]
    assert json.loads(found["CurrentObservers"]) == []
    lines = cluster.tool("kafka-metadata-quorum", "describe", "--replication").strip().splitlines()
    rows = [re.split(r"\s*\t", line) for line in lines]
    assert rows[0][:4] == ["NodeId", "DirectoryId", "LogEndOffset", "Lag"]
    assert {int(row[0]): row[6] for row in rows[1:]} == {
        node_id: "Leader" if node_id == int(found["LeaderId"]) else "Follower" for node_id in NODE_IDS
    }
    assert all(int(row[3]) <= 5 for row in rows[1:])
    assert "ms ago" in cluster.tool("kafka-metadata-quorum", "describe", "--replication", "--human-readable")


def test_tools_may_ask_the_controllers_instead(cluster: Cluster) -> None:
    by_controllers = ("--bootstrap-controller", cluster.controllers)
    status = run_tool("kafka-metadata-quorum", *by_controllers, "describe", "--status")
    assert (status.returncode, "LeaderId:" in status.stdout) == (0, True), status.stderr
    features = run_tool("kafka-features", *by_controllers, "describe")
    assert (features.returncode, "metadata.version" in features.stdout) == (0, True), features.stderr
    until(
        lambda: (
            run_tool("kafka-cluster", "list-endpoints", *by_controllers).stdout.count("controller") >= len(NODE_IDS)
        ),
        "three controllers in the list",
    )
    done = run_tool(
        "kafka-configs",
        *by_controllers,
        *("--alter", "--entity-type", "brokers", "--entity-name", "1", "--add-config", "log.cleaner.threads=2"),
    )
    assert done.returncode == 0, done.stderr
    shown = run_tool("kafka-configs", *by_controllers, "--describe", "--entity-type", "brokers", "--entity-name", "1")
    assert "log.cleaner.threads=2" in shown.stdout
    cluster.tool(
        "kafka-configs",
        *("--alter", "--entity-type", "brokers", "--entity-name", "1", "--delete-config", "log.cleaner.threads"),
    )


@pytest.fixture
def newcomer(cluster: Cluster, tmp_path: Path) -> Iterator[Node]:
    """A fourth node, which is a controller alone and joins a quorum that is there already."""
    node = SYSTEMS[cluster.system](tmp_path / "node-4", node_id=4, heap_mib=384)
    node.directory.mkdir(parents=True)
    settings = {
        "process.roles": "controller",
        "node.id": "4",
        "controller.quorum.bootstrap.servers": cluster.controllers,
        "controller.listener.names": "CONTROLLER",
        "listeners": f"CONTROLLER://127.0.0.1:{node.controller_port}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "log.dirs": str(node.data),
        "metrics.http.port": "0",
    }
    node.config_path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    formatting = ("format", "-t", CLUSTER_ID, "-c", str(node.config_path), "--no-initial-controllers")
    command = (
        cli_command("storage", *formatting)
        if cluster.system == "millbeck"
        else java_command("kafka.tools.StorageTool", *formatting)
    )
    subprocess.run(command, check=True, env=node.environment(), stdin=subprocess.DEVNULL, capture_output=True)
    with node.log_path.open("ab") as log:
        node.process = subprocess.Popen(
            node.command(), env=node.environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    yield node
    node.kill()


def test_a_controller_is_added_and_removed(cluster: Cluster, newcomer: Node) -> None:
    def known(kind: str) -> list[int]:
        status = cluster.tool("kafka-metadata-quorum", "describe", "--status")
        found = re.search(rf"{kind}:\s+(\[.*\])", status)
        return [] if found is None else [each["id"] for each in json.loads(found[1])]

    raised = cluster.tool("kafka-features", "upgrade", "--feature", "kraft.version=1")
    assert "kraft.version was upgraded to 1." in raised
    until(lambda: known("CurrentObservers") == [4], "an observer")
    config = ("--command-config", str(newcomer.config_path))
    assert "Added controller 4 with directory id" in cluster.tool("kafka-metadata-quorum", *config, "add-controller")
    assert known("CurrentVoters") == [1, 2, 3, 4]
    assert "DuplicateVoter" in cluster.refused("kafka-metadata-quorum", *config, "add-controller")
    lines = cluster.tool("kafka-metadata-quorum", "describe", "--replication").splitlines()
    directory = next(re.split(r"\s*\t", line)[1] for line in lines if line.startswith("4"))
    removal = ("remove-controller", "--controller-id", "4", "--controller-directory-id")
    assert "KRaft controller 4 with directory id" in cluster.tool("kafka-metadata-quorum", *removal, directory)
    until(lambda: known("CurrentVoters") == [1, 2, 3], "three voters")
    assert "VoterNotFound" in cluster.refused("kafka-metadata-quorum", *removal, directory)
    newcomer.kill()


# kafka-topics


def test_topics_are_created_described_altered_and_deleted(cluster: Cluster) -> None:
    created = cluster.tool(
        "kafka-topics",
        *("--create", "--topic", "made", "--partitions", "3", "--replication-factor", "3"),
        *("--config", "retention.ms=987654321"),
    )
    assert "Created topic made." in created
    assert "already exists" in cluster.refused("kafka-topics", "--create", "--topic", "made")
    assert "Created" not in cluster.tool("kafka-topics", "--create", "--topic", "made", "--if-not-exists")
    cluster.tool("kafka-topics", "--create", "--topic", "placed", "--replica-assignment", "1:2,3:1")
    assert {number: row["Replicas"] for number, row in cluster.described("placed").items()} == {0: "1,2", 1: "3,1"}
    assert "replication factor" in cluster.refused(
        "kafka-topics", "--create", "--topic", "wide", "--replication-factor", "4"
    )
    listed = cluster.tool("kafka-topics", "--list").split()
    assert {"made", "placed"} <= set(listed)
    cluster.tool("kafka-topics", "--alter", "--topic", "made", "--partitions", "5")
    rows = cluster.described("made")
    assert sorted(rows) == [0, 1, 2, 3, 4]
    assert all(_ids(row["Replicas"]) == _ids(row["Isr"]) == list(NODE_IDS) for row in rows.values())
    assert {int(row["Leader"]) for row in rows.values()} == set(NODE_IDS)
    assert "currently has 5 partition" in cluster.refused(
        "kafka-topics", "--alter", "--topic", "made", "--partitions", "2"
    )
    overrides = cluster.tool("kafka-topics", "--describe", "--topics-with-overrides")
    assert "retention.ms=987654321" in overrides
    topic_id = re.search(r"TopicId: (\S+)", cluster.tool("kafka-topics", "--describe", "--topic", "made"))
    assert topic_id is not None
    assert "Topic: made" in cluster.tool("kafka-topics", "--describe", "--topic-id", topic_id[1])
    for topic in ("made", "placed"):
        cluster.tool("kafka-topics", "--delete", "--topic", topic)
    assert "does not exist" in cluster.refused("kafka-topics", "--delete", "--topic", "made")
    assert not {"made", "placed"} & set(cluster.tool("kafka-topics", "--list").split())


def test_topics_tell_partitions_in_trouble_apart(cluster: Cluster) -> None:
    """One node is gone: what only it had is unavailable, what it shared is short of a replica."""
    for topic, assignment, minimum in (
        ("three", "3:1:2", 2),
        ("two", "3:1", 2),
        ("alone", "3", 1),
        ("elsewhere", "1:2", 1),
    ):
        cluster.tool(
            "kafka-topics",
            *("--create", "--topic", topic, "--replica-assignment", assignment),
            *("--config", f"min.insync.replicas={minimum}"),
        )
    cluster.nodes[3].kill()

    def in_trouble(flag: str) -> set[str]:
        listed = cluster.tool("kafka-topics", "--describe", flag)
        return set(re.findall(r"Topic: (\S+)", listed)) & {"three", "two", "alone", "elsewhere"}

    try:
        until(lambda: in_trouble("--unavailable-partitions") == {"alone"}, "the loss of a node")
        assert in_trouble("--under-replicated-partitions") - {"alone"} == {"three", "two"}
        assert in_trouble("--at-min-isr-partitions") >= {"three"}
        assert in_trouble("--under-min-isr-partitions") >= {"two"}
        (row,) = cluster.described("two").values()
        assert (row["Isr"], row["Elr"]) == ("1", "3")
        shown = cluster.of_cluster("list-endpoints", "--include-fenced-brokers")
        assert re.search(r"^3\s.*\sfenced", shown, re.MULTILINE), shown
    finally:
        cluster.nodes[3].start()
    until(lambda: in_trouble("--under-replicated-partitions") == set(), "everything in sync again")
    assert in_trouble("--unavailable-partitions") == set()
    for topic in ("three", "two", "alone", "elsewhere"):
        cluster.tool("kafka-topics", "--delete", "--topic", topic)


# kafka-reassign-partitions


def test_reassignment_moves_records_within_its_throttle(cluster: Cluster, tmp_path: Path) -> None:
    cluster.tool("kafka-topics", "--create", "--topic", "moved", "--replica-assignment", "1:2,2:1,1:2")
    cluster.produce("moved", VALUES, partitions=3)
    before = {partition: cluster.consume("moved", partition) for partition in range(3)}
    assert sum(map(len, before.values())) == RECORD_COUNT
    topics = tmp_path / "topics.json"
    topics.write_text('{"version": 1, "topics": [{"topic": "moved"}]}')
    generated = cluster.tool(
        "kafka-reassign-partitions",
        *("--generate", "--topics-to-move-json-file", str(topics), "--broker-list", "2,3"),
    )
    current, proposed = (json.loads(line) for line in generated.splitlines() if line.startswith("{"))
    assert [one["replicas"] for one in current["partitions"]] == [[1, 2], [2, 1], [1, 2]]
    assert {tuple(sorted(one["replicas"])) for one in proposed["partitions"]} == {(2, 3)}
    plan = _plan(tmp_path / "plan.json", "moved", {0: [3, 2], 1: [2, 3], 2: [3, 1]})
    reassign = ("kafka-reassign-partitions", "--reassignment-json-file", plan)
    executed = cluster.tool(*reassign, "--execute", "--throttle", "10000")
    assert "Successfully started partition reassignments for moved-0,moved-1,moved-2" in executed
    assert "throttle limit was set to 10000 B/s" in executed
    listed = cluster.tool("kafka-reassign-partitions", "--list")
    assert "moved-1: replicas: 2,3,1. adding: 3. removing: 1." in listed
    verified = cluster.tool(*reassign, "--verify", "--preserve-throttles")
    assert verified.count("is still in progress") == 3
    for entity, name in (("brokers", "3"), ("topics", "moved")):
        shown = cluster.tool("kafka-configs", "--describe", "--entity-type", entity, "--entity-name", name)
        assert "replication.throttled." in shown
    assert "there is an existing partition assignment" in cluster.refused(*reassign, "--execute")
    cluster.tool(*reassign, "--execute", "--additional", "--throttle", "500000000")
    until(
        lambda: cluster.tool(*reassign, "--verify", "--preserve-throttles").count("is completed") == 3,
        "the move",
    )
    assert "Clearing broker-level throttles" in cluster.tool(*reassign, "--verify")
    assert "No partition reassignments found." in cluster.tool("kafka-reassign-partitions", "--list")
    for entity, name in (("brokers", "3"), ("topics", "moved")):
        shown = cluster.tool("kafka-configs", "--describe", "--entity-type", entity, "--entity-name", name)
        assert "replication.throttled." not in shown
    rows = cluster.described("moved")
    assert [row["Replicas"] for _, row in sorted(rows.items())] == ["3,2", "2,3", "3,1"]
    assert {partition: cluster.consume("moved", partition) for partition in range(3)} == before


def test_a_reassignment_is_cancelled(cluster: Cluster, tmp_path: Path) -> None:
    cluster.tool("kafka-topics", "--create", "--topic", "stayed", "--replica-assignment", "1:2")
    cluster.produce("stayed", VALUES, partitions=1)
    plan = _plan(tmp_path / "plan.json", "stayed", {0: [3, 1]})
    reassign = ("kafka-reassign-partitions", "--reassignment-json-file", plan)
    cluster.tool(*reassign, "--execute", "--throttle", "20000")
    assert "stayed-0" in cluster.tool("kafka-reassign-partitions", "--list")
    assert "Successfully cancelled partition reassignment for: stayed-0" in cluster.tool(*reassign, "--cancel")
    (row,) = cluster.described("stayed").values()
    assert _ids(row["Replicas"]) == [1, 2]
    assert "No partition reassignments found." in cluster.tool("kafka-reassign-partitions", "--list")
    assert cluster.consume("stayed", 0) == VALUES


def test_a_replica_moves_to_another_directory_of_its_broker(cluster: Cluster, tmp_path: Path) -> None:
    cluster.tool("kafka-topics", "--create", "--topic", "shelved", "--replica-assignment", "1:2")
    cluster.produce("shelved", VALUES, partitions=1)

    def directory_on_1() -> list[str]:
        shown = cluster.tool("kafka-log-dirs", "--describe", "--topic-list", "shelved", "--broker-list", "1")
        (broker,) = json.loads(shown.splitlines()[-1])["brokers"]
        return [each["logDir"] for each in broker["logDirs"] for one in each["partitions"] if not one["isFuture"]]

    (before,) = directory_on_1()
    node = cluster.nodes[1]
    after = next(each for each in (str(node.data), _second_directory(node)) if each != before)
    plan = _plan(tmp_path / "plan.json", "shelved", {0: [1, 2]}, log_dirs={0: [after, "any"]})
    reassign = ("kafka-reassign-partitions", "--reassignment-json-file", plan)
    executed = cluster.tool(*reassign, "--execute", "--replica-alter-log-dirs-throttle", "500000000")
    assert f"moving log directory to {after} for replica shelved-0 with broker 1" in executed
    until(lambda: "still in progress" not in cluster.tool(*reassign, "--verify"), "the move to another directory")
    assert directory_on_1() == [after]
    assert cluster.consume("shelved", 0) == VALUES


# kafka-leader-election


def test_leaders_are_elected(cluster: Cluster, tmp_path: Path) -> None:
    cluster.tool("kafka-topics", "--create", "--topic", "led", "--replica-assignment", "2:1:3,2:3:1")
    cluster.nodes[2].stop()
    until(lambda: all(row["Leader"] != "2" for row in cluster.described("led").values()), "other leaders")
    cluster.nodes[2].start()
    until(lambda: all(len(_ids(row["Isr"])) == 3 for row in cluster.described("led").values()), "replicas in sync")
    election = ("kafka-leader-election", "--election-type", "preferred")
    one = cluster.tool(*election, "--topic", "led", "--partition", "0")
    assert "Successfully completed leader election (PREFERRED) for partitions led-0" in one
    assert "Valid replica already elected for partitions led-0" in cluster.tool(
        *election, "--topic", "led", "--partition", "0"
    )
    chosen = tmp_path / "partitions.json"
    chosen.write_text('{"partitions": [{"topic": "led", "partition": 1}]}')
    assert "led-1" in cluster.tool(*election, "--path-to-json-file", str(chosen))
    until(lambda: {row["Leader"] for row in cluster.described("led").values()} == {"2"}, "the preferred leaders")
    assert "UnknownTopicOrPartition" in cluster.refused(*election, "--topic", "led", "--partition", "9")
    cluster.tool(*election, "--all-topic-partitions")


def test_an_unclean_election_is_asked_for(cluster: Cluster) -> None:
    """The only replica in sync is gone for good: another one leads, and what it never had is lost."""
    cluster.tool(
        "kafka-topics",
        *("--create", "--topic", "risked", "--replica-assignment", "3:1", "--config", "min.insync.replicas=1"),
    )
    cluster.produce("risked", [b"kept"], partitions=1)
    cluster.nodes[1].kill()
    until(lambda: cluster.described("risked")[0]["Isr"] == "3", "one replica in sync")
    cluster.produce("risked", [b"lost"], partitions=1)
    cluster.nodes[3].kill()
    cluster.nodes[1].start(wait=False)
    try:
        cluster.nodes[1].wait_until_serving()
        until(lambda: cluster.described("risked")[0]["Leader"] == "none", "a partition without a leader")
        arguments = ("--topic", "risked", "--partition", "0", "--election-type")
        assert "PreferredLeaderNotAvailable" in cluster.refused("kafka-leader-election", *arguments, "preferred")
        assert "Successfully completed leader election (UNCLEAN)" in cluster.tool(
            "kafka-leader-election", *arguments, "unclean"
        )
        until(lambda: cluster.described("risked")[0]["Leader"] == "1", "a leader")
        assert cluster.consume("risked", 0) == [b"kept"]
    finally:
        cluster.nodes[3].start()
    until(lambda: _ids(cluster.described("risked")[0]["Isr"]) == [1, 3], "the replica that had more")
    assert cluster.consume("risked", 0) == [b"kept"]


# kafka-features


def test_features_are_shown_raised_and_lowered(cluster: Cluster) -> None:
    name = "eligible.leader.replicas.version"

    def finalized(feature: str) -> str:
        shown = cluster.tool("kafka-features", "describe")
        found = re.search(rf"Feature: {re.escape(feature)}\s.*FinalizedVersionLevel: (\S+)", shown)
        return "" if found is None else found[1]

    assert finalized("metadata.version") == "4.3-IV0"
    assert finalized(name) == "1"
    assert f"{name} was downgraded to 0." in cluster.tool("kafka-features", "downgrade", "--feature", f"{name}=0")
    assert finalized(name) in ("", "0")
    assert "can be upgraded to 1" in cluster.tool("kafka-features", "upgrade", "--feature", f"{name}=1", "--dry-run")
    assert finalized(name) in ("", "0")
    assert f"{name} was upgraded to 1." in cluster.tool("kafka-features", "upgrade", "--feature", f"{name}=1")
    assert f"{name} was disabled." in cluster.tool("kafka-features", "disable", "--feature", name)
    cluster.tool("kafka-features", "upgrade", "--feature", f"{name}=1")
    assert finalized(name) == "1"
    for more in ((), ("--unsafe",)):
        assert "Could not downgrade metadata.version" in cluster.refused(
            "kafka-features", "downgrade", "--feature", "metadata.version=29", *more
        )
    assert "Could not upgrade" in cluster.refused("kafka-features", "upgrade", "--feature", "metadata.version=99")
    assert "Could not upgrade" in cluster.refused("kafka-features", "upgrade", "--feature", "no.such.feature=1")
    assert finalized("metadata.version") == "4.3-IV0"
    mapping = cluster.tool("kafka-features", "version-mapping", "--release-version", "4.2-IV1")
    assert "metadata.version=29 (4.2-IV1)" in mapping
    dependencies = cluster.tool("kafka-features", "feature-dependencies", "--feature", f"{name}=1")
    assert "metadata.version=23" in dependencies


# kafka-configs, kafka-log-dirs, kafka-cluster and the rest


def test_configs_of_brokers_topics_and_groups(cluster: Cluster) -> None:
    cluster.tool("kafka-topics", "--create", "--topic", "configured", "--partitions", "1")
    for entity, setting in (
        (("topics", "configured"), "max.message.bytes=77777"),
        (("brokers", "2"), "log.cleaner.backoff.ms=12345"),
        (("groups", "some-group"), "consumer.heartbeat.interval.ms=6000"),
    ):
        named = ("--entity-type", entity[0], "--entity-name", entity[1])
        assert "Completed updating config" in cluster.tool("kafka-configs", "--alter", *named, "--add-config", setting)
        assert setting in cluster.tool("kafka-configs", "--describe", *named)
        cluster.tool("kafka-configs", "--alter", *named, "--delete-config", setting.partition("=")[0])
        assert f" {setting} " not in cluster.tool("kafka-configs", "--describe", *named)
    everybody = ("--entity-type", "brokers", "--entity-default")
    cluster.tool("kafka-configs", "--alter", *everybody, "--add-config", "log.retention.ms=99999999")
    assert "log.retention.ms=99999999" in cluster.tool("kafka-configs", "--describe", *everybody)
    every_setting = cluster.tool(
        "kafka-configs", "--describe", "--all", "--entity-type", "brokers", "--entity-name", "3"
    )
    assert "DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=99999999" in every_setting
    assert "node.id=3" in every_setting
    cluster.tool("kafka-configs", "--alter", *everybody, "--delete-config", "log.retention.ms")
    assert "InvalidConfiguration" in cluster.refused(
        "kafka-configs",
        *("--alter", "--entity-type", "topics", "--entity-name", "configured", "--add-config", "retention.ms=soon"),
    )


def test_log_directories_are_described(cluster: Cluster) -> None:
    cluster.tool("kafka-topics", "--create", "--topic", "stored", "--replica-assignment", "1:2:3")
    cluster.produce("stored", VALUES[:500], partitions=1)
    shown = cluster.tool("kafka-log-dirs", "--describe", "--topic-list", "stored").splitlines()[-1]
    found = {
        broker["broker"]: [one for directory in broker["logDirs"] for one in directory["partitions"]]
        for broker in json.loads(shown)["brokers"]
    }
    assert sorted(found) == list(NODE_IDS)
    assert [[one["partition"] for one in ones] for ones in found.values()] == [["stored-0"]] * 3
    sizes = {one["size"] for ones in found.values() for one in ones}
    assert len(sizes) == 1, "every replica has the same bytes"
    assert sizes.pop() > 500 * 320


def test_the_clusters_id_and_a_broker_that_is_forgotten(cluster: Cluster) -> None:
    assert re.fullmatch(r"Cluster ID: \S{22}", cluster.of_cluster("cluster-id").strip())
    listed = cluster.of_cluster("list-endpoints")
    assert re.findall(r"^(\d)\s+127\.0\.0\.1\s+(\d+)", listed, re.MULTILINE) == [
        (str(node_id), str(port)) for node_id, port in cluster.ports.items()
    ]
    assert "Broker ID 77 is not currently registered" in cluster.of_cluster("unregister", "--id", "77")
    cluster.nodes[3].stop()
    try:
        assert "Broker 3 is no longer registered." in cluster.of_cluster("unregister", "--id", "3")
        shown = cluster.of_cluster("list-endpoints", "--include-fenced-brokers")
        assert re.findall(r"^(\d)\s", shown, re.MULTILINE) == ["1", "2"]
    finally:
        cluster.nodes[3].start()
    until(
        lambda: re.findall(r"^(\d)\s", cluster.of_cluster("list-endpoints"), re.MULTILINE) == ["1", "2", "3"],
        "the broker back by itself",
    )


def test_broker_api_versions_knows_every_broker(cluster: Cluster) -> None:
    shown = cluster.tool("kafka-broker-api-versions")
    for node_id, port in cluster.ports.items():
        assert f"127.0.0.1:{port} (id: {node_id} rack: null isFenced: false) -> (" in shown
    for expected in ("Produce(0): 0 to 13", "Fetch(1): 4 to 18", "AddRaftVoter(80): 0 to 1"):
        assert shown.count(expected) == 3, expected
    assert "UNKNOWN" not in shown


def test_offsets_and_replicas_agree(cluster: Cluster, tmp_path: Path) -> None:
    cluster.tool("kafka-topics", "--create", "--topic", "counted", "--replica-assignment", "1:2:3,2:3:1")
    cluster.produce("counted", VALUES[:1001], partitions=2)
    assert cluster.tool("kafka-get-offsets", "--topic", "counted").split() == ["counted:0:501", "counted:1:500"]
    cut = tmp_path / "offsets.json"
    cut.write_text('{"version": 1, "partitions": [{"topic": "counted", "partition": 0, "offset": 100}]}')
    assert "low_watermark: 100" in cluster.tool("kafka-delete-records", "--offset-json-file", str(cut))
    assert cluster.tool("kafka-get-offsets", "--topic", "counted", "--time", "earliest").split() == [
        "counted:0:100",
        "counted:1:0",
    ]
    assert cluster.tool("kafka-get-offsets", "--topic-partitions", "counted:1", "--time", "latest").split() == [
        "counted:1:500"
    ]
    # This tool reports for ever; a line that says so is enough.
    verification = subprocess.Popen(
        tool_command(
            "kafka-replica-verification",
            *("--broker-list", cluster.bootstrap, "--topics-include", "counted", "--time", "-2"),
            *("--report-interval-ms", "500"),
        ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert verification.stdout is not None
        reports = (line for line in verification.stdout if "max lag is" in line)
        assert "max lag is 0 for partition counted-0 at offset 501 among 2 partitions" in next(
            line for line in reports if "offset 501" in line
        )
    finally:
        verification.kill()
        verification.wait(10)
