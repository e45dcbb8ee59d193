"""The demo's last lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from millbeck.cli.demo.summary import program_name, summary
from millbeck.pipeline.demo.board import Figures

DIRECTORY = Path("/cache/run-1")


def _summary(windows: dict[tuple[str, int], int], *, has_own_log: bool = True, is_equal: bool = True) -> str:
    figures = Figures(bootstrap="host:9092", orders_in=1200, windows=windows)
    return "\n".join(summary(figures, DIRECTORY, has_own_log=has_own_log, is_equal=is_equal))


def test_it_says_what_went_in_and_came_out_and_where_it_lies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/cache")
    text = _summary({("north", 0): 123_456, ("south", 0): 44})
    assert "1,200 orders, 200 customers" in text
    assert "2 windows, 1,235.00 in all; each equals the recount" in text
    assert " ~/run-1/log" in text
    assert " ~/run-1/checkpoint" in text
    assert "up --data ~/run-1/log" in text
    assert len([line for line in text.splitlines() if line.startswith("    ")]) == 3


def test_nothing_is_claimed_without_a_result_or_with_a_difference() -> None:
    assert "equal" not in _summary({})
    assert "the recount differs" in _summary({("north", 0): 1}, is_equal=False)


def test_a_cluster_of_ones_own_is_named_in_the_commands() -> None:
    text = _summary({("north", 0): 1}, has_own_log=False)
    assert "millbeck up" not in text
    assert text.count("-b host:9092") == 3


def test_the_program_is_named_as_it_can_be_called(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert program_name(str(tmp_path / ".venv" / "bin" / "millbeck")) == ".venv/bin/millbeck"
    assert program_name("/anything/main.py") == "millbeck"
