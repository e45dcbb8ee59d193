from __future__ import annotations

from pathlib import Path

import click
import pytest

from millbeck import __version__
from millbeck.cli.kafka_tools.running import KAFKA_RELEASE, main, translated
from millbeck.cli.kafka_tools.tools import TOOLS

SERVER = ("--bootstrap-server", "b:1")
TRANSLATED = {
    "a verb as a flag stays": ("kafka-topics", (*SERVER, "--list"), ("topic", *SERVER, "--list")),
    "a renamed flag": (
        "kafka-leader-election",
        (*SERVER, "--election-type", "preferred", "--all-topic-partitions", "--admin.config", "f"),
        ("elect-leaders", *SERVER, "--election-type", "preferred", "--all-topic-partitions", "--command-config", "f"),
    ),
    "a renamed flag with its value inside": (
        "kafka-cluster",
        ("cluster-id", *SERVER, "--config=f"),
        ("cluster", "cluster-id", *SERVER, "--command-config=f"),
    ),
    "a flag that is a setting": (
        "kafka-console-producer",
        (*SERVER, "--topic", "t", "--timeout", "5", "--batch-size=9"),
        ("produce", *SERVER, "--topic", "t", "--command-property", "linger.ms=5", "--command-property", "batch.size=9"),
    ),
    "several values after one flag": (
        "kafka-producer-perf-test",
        (
            "--producer-props",
            "a=1",
            "b=2",
            "--topic",
            "t",
            "--num-records",
            "1",
            "--throughput",
            "1",
            "--record-size",
            "1",
        ),
        (
            *("perf", "produce", "--command-property", "a=1", "--command-property", "b=2"),
            *("--topic", "t", "--num-records", "1", "--throughput", "1", "--record-size", "1"),
        ),
    ),
    "flags without effect are left out": (
        "kafka-consumer-groups",
        (*SERVER, "--timeout", "5000", "--list"),
        ("group", *SERVER, "--list"),
    ),
    "another command": (
        "kafka-transactions",
        (*SERVER, "forceTerminateTransaction", "--transactionalId", "x"),
        ("txn", "terminate", *SERVER, "--transactional-id", "x"),
    ),
    "no broker where none is asked": (
        "kafka-features",
        ("version-mapping",),
        ("feature", "version-mapping"),
    ),
    "a flag that is another command": (
        "kafka-consumer-groups",
        ("--validate-regex", "a.*"),
        ("group", "validate-regex", "a.*"),
    ),
    "a default of Kafka's": (
        "kafka-console-share-consumer",
        (*SERVER, "--topic", "t", "--max-messages", "3"),
        (
            *("consume", *SERVER, "--topic", "t", "--max-messages", "3"),
            *("--group", "console-share-consumer", "--share", "--quiet"),
        ),
    ),
    "the default is not used": (
        "kafka-console-share-consumer",
        (*SERVER, "--topic", "t", "--group=jobs"),
        ("consume", *SERVER, "--topic", "t", "--group=jobs", "--share", "--quiet"),
    ),
    "a flag that is a value of another": (
        "kafka-groups",
        (*SERVER, "--list", "--share"),
        ("group", *SERVER, "--list", "--type=share"),
    ),
    "words of its own": (
        "kafka-console-consumer",
        (*SERVER, "--topic", "t"),
        ("consume", *SERVER, "--topic", "t", "--quiet"),
    ),
}
REFUSED = {
    "no server": ("kafka-topics", ("--list",), "--bootstrap-server is needed"),
    "no file": ("kafka-delete-records", SERVER, "--offset-json-file is needed"),
    "either server": ("kafka-acls", ("--list",), "--bootstrap-server or --bootstrap-controller is needed"),
    "no action": ("kafka-configs", SERVER, "exactly one of --describe, --alter"),
    "what an action needs": (
        "kafka-delegation-tokens",
        (*SERVER, "--command-config", "f", "--renew", "--hmac", "aGk="),
        "--renew needs --renew-time-period",
    ),
    "flags for one at a time": (
        "kafka-groups",
        (*SERVER, "--list", "--share", "--streams"),
        "--share cannot be combined with --streams",
    ),
    "two actions": ("kafka-topics", (*SERVER, "--list", "--describe"), "exactly one of --list, --describe"),
    "not supported": (
        "kafka-acls",
        ("--bootstrap-controller", "c:1", "--list"),
        "use --bootstrap-server: brokers forward",
    ),
    "a daemon": ("kafka-server-start", ("-daemon", "server.properties"), "run it as a service"),
    "a value is missing": ("kafka-console-producer", (*SERVER, "--topic", "t", "--timeout"), "--timeout needs a value"),
}


