from __future__ import annotations

from collections.abc import Callable

from millbeck.cli.log_dirs import directory_rows, partition_rows
from millbeck.client.admin.results import LogDirDescription, LogReplica
from millbeck.kernel.errors import KafkaStorageError
from millbeck.kernel.ids import TopicPartition


def replica(topic: str, partition: int, size_bytes: int) -> LogReplica:
    return LogReplica(partition=TopicPartition(topic, partition), size_bytes=size_bytes, offset_lag=0, is_future=False)


DIRECTORY = LogDirDescription(
    path="data",
    error=None,
    total_bytes=1000,
    usable_bytes=400,
    is_cordoned=False,
    replicas=(replica("orders", 1, 20), replica("orders", 0, 10), replica("payments", 0, 5)),
)


def test_a_directory_is_summed_up() -> None:
    (row,) = directory_rows(1, (DIRECTORY,), None)
    assert (row["state"], row["partitions"], row["size_bytes"], row["free_bytes"]) == ("ok", 3, 35, 400)


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


def test_brokers_are_numbers(fails: Callable[..., str]) -> None:
    assert "not a list of broker ids" in fails("log-dirs", "--broker-list", "localhost:9092")
