"""The commands against a real node."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from millbeck.cli.main import cli
from millbeck.kernel.ids import TopicPartition
from millbeck.testing import Broker, broker

Millbeck = Callable[..., str]


def start(*arguments: str, **variables: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "millbeck.cli.main", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **variables},
    )


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with broker(data=tmp_path_factory.mktemp("node") / "logs", auto_create_topics_enable=False) as running:
        yield running


@pytest.fixture
def run(node: Broker) -> Callable[..., Result]:
    """Runs a command in this process, which is quicker; those that are about processes start their own."""

    def invoke(*arguments: str, stdin: str = "") -> Result:
        environment = {"MILLBECK_BOOTSTRAP": node.bootstrap}
        return CliRunner().invoke(cli, list(arguments), input=stdin, env=environment, prog_name="millbeck")

    return invoke


@pytest.fixture
def millbeck(run: Callable[..., Result]) -> Millbeck:
    """Runs a command that must succeed; what it printed."""

    def succeed(*arguments: str, stdin: str = "") -> str:
        done = run(*arguments, stdin=stdin)
        assert done.exit_code == 0, done.stderr
        return done.stdout

    return succeed


@pytest.fixture
def refused(run: Callable[..., Result]) -> Millbeck:
    """Runs a command that must fail; the line that says why."""

    def fail(*arguments: str, stdin: str = "") -> str:
        done = run(*arguments, stdin=stdin)
        assert done.exit_code == 1, done.stdout
        *warnings, line = done.stderr.splitlines()
        assert all(each.startswith("warning: ") for each in warnings)
        return line

    return fail


def as_json(text: str) -> Any:
    return json.loads(text)


def test_a_topics_life(run: Callable[..., Result], millbeck: Millbeck, refused: Millbeck) -> None:
    assert millbeck("topic", "create", "life", "-p", "2", "-c", "retention.ms=1000").startswith("created life: 2 part")
    assert "TOPIC_ALREADY_EXISTS" in refused("topic", "create", "life")
    assert millbeck("topic", "--create", "--topic", "life", "--if-not-exists") == "life already exists\n"
    assert {"name": "life", "partitions": 2, "internal": False} in as_json(millbeck("topic", "list", "-o", "json"))
    (described,) = as_json(millbeck("topic", "describe", "life", "-o", "json"))
    assert described["configs"] == {"retention.ms": "1000"}
    assert [each["leader"] for each in described["partitions"]] == [1, 1]
    decreased = run("topic", "alter", "life", "-p", "1", "-c", "retention.ms=7")
    assert "INVALID_PARTITIONS" in decreased.stderr
    assert "keys move" not in decreased.stderr, "there is nothing to warn of in what is refused"
    (described,) = as_json(millbeck("topic", "describe", "life", "-o", "json"))
    assert described["configs"] == {"retention.ms": "1000"}, "what is refused changes nothing"
    assert "did you mean retention.ms" in refused("topic", "alter", "life", "-c", "retenton.ms=1")
    altered = run("topic", "alter", "life", "-p", "3", "--delete-config", "retention.ms")
    assert (altered.exit_code, altered.stdout) == (0, "changed life\n")
    assert "changes which partition a key maps to" in altered.stderr
    described_now = millbeck("topic", "describe", "life")
    assert re.search(r"^Topic: life\t.*PartitionCount: 3\t.*Configs: $", described_now, re.MULTILINE)
    assert re.search(r"^\tTopic: life\tPartition: 2\tLeader: 1\t", described_now, re.MULTILINE)
    assert "life" in millbeck("topic", "--list").splitlines(), "names alone, as Kafka's tool prints them"
    assert millbeck("topic", "delete", "li.e") == "deleted life\n"
    assert "there is no topic life" in refused("topic", "delete", "life")
    assert millbeck("topic", "delete", "life", "--if-exists") == ""


def test_records_go_in_and_come_out(millbeck: Millbeck, refused: Millbeck) -> None:
    millbeck("topic", "create", "records", "-p", "2")
    millbeck("produce", "records", "-K", ":", "-H", "from=shell", "-z", "zstd", stdin="a:1\nb:2\na:3\n")
    lines = millbeck("consume", "records", "--from-beginning", "-e", "-f", "%k=%s %h\\n").splitlines()
    assert sorted(lines) == ["a=1 from=shell", "a=3 from=shell", "b=2 from=shell"]
    assert lines.index("a=1 from=shell") < lines.index("a=3 from=shell")
    shown = [as_json(line) for line in millbeck("consume", "records", "--offset", "0", "-e", "-J").splitlines()]
    assert {(each["key"], each["value"]) for each in shown} == {("a", "1"), ("b", "2"), ("a", "3")}
    printed = millbeck(
        "consume", "--topic", "records", "--from-beginning", "--max-messages", "3", "--property", "print.key=true"
    )
    assert sorted(printed.splitlines()) == ["a\t1", "a\t3", "b\t2"]
    assert millbeck("consume", "records", "--timeout-ms", "100") == ""
    assert "there is no topic nowhere" in refused("consume", "nowhere", "-e")
    assert "has 2 partitions" in refused("produce", "records", "-p", "9", stdin="x\n")


def test_all_groups_are_described_whatever_their_protocol(run: Callable[..., Result], millbeck: Millbeck) -> None:
    millbeck("topic", "create", "mixed")
    millbeck("produce", "mixed", stdin="1\n2\n")
    millbeck("config", "alter", "--group", "mixed-jobs", "--add-config", "share.auto.offset.reset=earliest")
    millbeck("consume", "mixed", "--group", "mixed-jobs", "--share", "-c", "2")
    for protocol in ("classic", "consumer"):
        settings = ("-X", f"group.protocol={protocol}")
        millbeck("consume", "mixed", "--group", f"mixed-{protocol}", "--from-beginning", "-c", "2", *settings)
    for flags in ((), ("--offsets",), ("--state",), ("--state", "--verbose")):
        done = run("group", "--describe", "--all-groups", *flags, "--output", "json")
        assert done.exit_code == 0, done.stderr
        assert {row["group"] for row in as_json(done.stdout)} >= {"mixed-jobs", "mixed-classic", "mixed-consumer"}
    assert run("group", "--describe", "--all-groups", "--members").exit_code == 0
    named = run("group", "describe", "mixed-jobs", "mixed-classic", "nobody")
    assert named.exit_code == 1
    assert ("mixed-jobs" in named.stdout, "mixed-classic" in named.stdout) == (True, True)
    assert "nobody: " in named.stderr


def test_a_groups_life(run: Callable[..., Result], millbeck: Millbeck, refused: Millbeck) -> None:
    millbeck("topic", "create", "grouped")
    millbeck("produce", "grouped", stdin="".join(f"{number}\n" for number in range(10)))
    assert len(millbeck("consume", "grouped", "--group", "life", "--from-beginning", "-c", "4").splitlines()) == 4
    (row,) = as_json(millbeck("group", "describe", "life", "-o", "json"))
    assert (row["current_offset"], row["log_end_offset"], row["lag"]) == (4, 10, 6)
    (row,) = as_json(millbeck("group", "reset", "life", "--topic", "grouped", "--shift-by", "-3", "-o", "json"))
    assert (row["current_offset"], row["new_offset"]) == (4, 1)
    (row,) = as_json(millbeck("group", "describe", "life", "-o", "json"))
    assert row["current_offset"] == 4, "a plan changes nothing"
    millbeck("group", "reset", "life", "--topic", "grouped", "--to-offset", "8", "--execute")
    clamped = run("group", "reset", "life", "--topic", "grouped", "--to-offset", "99")
    assert "grouped-0: offset 99 is beyond the end, using 10 instead\n" in clamped.stderr
    assert "no group lief, did you mean life?" in refused(
        "group", "reset", "lief", "--topic", "grouped", "--to-offset", "1", "--execute"
    )
    millbeck("group", "--reset-offsets", "--group", "fresh", "--topic", "grouped", "--to-offset", "1", "--execute")
    millbeck("group", "reset", "newer", "--create", "--topic", "grouped", "--to-earliest", "--execute")
    assert {"fresh", "life", "newer"} <= set(millbeck("group", "--list").splitlines())
    for filters in (["--state"], ["--state", "--type"], ["--type", "--state", "Empty"]):
        assert re.search(r"^life +Empty +classic", millbeck("group", "--list", *filters), re.M)
    assert millbeck("consume", "grouped", "--group", "life", "-e") == "8\n9\n"
    (row,) = as_json(millbeck("group", "describe", "--group", "life", "--state", "-o", "json"))
    assert (row["state"], row["members"]) == ("Empty", 0)
    assert re.search(r"^GROUP +COORDINATOR \(ID\) .*#MEMBERS$", millbeck("group", "describe", "life", "--state"), re.M)
    assert "life" in millbeck("group", "list")
    assert "has no committed offsets for other" in refused("group", "delete-offsets", "life", "--topic", "other")
    assert millbeck("group", "delete", "life") == "deleted life\n"
    assert "GROUP_ID_NOT_FOUND" in refused("group", "describe", "life")


def test_settings(millbeck: Millbeck, refused: Millbeck) -> None:
    millbeck("topic", "create", "configured")
    # What a new cluster sets for all brokers, and nothing else.
    assert millbeck("config", "describe", "--topic", "configured").splitlines()[2:] == [
        "min.insync.replicas  1      all brokers"
    ]
    millbeck("config", "alter", "--topic", "configured", "--add-config", "retention.ms=5,max.message.bytes=99")
    (shown,) = as_json(
        millbeck("config", "--describe", "--entity-type", "topics", "--entity-name", "configured", "-o", "json")
    )
    assert {each["name"]: each["value"] for each in shown["configs"]} == {
        "retention.ms": "5",
        "max.message.bytes": "99",
        "min.insync.replicas": "1",
    }
    assert "INVALID_CONFIG" in refused("config", "alter", "--topic", "configured", "--add-config", "cats=1")
    millbeck("config", "alter", "--broker-defaults", "--add-config", "max.connections=500")
    assert "500" in millbeck("config", "describe", "--broker", "1")
    assert "broker 99 does not exist; the brokers are 1" in refused("config", "describe", "--broker", "99")
    millbeck("config", "alter", "--broker-defaults", "--delete-config", "max.connections")
    millbeck("config", "alter", "--group", "configured", "--add-config", "consumer.session.timeout.ms=50000")
    assert "50000" in millbeck("config", "describe", "--group", "configured")


def test_the_node_and_its_files(millbeck: Millbeck, node: Broker) -> None:
    millbeck("topic", "create", "filed")
    millbeck("produce", "filed", stdin="hello\n")
    (directory,) = as_json(millbeck("log-dirs", "-o", "json"))
    assert directory["state"] == "ok"
    assert "leader id" in millbeck("quorum", "describe")
    (replica,) = as_json(millbeck("quorum", "--describe", "--replication", "-o", "json"))
    assert (replica["node"], replica["status"]) == (1, "leader")
    log = node.directory / "filed-0" / "00000000000000000000.log"
    assert "payload: hello" in millbeck("dump-log", str(log), "--print-data-log")
    metadata = node.directory / "__cluster_metadata-0" / "00000000000000000000.log"
    dumped = millbeck("dump-log", "--cluster-metadata-decoder", "--files", str(metadata))
    assert '"type":"TOPIC_RECORD"' in dumped
    assert '"name":"filed"' in dumped
    port = node.bootstrap.rpartition(":")[2]
    report = as_json(
        millbeck("doctor", "--data", str(node.directory), "--port", port, "--metrics-port", "0", "-o", "json")
    )
    assert millbeck("doctor", "--ready").startswith("ready: cluster ")
    details = {each["subject"]: each["detail"] for each in report}
    assert details[f"port {port}"].startswith(f"in use by the node that runs on {node.directory}")
    assert "in use by a running node" in details[f"data {node.directory}"]
    assert "reachable" in details[f"broker 1 at {node.bootstrap}"]


def test_output_that_nobody_reads_ends_a_command_without_a_word(node: Broker, millbeck: Millbeck) -> None:
    millbeck("topic", "create", "piped")
    millbeck("produce", "piped", stdin="".join(f"{number}\n" for number in range(20_000)))
    log = node.directory / "piped-0" / "00000000000000000000.log"
    for arguments in (("dump-log", str(log), "--print-data-log"), ("consume", "piped", "--from-beginning")):
        process = start(*arguments, MILLBECK_BOOTSTRAP=node.bootstrap)
        assert process.stdout is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.wait(30) == 141
        assert process.stderr is not None
        assert process.stderr.read() == ""
        process.stderr.close()


@pytest.mark.parametrize("member", [(), ("--group", "waiting", "--share")], ids=["alone", "in a share group"])
def test_a_consumer_that_waits_ends_when_nobody_reads_its_output(
    node: Broker, millbeck: Millbeck, member: tuple[str, ...]
) -> None:
    millbeck("topic", "create", f"awaited-{len(member)}")
    process = start("consume", f"awaited-{len(member)}", *member, MILLBECK_BOOTSTRAP=node.bootstrap)
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(30) == 141
    assert process.stderr is not None
    assert process.stderr.read() == ""
    process.stderr.close()


def test_names_in_the_cluster_are_completed(node: Broker, millbeck: Millbeck) -> None:
    millbeck("topic", "create", "completed-a", "completed-b")
    variables = {"_MILLBECK_COMPLETE": "bash_complete", "MILLBECK_BOOTSTRAP": node.bootstrap}
    for line, expected in (
        ("millbeck topic describe completed-", {"plain,completed-a", "plain,completed-b"}),
        (
            "millbeck consume -t completed-a,completed-",
            {"plain,completed-a,completed-a", "plain,completed-a,completed-b"},
        ),
        ("millbeck config describe --broker ", {"plain,1"}),
    ):
        process = start(COMP_WORDS=line, COMP_CWORD=str(line.count(" ")), **variables)
        output, errors = process.communicate(timeout=30)
        assert (set(output.split()), errors) == (expected, "")


def test_measuring(millbeck: Millbeck) -> None:
    millbeck("topic", "create", "measured")
    result = as_json(millbeck("perf", "produce", "-t", "measured", "-n", "500", "-s", "50", "-o", "json"))
    assert result["records"] == 500
    result = as_json(millbeck("perf", "consume", "measured", "-o", "json"))
    assert result["records"] == 500


@pytest.mark.parametrize(
    "arguments", [("perf", "produce", "-n", "999999999", "-s", "10"), ("perf", "consume", "-n", "999999999")]
)
def test_measuring_that_is_interrupted_shows_what_was_measured(
    node: Broker, millbeck: Millbeck, arguments: tuple[str, ...]
) -> None:
    name = f"interrupted-{arguments[1]}"
    millbeck("topic", "create", name)
    millbeck("produce", name, stdin="one\n")
    process = start(*arguments, name, "-o", "json", MILLBECK_BOOTSTRAP=node.bootstrap)
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert as_json(output)["records"] >= 1
    assert errors.strip() == ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_producer_that_waits_for_a_line_can_be_interrupted(
    node: Broker, millbeck: Millbeck, number: signal.Signals
) -> None:
    name = f"typed-{number}"
    millbeck("topic", "create", name)
    producer = start("produce", name, "--verbose", MILLBECK_BOOTSTRAP=node.bootstrap)
    assert producer.stdin is not None
    assert producer.stderr is not None
    producer.stdin.write("one\n")
    producer.stdin.flush()
    assert producer.stderr.readline() == f"{name}-0 at offset 0\n"
    producer.send_signal(number)
    assert producer.wait(10) == 130
    assert producer.stderr.read().strip() == ""
    producer.communicate()
    assert millbeck("consume", name, "--from-beginning", "-e") == "one\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_consumer_that_is_interrupted_commits(node: Broker, millbeck: Millbeck, number: signal.Signals) -> None:
    name = f"interrupted-{number}"
    millbeck("topic", "create", name)
    millbeck("produce", name, stdin="one\n")
    consumer = start("consume", name, "--group", name, "--from-beginning", MILLBECK_BOOTSTRAP=node.bootstrap)
    assert consumer.stdout is not None
    assert consumer.stdout.readline() == "one\n"
    consumer.send_signal(number)
    consumer.communicate(timeout=30)
    assert consumer.returncode == 0
    (row,) = as_json(millbeck("group", "describe", name, "-o", "json"))
    assert (row["current_offset"], row["lag"]) == (1, 0)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_up_prints_its_screen_and_ends_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    process = start("up", "--data", str(tmp_path / "logs"), "--port", "0")
    assert process.stdout is not None
    lines = iter(process.stdout.readline, "")
    address = next(line.split()[1] for line in lines if "bootstrap  " in line)
    assert not address.endswith(":0")
    assert any("Ctrl-C stops it" in line for line in lines)
    process.send_signal(number)
    _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (0, "")
    assert (tmp_path / "logs" / ".kafka_cleanshutdown").is_file()


def test_a_server_prints_its_addresses(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text(f"log.dirs={tmp_path}/logs\nlisteners=PLAINTEXT://127.0.0.1:0\nmetrics.http.port=0\n")
    formatting = start("storage", "format", "--config", str(path), "--standalone")
    assert formatting.wait(30) == 0
    server = start("server", "--config", str(path))
    assert server.stdout is not None
    assert re.fullmatch(r"listening on PLAINTEXT://127\.0\.0\.1:[1-9]\d*\n", server.stdout.readline())
    assert re.fullmatch(r"metrics on http://127\.0\.0\.1:[1-9]\d*/metrics\n", server.stdout.readline())
    server.send_signal(signal.SIGTERM)
    assert server.wait(30) == 0
    for process in (formatting, server):
        process.communicate()


def test_a_compacted_topic_is_described_with_its_dirty_ratio(millbeck: Millbeck) -> None:
    millbeck("topic", "create", "table", "--config", "cleanup.policy=compact")
    (described,) = as_json(millbeck("topic", "describe", "table", "-o", "json"))
    assert [each["dirty_ratio"] for each in described["partitions"]] == [0.0]
    assert re.search(r"\tDirtyRatio: 0.00$", millbeck("topic", "describe", "table"), re.MULTILINE)


def test_records_of_a_topic_are_tried_on_a_connectors_transforms(
    millbeck: Millbeck, run: Callable[..., Result], tmp_path: Path
) -> None:
    connector = {
        "connector.class": "FileStreamSink",
        "topics": "tried",
        "value.converter": "String",
        "transforms": "offset",
        "transforms.offset.type": "TimestampRouter",
        "transforms.offset.topic.format": "new-${topic}",
    }
    path = tmp_path / "sink.json"
    path.write_text(json.dumps({"name": "tried", "config": connector}))
    assert "there is no topic tried" in run("connect", "try", str(path)).stderr
    millbeck("topic", "create", "tried", "--partitions", "2")
    millbeck("produce", "tried", stdin="one\ntwo\nthree\n")
    shown = json.loads(millbeck("connect", "try", str(path), "-n", "2", "-o", "json"))
    assert [record["stages"][-1]["record"]["topic"] for record in shown] == ["new-tried", "new-tried"]
    assert len({record["record"] for record in shown}) == 2


def test_dead_letters_are_sent_back_once(millbeck: Millbeck, run: Callable[..., Result], node: Broker) -> None:
    from millbeck.client.sync import Consumer, Producer

    for topic in ("paid", "dead"):
        millbeck("topic", "create", topic, "--partitions", "2")

    def letter(number: int, stage: str) -> list[tuple[str, bytes | None]]:
        told = {"topic": "paid", "partition": "1", "offset": str(number), "stage": stage}
        return [("own", b"x"), *((f"__connect.errors.{name}", text.encode()) for name, text in told.items())]

    with Producer({"bootstrap.servers": node.bootstrap}) as producer:
        for number in range(6):
            stage = "TASK_PUT" if number in (1, 4) else "VALUE_CONVERTER"
            producer.send(
                "dead", f"v{number}".encode(), b"k", partition=0, timestamp=1000 + number, headers=letter(number, stage)
            )

    def shown(*more: str) -> list[tuple[str, str]]:
        rows = json.loads(millbeck("connect", "dlq", "show", "sink", "--topic", "dead", "-o", "json", *more))
        return [(row["offset"], row["redriven"]) for row in rows]

    redrive = ("connect", "dlq", "redrive", "sink", "--topic", "dead")
    assert shown("--where", "stage=TASK_PUT") == [("1", "no"), ("4", "no")]
    assert millbeck(*redrive, "--dry-run") == "6 letters would be sent back\n"
    assert millbeck(*redrive, "--where", "stage=TASK_PUT") == "2 letters are sent back\n"
    assert millbeck(*redrive, "--where", "stage=TASK_PUT") == "0 letters are sent back\n"
    assert [done for _, done in shown()] == ["no", "yes", "no", "no", "yes", "no"]
    assert millbeck(*redrive) == "4 letters are sent back\n"
    assert millbeck(*redrive) == "0 letters are sent back\n"
    assert {done for _, done in shown()} == {"yes"}
    settings = {
        "bootstrap.servers": node.bootstrap,
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
    }
    with Consumer(settings) as consumer:
        places = [TopicPartition("paid", 0), TopicPartition("paid", 1)]
        consumer.assign(places)
        consumer.seek_to_beginning(*places)
        found = [record for _ in range(3) for records in consumer.poll(timeout_s=1).values() for record in records]
    assert [record.value for record in found] == [b"v1", b"v4", b"v0", b"v2", b"v3", b"v5"]
    assert {(record.key, tuple(record.headers)) for record in found} == {(b"k", (("own", b"x"),))}
    assert [record.timestamp for record in found] == [1001, 1004, 1000, 1002, 1003, 1005]
    assert "there is no topic gone" in run(*redrive[:-1], "gone").stderr
    assert "FIELD=TEXT" in run(*redrive, "--where", "colour=red").stderr


def test_an_interrupted_redrive_goes_on_where_it_stopped(
    millbeck: Millbeck, run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    from millbeck.cli.connectors import dead_letters
    from millbeck.client.producer import Producer
    from millbeck.kernel.errors import NotLeaderOrFollower

    for topic in ("late", "retry"):
        millbeck("topic", "create", topic)
    millbeck("produce", "late", stdin="0\n1\n2\n3\n4\n")
    redrive = ("connect", "dlq", "redrive", "s", "--topic", "late")
    assert "late-0@0 does not say where it came from" in run(*redrive).stderr
    monkeypatch.setattr(dead_letters, "BATCH", 2)
    commit = Producer.commit_transaction
    commits: list[str] = []

    async def fail_once(producer: Any, timeout_s: float | None = None) -> None:
        commits.append("commit")
        if len(commits) == 2:
            raise NotLeaderOrFollower
        await commit(producer, timeout_s)

    monkeypatch.setattr(Producer, "commit_transaction", fail_once)
    assert run(*redrive, "--to", "retry").exit_code == 1
    assert millbeck(*redrive, "--to", "retry") == "3 letters are sent back\n"
    found = millbeck("consume", "retry", "--isolation-level", "read_committed", "-e", "--from-beginning")
    assert found.split() == ["0", "1", "2", "3", "4"]
