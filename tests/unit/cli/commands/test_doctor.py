from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import Result

from millbeck.cli.commands import doctor
from millbeck.cli.commands.doctor import _absent_brokers, _leaderless, _out_of_sync, _state_of_directory, line_of
from millbeck.cli.doctor_checks import FAIL, OK, WARN, Finding
from millbeck.client.admin.results import LogDirDescription, LogReplica
from millbeck.client.metadata import PartitionMetadata
from millbeck.kernel.errors import ApiError, KafkaStorageError
from millbeck.kernel.ids import TopicPartition
from millbeck.kernel.units import GIB


def test_a_line_says_what_to_do() -> None:
    finding = Finding(status=FAIL, subject="port 1", detail="not allowed", advice="choose another")
    assert line_of(finding) == "fail  port 1: not allowed\n      -> choose another"


def test_the_report_covers_machine_directory_and_cluster(run: Callable[..., Result], tmp_path: Path) -> None:
    done = run("doctor", "--data", str(tmp_path), "--port", "0", "-b", "127.0.0.1:1", "-o", "json")
    assert done.exit_code == 0
    shown = json.loads(done.stdout)
    subjects = [each["subject"] for each in shown]
    assert subjects[:4] == ["python", "data path", "open files", "port 0"]
    assert f"data {tmp_path}" in subjects
    assert shown[-1]["subject"] == "cluster at 127.0.0.1:1"
    assert shown[-1]["status"] == "warn"
    assert "millbeck up" in shown[-1]["advice"]


def test_a_failure_is_the_exit_code(
    run: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "check_python", lambda: Finding(status=FAIL, subject="python", detail="2.7"))
    done = run("doctor", "--data", str(tmp_path), "--port", "0", "-b", "127.0.0.1:1")
    assert done.exit_code == 1
    assert done.stdout.startswith("fail  python: 2.7\n")


REASON = "/data/orders-0/00000000000000000000.log is corrupt at position 77: its checksum is wrong"


def admin_of(
    leaders: dict[str, list[int]], replicas: tuple[int, ...] = (), in_sync: tuple[int, ...] | None = None
) -> Any:
    """Knows topics by the leaders of their partitions, which have the same replicas."""
    topics = {
        name: SimpleNamespace(
            partitions={
                index: PartitionMetadata(
                    index, leader, replicas=replicas, in_sync=replicas if in_sync is None else in_sync
                )
                for index, leader in enumerate(each)
            }
        )
        for name, each in leaders.items()
    }
    return SimpleNamespace(cluster=SimpleNamespace(metadata=SimpleNamespace(topics=topics)))


def directory_with(*partitions: tuple[str, int], error: ApiError | None = None, **fields: Any) -> LogDirDescription:
    replicas = tuple(
        LogReplica(partition=TopicPartition(*each), size_bytes=1, offset_lag=0, is_future=False, offline_reason=REASON)
        for each in partitions
    )
    room = {"total_bytes": 100 * GIB, "usable_bytes": 50 * GIB}
    return LogDirDescription(path="/data", error=error, is_cordoned=False, replicas=replicas, **(room | fields))


def test_partitions_without_a_leader_fail() -> None:
    assert _leaderless(admin_of({"orders": [1, 2]})) == []
    (found,) = _leaderless(admin_of({"orders": [-1, 2], "many": [-1] * 12}))
    assert (found.status, found.subject) == (FAIL, "13 partition(s)")
    assert "many-0, " in found.detail
    assert found.detail.endswith(" and 3 more")


def test_a_broker_that_has_replicas_and_is_not_there_fails() -> None:
    admin = admin_of({"orders": [1, 2, 1]}, replicas=(1, 2, 3))
    assert _absent_brokers(admin, {1, 2, 3, 4}) == []
    (found,) = _absent_brokers(admin, {1, 2})
    assert (found.status, found.subject) == (FAIL, "broker 3")
    assert found.detail == "down or fenced; 3 partition(s) have a replica on it"


def test_replicas_out_of_sync_are_warned_of() -> None:
    assert _out_of_sync(admin_of({"orders": [1, 2]}, replicas=(1, 2))) == []
    (found,) = _out_of_sync(admin_of({"orders": [1, 2], "others": [-1]}, replicas=(1, 2, 3), in_sync=(1, 2)))
    assert (found.status, found.subject) == (WARN, "2 partition(s)")
    assert found.detail.endswith(": orders-0, orders-1"), "those without a leader are told of already"


def test_a_damaged_log_is_named_with_what_to_do_about_it() -> None:
    alone, room = _state_of_directory(admin_of({"orders": [-1]}), 1, directory_with(("orders", 0)))
    assert (alone.status, alone.subject, room.status) == (FAIL, "orders-0 on broker 1", OK)
    assert REASON in alone.detail
    assert alone.advice == "stop broker 1 and run `millbeck log repair /data/orders-0`"
    led, _ = _state_of_directory(admin_of({"orders": [2]}), 1, directory_with(("orders", 0)))
    assert led.advice == "broker 2 leads it, and this replica is copied from there"


def test_of_many_offline_logs_some_are_named() -> None:
    many = directory_with(*(("orders", index) for index in range(25)))
    found = _state_of_directory(admin_of({}), 1, many)
    assert [each.subject for each in found[:10]] == [f"orders-{index} on broker 1" for index in range(10)]
    assert found[10].detail == "15 more replicas are offline"
    assert len(found) == 12


def test_a_failed_directory_and_a_full_disk_are_failures() -> None:
    failed = directory_with(error=KafkaStorageError(), offline_reason="/data: Input/output error")
    (found,) = _state_of_directory(admin_of({}), 3, failed)
    assert (found.status, found.subject, found.detail) == (FAIL, "/data of broker 3", "/data: Input/output error")
    (full,) = _state_of_directory(admin_of({}), 3, directory_with(usable_bytes=0))
    assert (full.status, full.subject) == (FAIL, "/data of broker 3")
    assert _state_of_directory(admin_of({}), 3, directory_with(total_bytes=-1, usable_bytes=-1)) == []


def test_a_node_that_does_not_answer_is_not_ready(fails: Callable[..., str]) -> None:
    assert fails("doctor", "--ready", "-b", "127.0.0.1:1").startswith("no broker reached at 127.0.0.1:1")
