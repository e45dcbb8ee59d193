"""From notes to anomalies: what was lost, read twice or never there is found; a short read is no verdict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nemesis.judgement import Bar, Verdict, judge


def write(path: Path, *entries: list[Any]) -> Path:
    path.write_text("".join(json.dumps([float(time), *entry]) + "\n" for time, entry in enumerate(entries)))
    return path


def sent(value: str, offset: int | None) -> list[list[Any]]:
    lines: list[list[Any]] = [["send", "p0", 0, value]]
    if offset is not None:
        lines.append(["acknowledged", value, offset])
    return lines


class Notes:
    def __init__(self, directory: Path) -> None:
        self.producer = [*sent("a", 0), *sent("b", 1), *sent("c", None)]
        self.tail: list[list[Any]] = [["read", 0, 0, "a"], ["read", 0, 1, "b"]]
        self.final: list[list[Any]] = [["read", 0, 0, "a"], ["read", 0, 1, "b"], ["whole", 0, 2]]
        self.kills: list[tuple[int, float]] = []
        self.flows: list[tuple[str, float, float]] = []
        self._directory = directory

    def judge(self) -> Verdict:
        return judge(
            [write(self._directory / "p0.jsonl", *self.producer, ["end", 0, []])],
            [write(self._directory / "tail.jsonl", *self.tail)],
            write(self._directory / "final.jsonl", *self.final),
            kills=self.kills,
            flows=self.flows,
            acknowledged_count_min=1,
        )


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    return Notes(tmp_path)


def test_a_clean_history_has_no_anomaly(notes: Notes) -> None:
    verdict = notes.judge()
    assert verdict.anomalies == []
    assert (verdict.sent, verdict.acknowledged, verdict.read) == (3, 2, 2)
    assert verdict.client_errors == []


def test_a_record_that_was_acknowledged_and_is_gone_is_found(notes: Notes) -> None:
    notes.final = [["read", 0, 0, "a"], ["whole", 0, 1]]
    notes.tail = []
    assert [anomaly.kind for anomaly in notes.judge().anomalies] != []


def test_a_record_read_twice_is_found(notes: Notes) -> None:
    notes.final = [["read", 0, 0, "a"], ["read", 0, 1, "b"], ["read", 0, 2, "b"], ["whole", 0, 3]]
    assert [anomaly.kind for anomaly in notes.judge().anomalies] != []


def test_a_read_that_ended_early_is_no_verdict(notes: Notes) -> None:
    notes.final = [["read", 0, 0, "a"], ["whole", 0, 2]]
    with pytest.raises(ValueError, match="not read to its end"):
        notes.judge()


def test_fatal_errors_and_records_left_behind_are_told(notes: Notes) -> None:
    notes.producer += [["error", "_FATAL", "out of order", True], ["error", "_TRANSPORT", "gone", False]]
    notes.producer += [["undelivered", "c", "_TIMED_OUT"]]
    verdict = notes.judge()
    assert verdict.undelivered == 1
    assert [error for error in verdict.client_errors if "fatal" in error] == ["p0: fatal: out of order"]


def test_a_window_ends_with_the_first_acknowledgement_after_the_kill(notes: Notes) -> None:
    notes.kills = [(0, 1.5), (0, 99.0)]
    verdict = notes.judge()
    assert verdict.windows_s == [1.5, float("inf")]
    assert verdict.window_p99_s == float("inf")


def test_word_of_a_record_from_before_the_kill_ends_no_window(notes: Notes) -> None:
    notes.kills = [(0, 0.5)]
    assert notes.judge().windows_s == [2.5], "a, sent at 0, is acknowledged at 1; b, sent at 2, at 3"


def test_a_partition_that_stands_still_is_told(notes: Notes) -> None:
    notes.flows = [("all was well", 2.0, 4.0)]
    assert notes.judge().standstills == []
    notes.flows = [("all was well", 0.5, 2.5)]
    assert notes.judge().standstills == ["partition 0 took no record in 2.0 s while all was well"]


def test_half_a_line_of_a_killed_client_is_passed_over(notes: Notes, tmp_path: Path) -> None:
    path = write(tmp_path / "half.jsonl", ["read", 0, 0, "a"])
    path.write_text(path.read_text() + '[1.0, "read", 0')
    verdict = judge(
        [write(tmp_path / "p.jsonl", *notes.producer)],
        [path],
        write(tmp_path / "f.jsonl", *notes.final),
        kills=[],
        flows=[],
        acknowledged_count_min=1,
    )
    assert verdict.anomalies == []


def test_a_run_that_shows_too_little_is_empty(notes: Notes) -> None:
    verdict = notes.judge()
    assert Bar(acknowledged_min=2, leader_changes_min=3).problems(verdict, 3, share=1) == []
    assert Bar(acknowledged_min=3).problems(verdict, 3, share=1) == ["empty: only 2 records were acknowledged, not 3"]
    assert Bar(acknowledged_min=4).problems(verdict, 3, share=0.5) == []
    assert Bar(acknowledged_min=2, leader_changes_min=3).problems(verdict, 2, share=5) != []
    assert Bar(acknowledged_min=2, windows_min=1).problems(verdict, 0, share=1) != []


def test_windows_and_errors_have_their_bar(notes: Notes) -> None:
    notes.kills = [(0, 1.5)]
    notes.producer += [["undelivered", "c", "_TIMED_OUT"]]
    verdict = notes.judge()
    assert Bar(acknowledged_min=2, window_max_s=1.5).problems(verdict, 0, share=1) == []
    assert Bar(acknowledged_min=2, window_max_s=1.4).problems(verdict, 0, share=1) != []
    assert Bar(acknowledged_min=2, tolerates_client_errors=False).problems(verdict, 0, share=1) != []
    notes.producer += [["error", "_FATAL", "out of order", True]]
    assert Bar(acknowledged_min=2).problems(notes.judge(), 0, share=1) == ["p0: fatal: out of order"]


def test_what_is_lost_is_a_problem_whatever_the_bar(notes: Notes) -> None:
    notes.final = [["read", 0, 0, "a"], ["whole", 0, 1]]
    notes.tail = []
    assert Bar(acknowledged_min=0).problems(notes.judge(), 0, share=1) != []


def test_a_groups_member_is_given_everything_without_an_error(notes: Notes, tmp_path: Path) -> None:
    def errors(*entries: list[Any]) -> list[str]:
        return judge(
            [write(tmp_path / "p.jsonl", *notes.producer)],
            [],
            write(tmp_path / "f.jsonl", *notes.final),
            kills=[],
            flows=[],
            acknowledged_count_min=1,
            members=[write(tmp_path / "m.jsonl", *entries)],
        ).client_errors

    assert errors(["error", "_TRANSPORT", "gone", False], ["given", 2]) == []
    assert errors(["given", 1]) == ["m: was given 1 records of 2"]
    assert errors(["read error", "X", "lost"], ["error", "Y", "bad", True], ["given", 2]) == [
        "m: lost",
        "m: fatal: bad",
    ]
