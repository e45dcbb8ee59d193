"""From notes to a verdict on transactions: what is missing, twice, of nobody, out of order or left hanging is found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nemesis.judgement import Bar, TransactionVerdict, Verdict
from nemesis.transactions import judge_transactions
from nemesis.transactor import transformed


def write(path: Path, entries: list[list[Any]]) -> Path:
    path.write_text("".join(json.dumps([0.0, *entry]) + "\n" for entry in entries))
    return path


def made_of(value: str) -> str:
    return transformed(value.encode()).decode()


class Notes:
    """Two records in each of two partitions, transformed in two transactions beside an aborted one."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.source: list[list[Any]] = [["read", 0, 0, "a"], ["read", 0, 1, "b"], ["read", 1, 0, "c"]]
        self.target: list[list[Any]] = [
            ["read", 0, 0, made_of("a")],
            ["read", 0, 4, made_of("b")],
            ["whole", 0, 6, 6],
            ["read", 1, 0, made_of("c")],
            ["whole", 1, 2, 2],
        ]
        self.tail = [self.target[0]]
        self.worker: list[list[Any]] = [["committed", 2, ""], ["aborted", 1, ""], ["committed", 1, ""], ["end", 0, []]]

    def judge(self) -> TransactionVerdict:
        return judge_transactions(
            [write(self._directory / "t0.jsonl", self.worker)],
            write(self._directory / "final.jsonl", self.source),
            write(self._directory / "results.jsonl", self.target),
            tail=write(self._directory / "tail.jsonl", self.tail),
        )


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    return Notes(tmp_path)


def test_every_record_exactly_once_is_no_anomaly(notes: Notes) -> None:
    verdict = notes.judge()
    assert verdict.anomalies == []
    assert (verdict.committed, verdict.aborted, verdict.records) == (2, 1, 3)


def test_the_checksum_tells_values_and_places_apart(notes: Notes) -> None:
    checksums = {notes.judge().checksum}
    notes.target[3][3] = made_of("x")
    checksums.add(notes.judge().checksum)
    notes.target[3][1] = 2
    checksums.add(notes.judge().checksum)
    assert len(checksums) == 3


@pytest.mark.parametrize(
    ("index", "entry", "anomaly"),
    [
        (1, ["read", 0, 3, made_of("a")], "partition 0 lacks 1 of 2 records"),
        (1, ["read", 0, 3, made_of("a")], "partition 0 has 1 records more than once"),
        (3, ["read", 1, 0, "c|00000000"], "partition 1 has 1 records of nobody"),
        (4, ["whole", 1, 1, 2], "partition 1 is stable up to 1 only, and ends at 2"),
    ],
)
def test_what_is_not_exactly_once_is_told(notes: Notes, index: int, entry: list[Any], anomaly: str) -> None:
    notes.target[index] = entry
    assert [found for found in notes.judge().anomalies if anomaly in found] != []


def test_records_in_another_order_are_told(notes: Notes) -> None:
    notes.target[0][2], notes.target[1][2] = 4, 0
    notes.tail = []
    assert notes.judge().anomalies == ["partition 0 is not in the order of the source"]


def test_who_reads_along_sees_what_is_there_in_the_end(notes: Notes) -> None:
    notes.tail = [["read", 0, 2, made_of("b")]]
    assert [found for found in notes.judge().anomalies if "who read along" in found] != []


def test_a_transactor_that_broke_off_is_told(notes: Notes) -> None:
    notes.worker.pop()
    assert notes.judge().anomalies == ["t0 did not come to its end"]


def test_too_few_transactions_are_empty(notes: Notes) -> None:
    verdict = Verdict(
        anomalies=[],
        sent=3,
        acknowledged=3,
        undelivered=0,
        read=3,
        client_errors=[],
        windows_s=[],
        standstills=[],
        transactions=notes.judge(),
    )
    assert Bar(acknowledged_min=3, committed_min=2, aborted_min=1).problems(verdict, 0, share=1) == []
    assert Bar(acknowledged_min=3, committed_min=3, aborted_min=2).problems(verdict, 0, share=1) == [
        "empty: only 2 transactions were committed, not 3",
        "empty: only 1 transactions were aborted, not 2",
    ]
