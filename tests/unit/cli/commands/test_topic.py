from __future__ import annotations

from collections.abc import Callable

import click
import pytest

from millbeck.cli.commands.topic import matching, parse_assignment, raise_failures, settings_of
from millbeck.cli.output import TABLE
from millbeck.cli.topics.description import described_lines, is_kept, show_topics
from millbeck.client.admin.results import PartitionDescription
from millbeck.kernel.errors import InvalidTopic, TopicAlreadyExists

NAMES = ["orders", "orders.eu", "ordersXeu", "payments"]


def test_a_name_given_exactly_is_no_expression() -> None:
    assert matching(NAMES, ["orders.eu"]) == ["orders.eu"]


def test_an_expression_matches_whole_names() -> None:
    assert matching(NAMES, ["orders.+"]) == ["orders.eu", "ordersXeu"]
    assert matching(NAMES, ["orders|pay.*", "orders"]) == ["orders", "payments"]
    assert matching(NAMES, ["orders,payments"]) == ["orders", "payments"]


def test_what_matches_nothing_is_an_error_unless_that_is_fine() -> None:
    with pytest.raises(click.ClickException, match=r"there is no topic order, did you mean orders\?$"):
        matching(NAMES, ["order"])
    assert matching(NAMES, ["order"], missing_is_fine=True) == []
    with pytest.raises(click.ClickException, match="regular expression"):
        matching(NAMES, ["("])


def test_a_description_is_in_the_words_of_kafkas_tool(capsys: pytest.CaptureFixture[str]) -> None:
    shown = {
        "partition": 0,
        "leader": 1,
        "epoch": 3,
        "replicas": [1, 2],
        "isr": [1],
        "elr": [],
        "last_known_elr": None,
        "offline": [],
    }
    topic = {
        "name": "orders",
        "id": "abc",
        "partition_count": 1,
        "replication_factor": 2,
        "configs": {"retention.ms": "5", "segment.bytes": "9"},
        "partitions": [shown, {**shown, "partition": 1, "leader": None}],
    }
    assert described_lines(topic) == [
        "Topic: orders\tTopicId: abc\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: retention.ms=5,segment.bytes=9",
        "\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1\tElr: \tLastKnownElr: N/A",
        "\tTopic: orders\tPartition: 1\tLeader: none\tReplicas: 1,2\tIsr: 1\tElr: \tLastKnownElr: N/A",
    ]
    show_topics([topic], TABLE, with_heads=True)
    assert len(capsys.readouterr().out.splitlines()) == 3
    show_topics([topic], TABLE, with_heads=False)
    assert all("\tPartition: " in line for line in capsys.readouterr().out.splitlines())


def test_compacted_partitions_are_shown_with_their_dirty_ratio_where_it_is_known() -> None:
    shown = {"partition": 0, "leader": 1, "replicas": [1], "isr": [1], "elr": [], "last_known_elr": [], "offline": []}
    topic = {"name": "t", "id": "abc", "partition_count": 3, "replication_factor": 1, "configs": {}}
    lines = described_lines({**topic, "partitions": [{**shown, "dirty_ratio": ratio} for ratio in (0.456, 0, None)]})
    assert [line.split("\t")[-1] for line in lines[1:]] == ["DirtyRatio: 0.46", "DirtyRatio: 0.00", "DirtyRatio: -"]
    assert "DirtyRatio" not in described_lines({**topic, "partitions": [shown]})[1]


def test_offline_replicas_are_named() -> None:
    shown = {"partition": 0, "leader": None, "replicas": [1, 2], "isr": [1], "elr": [], "last_known_elr": []}
    topic = {"name": "t", "id": "abc", "partition_count": 2, "replication_factor": 2, "configs": {}}
    _, line, sound = described_lines({**topic, "partitions": [{**shown, "offline": [1, 2]}, {**shown, "offline": []}]})
    assert line.endswith("\tOffline: 1,2")
    assert "Offline" not in sound


def test_an_assignment_names_brokers_by_partition() -> None:
    assert parse_assignment("1:2,2:3,3") == [[1, 2], [2, 3], [3]]
    with pytest.raises(click.UsageError, match="broker:broker"):
        parse_assignment("1:x")


def test_settings_are_pairs() -> None:
    assert settings_of(["a=1", "b=x=y"], "--config") == {"a": "1", "b": "x=y"}
    with pytest.raises(click.UsageError, match="--config: expected key=value"):
        settings_of(["a"], "--config")


def partition(
    *, leader: int = 1, in_sync: tuple[int, ...] = (1, 2), replicas: tuple[int, ...] = (1, 2)
) -> PartitionDescription:
    return PartitionDescription(
        partition=0, leader_id=leader, leader_epoch=0, replicas=replicas, in_sync=in_sync, offline=()
    )


FILTERS = {
    "under replicated": ("under_replicated_partitions", partition(in_sync=(1,)), partition()),
    "unavailable": ("unavailable_partitions", partition(leader=-1), partition()),
    "under min isr": ("under_min_isr_partitions", partition(in_sync=(1,)), partition()),
    "at min isr": ("at_min_isr_partitions", partition(), partition(in_sync=(1,))),
}


@pytest.mark.parametrize(("name", "kept", "dropped"), FILTERS.values(), ids=FILTERS.keys())
def test_filters_of_describe(name: str, kept: PartitionDescription, dropped: PartitionDescription) -> None:
    assert is_kept(kept, [name], min_isr=2)
    assert not is_kept(dropped, [name], min_isr=2)


def test_all_that_failed_is_named() -> None:
    with pytest.raises(click.ClickException, match=r"a: .*TOPIC_ALREADY_EXISTS.*; b: .*INVALID_TOPIC"):
        raise_failures({"a": TopicAlreadyExists(), "b": InvalidTopic()})
    raise_failures({})
    with pytest.raises(click.ClickException, match=r"did you mean retention.ms instead of retetion.ms\?"):
        raise_failures({"a": InvalidTopic()}, settings=["retetion.ms"])


USAGE = {
    "create without a name": (("topic", "create"), "no topic given"),
    "create with both": (
        ("topic", "create", "x", "--partitions", "2", "--replica-assignment", "1,1"),
        "cannot be combined with --partitions",
    ),
    "no partitions": (("topic", "create", "x", "--partitions", "0"), "not in the range"),
    "alter nothing": (("topic", "alter", "x"), "nothing to change"),
    "alter nobody": (("topic", "alter", "--partitions", "3"), "no topic given"),
    "delete nobody": (("topic", "--delete"), "no topic given"),
}


@pytest.mark.parametrize(("arguments", "message"), USAGE.values(), ids=USAGE.keys())
def test_usage(fails: Callable[..., str], arguments: tuple[str, ...], message: str) -> None:
    assert message in fails(*arguments)
