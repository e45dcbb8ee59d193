from __future__ import annotations

from typing import Any

import pytest

from millbeck.kernel.ids import ZERO_UUID, TopicPartition, uuid_text
from millbeck.storage.partition_directory import (
    DirectoryKind,
    directory_name,
    encode_metadata,
    parse_name,
    read_metadata,
    renamed,
)

TOPIC_ID = bytes(range(1, 17))
KEY = TopicPartition("my-topic.v1_x", 12)


def test_a_log_is_named_by_topic_and_partition() -> None:
    assert directory_name(KEY) == "my-topic.v1_x-12"
    parsed = parse_name("my-topic.v1_x-12")
    assert parsed is not None
    assert (parsed.topic_partition, parsed.kind) == (KEY, DirectoryKind.LOG)


@pytest.mark.parametrize("topic", ["../x", "a/b", "", ".", "..", "a b", "x" * 250, "a\n", "ü", "\0"])
def test_names_that_could_lead_elsewhere_are_refused(topic: str) -> None:
    with pytest.raises(ValueError, match="not a valid directory name"):
        directory_name(TopicPartition(topic, 0))
    assert parse_name(f"{topic}-0") is None


def test_negative_partitions_are_refused() -> None:
    with pytest.raises(ValueError, match="not a valid directory name"):
        directory_name(TopicPartition("t", -1))


@pytest.mark.parametrize("kind", [DirectoryKind.DELETED, DirectoryKind.STRAY, DirectoryKind.FUTURE])
def test_directories_that_are_no_longer_logs(kind: DirectoryKind) -> None:
    name = renamed(KEY, kind, TOPIC_ID)
    assert name == f"my-topic.v1_x-12.{TOPIC_ID.hex()}{kind.value}"
    parsed = parse_name(name)
    assert parsed is not None
    assert (parsed.topic_partition, parsed.kind) == (KEY, kind)


def test_a_long_topic_is_shortened_to_what_a_file_system_takes() -> None:
    name = renamed(TopicPartition("t" * 249, 1000), DirectoryKind.DELETED, TOPIC_ID)
    assert len(name) == 255
    parsed = parse_name(name)
    assert parsed is not None
    assert parsed.kind is DirectoryKind.DELETED


@pytest.mark.parametrize(
    "name", ["lost+found", "topic", "topic-x", "-1", "meta.properties", "topic-1-", "t-99999999999"]
)
def test_other_names_are_none_of_ours(name: str) -> None:
    assert parse_name(name) is None


def test_metadata_holds_the_topic_id() -> None:
    assert encode_metadata(TOPIC_ID) == f"version: 0\ntopic_id: {uuid_text(TOPIC_ID)}".encode()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (f"version: 0\ntopic_id: {uuid_text(TOPIC_ID)}\n", TOPIC_ID),
        (f"version: 9\ntopic_id: {uuid_text(TOPIC_ID)}", ZERO_UUID),
        ("version: 0\ntopic_id: nonsense", ZERO_UUID),
        ("", ZERO_UUID),
        ("topic_id", ZERO_UUID),
    ],
)
def test_damaged_metadata_is_no_topic(world: Any, content: str, expected: bytes) -> None:
    assert world.log.end_offset == 0
    world.write_file("partition.metadata", content.encode())
    assert read_metadata(world.files, world.path) == expected
    assert read_metadata(world.files, "/data") == ZERO_UUID
