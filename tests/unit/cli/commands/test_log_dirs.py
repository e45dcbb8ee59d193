from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import click
import pytest

from millbeck.cli.commands.log_dirs import describe, directory_rows, offline_lines, partition_rows
from millbeck.client.admin.outcomes import Outcomes
from millbeck.client.admin.results import LogDirDescription, LogReplica
from millbeck.kernel.errors import KafkaStorageError
from millbeck.kernel.ids import TopicPartition
from millbeck.kernel.units import MIB


def replica(topic: str, partition: int, size_bytes: int) -> LogReplica:
    return LogReplica(partition=TopicPartition(topic, partition), size_bytes=size_bytes, offset_lag=0, is_future=False)


DIRECTORY = LogDirDescription(
    path="data",
    error=None,
    total_bytes=1000 * MIB,
    usable_bytes=400 * MIB,
    is_cordoned=False,
    replicas=(replica("orders", 1, 20), replica("orders", 0, 10), replica("payments", 0, 5)),
)


def test_a_directory_is_summed_up() -> None:
    (row,) = directory_rows(1, (DIRECTORY,), None)
    assert (row["state"], row["partitions"], row["size_bytes"], row["free_bytes"]) == ("ok", 3, 35, 400 * MIB)


def test_only_the_topics_asked_for_count() -> None:
    (row,) = directory_rows(1, (DIRECTORY,), {"orders"})
    assert (row["partitions"], row["size_bytes"]) == (2, 30)


def test_partitions_are_in_order() -> None:
    rows = partition_rows(1, (DIRECTORY,), None)
    assert [(row["topic"], row["partition"]) for row in rows] == [("orders", 0), ("orders", 1), ("payments", 0)]


def test_a_directory_that_failed_says_so() -> None:
    failed = LogDirDescription(
        path="data",
        error=KafkaStorageError("the disk is gone"),
        total_bytes=-1,
        usable_bytes=-1,
        is_cordoned=False,
        replicas=(),
    )
    assert directory_rows(1, (failed,), None)[0]["state"] == "the disk is gone"


def test_a_damaged_log_is_named_with_file_and_position() -> None:
    reason = "/data/orders-0/00000000000000000000.log is corrupt at position 77: its checksum is wrong"
    damaged = replace(
        DIRECTORY, replicas=(*DIRECTORY.replicas[:1], replace(DIRECTORY.replicas[1], offline_reason=reason))
    )
    assert directory_rows(1, (damaged,), None)[0]["state"] == "1 of 2 replicas offline"
    assert [row["state"] for row in partition_rows(1, (damaged,), None)] == [f"offline: {reason}", "ok"]
    assert list(offline_lines(1, (damaged,), None)) == [f"orders-0 is offline on broker 1: {reason}"]
    assert list(offline_lines(1, (damaged,), {"payments"})) == []


def test_a_directory_says_why_it_is_offline_where_the_broker_does() -> None:
    failed = replace(DIRECTORY, error=KafkaStorageError(), offline_reason="/data: Input/output error", replicas=())
    assert directory_rows(1, (failed,), None)[0]["state"] == "/data: Input/output error"


def test_a_full_disk_is_a_state() -> None:
    assert directory_rows(1, (replace(DIRECTORY, usable_bytes=64 * MIB - 1),), None)[0]["state"] == "full"
    assert directory_rows(1, (replace(DIRECTORY, usable_bytes=-1),), None)[0]["state"] == "ok", "nobody says"


def test_brokers_are_numbers(fails: Callable[..., str]) -> None:
    assert "not a list of broker ids" in fails("log-dirs", "--broker-list", "localhost:9092")


class Brokers:
    """Broker 2 answers last, and 3 not at all."""

    async def describe_log_dirs(self, brokers: list[int]) -> Outcomes[int, Any]:
        (broker,) = brokers
        await asyncio.sleep(0.01 * (broker == 2))
        return Outcomes({broker: KafkaStorageError("no answer") if broker == 3 else (DIRECTORY,)})


def test_brokers_are_shown_in_order_and_one_that_does_not_answer_is_named() -> None:
    admin: Any = Brokers()
    assert list(asyncio.run(describe(admin, [2, 1]))) == [2, 1]
    with pytest.raises(click.ClickException, match="3: no answer"):
        asyncio.run(describe(admin, [2, 1, 3]))