@pytest.mark.parametrize(("tool", "given", "expected"), TRANSLATED.values(), ids=TRANSLATED.keys())
def test_a_command_line_is_translated(tool: str, given: tuple[str, ...], expected: tuple[str, ...]) -> None:
    assert translated(TOOLS[tool], given) == list(expected)


@pytest.mark.parametrize(("tool", "given", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_kafka_refuses_is_refused(tool: str, given: tuple[str, ...], message: str) -> None:
    with pytest.raises(click.UsageError, match=message):
        translated(TOOLS[tool], given)


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(words[0], words[1:])
    shown = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, shown.out, shown.err


@pytest.mark.parametrize("name", TOOLS)
def test_help_ends_as_kafkas_does(capsys: pytest.CaptureFixture[str], name: str) -> None:
    code, out, err = run(capsys, name, "--help")
    assert code == (0 if name in ("kafka-features", "kafka-metadata-quorum", "kafka-storage") else 1)
    assert "Usage:" in out
    assert f"{name} runs millbeck" in out + err


def test_the_version_begins_with_that_of_kafka(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "kafka-topics.sh", "--version") == (0, f"{KAFKA_RELEASE} (millbeck {__version__})\n", "")


def test_an_error_is_one_line_in_the_name_of_the_tool(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "kafka-topics.sh", "--create", "--bootstrap-server", "127.0.0.1:1")
    assert (code, out) == (1, "")
    assert err == "kafka-topics: no topic given (see kafka-topics --help)\n"


def test_groups_fail_with_exit_code_zero_as_kafkas_tool_does(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "kafka-consumer-groups", "--list", "--bootstrap-server", "127.0.0.1:1")
    assert code == 0
    assert err.startswith("kafka-consumer-groups: no broker reached at 127.0.0.1:1")
    assert run(capsys, "kafka-consumer-groups", "--list", "--bootstrap-server", "127.0.0.1:1", "--nonsense")[0] == 1


def test_brokers_of_the_environment_are_not_asked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MILLBECK_BOOTSTRAP", "127.0.0.1:2")
    words = ("--topic", "t", "--num-records", "1", "--throughput", "-1", "--record-size", "1")
    _, _, err = run(capsys, "kafka-producer-perf-test", *words, "--producer-props", "bootstrap.servers=127.0.0.1:1")
    assert "no broker reached at 127.0.0.1:1" in err


def test_a_directory_is_formatted_in_kafkas_words(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text(
        "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
        "controller.quorum.voters=1@127.0.0.1:19093\n"
        f"listeners=PLAINTEXT://127.0.0.1:19092,CONTROLLER://127.0.0.1:19093\nlog.dirs={tmp_path}/logs\n"
    )
    words = ("format", "-t", "bWlsbGJlY2staW50ZXJvcA", "-c", str(path))
    code, out, _ = run(capsys, "kafka-storage", *words)
    assert (code, out) == (0, f"Formatting metadata directory {tmp_path}/logs with metadata.version 4.3-IV0.\n")
    code, out, err = run(capsys, "kafka-storage", *words)
    assert (code, out) == (1, "")
    assert "already formatted" in err
    code, out, _ = run(capsys, "kafka-storage", *words, "--ignore-formatted")
    assert (code, out) == (0, "All of the log directories are already formatted.\n")
    code, out, _ = run(capsys, "kafka-storage", "info", "-c", str(path))
    assert (code, out.splitlines()[:2]) == (0, ["Found log directory:", f"  {tmp_path}/logs"])
    assert "Found metadata: {cluster.id=bWlsbGJlY2staW50ZXJvcA, directory.id=" in out
