from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import click
import pytest

from millbeck.cli.topics import directory_moves
from millbeck.cli.topics.directory_moves import directory_text, move_logs, print_replica_directories
from millbeck.client.admin.outcomes import Outcomes
from millbeck.client.admin.results import LogDirDescription, LogReplica
from millbeck.kernel.errors import ApiError, LogDirNotFound, ReplicaNotAvailable
from millbeck.kernel.ids import TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Brokers:
    """Answers one after the other, whatever is asked for; and what was asked for."""

    def __init__(self, *answers: Mapping[tuple[int, TopicPartition], bool | ApiError]) -> None:
        self.answers = list(answers)
        self.asked: list[dict[tuple[int, TopicPartition], str]] = []

    async def alter_replica_log_dirs(self, places: Any) -> Outcomes[Any, Any]:
        self.asked.append(dict(places))
        return Outcomes(self.answers.pop(0))

    async def describe_log_dirs(self, brokers: list[int]) -> Outcomes[Any, Any]:
        def directory(path: str, *replicas: LogReplica) -> LogDirDescription:
            return LogDirDescription(
                path=path, error=None, total_bytes=9, usable_bytes=9, is_cordoned=False, replicas=replicas
            )

        def replica(partition: TopicPartition, *, is_future: bool = False) -> LogReplica:
            return LogReplica(partition=partition, size_bytes=1, offset_lag=0, is_future=is_future)

        assert brokers == [1]
        return Outcomes({1: (directory("/a", replica(T0), replica(T1)), directory("/b", replica(T1, is_future=True)))})


def test_a_broker_that_has_no_log_yet_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(directory_moves, "RETRY_SECONDS", 0.0)
    brokers: Any = Brokers({(1, T0): True, (2, T1): ReplicaNotAvailable()}, {(2, T1): True})
    asyncio.run(move_logs(brokers, {(1, T0): "/a", (2, T1): "/b"}))
    assert brokers.asked == [{(1, T0): "/a", (2, T1): "/b"}, {(2, T1): "/b"}]
    assert capsys.readouterr().out.splitlines() == [
        "t-0 on broker 1: moving to /a",
        "t-1 on broker 2: moving to /b",
    ]


@pytest.mark.parametrize(("error", "patience_s"), [(LogDirNotFound(), 10.0), (ReplicaNotAvailable(), 0.0)])
def test_what_cannot_be_or_takes_too_long_is_an_error(
    monkeypatch: pytest.MonkeyPatch, error: ApiError, patience_s: float
) -> None:
    monkeypatch.setattr(directory_moves, "PATIENCE_SECONDS", patience_s)
    brokers: Any = Brokers({(1, T0): error})
    with pytest.raises(click.ClickException, match=f"t-0 on broker 1 to /nope: .*{error.kafka_name}"):
        asyncio.run(move_logs(brokers, {(1, T0): "/nope"}))


def test_where_replicas_are_and_whether_that_is_where_they_shall_be(capsys: pytest.CaptureFixture[str]) -> None:
    brokers: Any = Brokers()
    assert not asyncio.run(print_replica_directories(brokers, {(1, T0): "/a", (1, T1): "/b"}))
    assert capsys.readouterr().out == "t-0 on broker 1: is in /a\nt-1 on broker 1: still moving to /b\n"
    assert asyncio.run(print_replica_directories(brokers, {(1, T0): "/a"}))


def test_directories_are_rows_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    brokers: Any = Brokers()
    assert not asyncio.run(print_replica_directories(brokers, {(1, T1): "/b"}, "json"))
    row = {"topic": "t", "partition": 1, "broker": 1, "directory": "/a", "moving_to": "/b", "wanted_directory": "/b"}
    assert json.loads(capsys.readouterr().out) == row


def test_a_replica_that_is_nowhere_or_elsewhere() -> None:
    assert directory_text("/a", None, None) == "not found on its broker, expected in /a"
    assert directory_text("/a", "/b", "/c") == "not moving: it is in /b instead of /a"
