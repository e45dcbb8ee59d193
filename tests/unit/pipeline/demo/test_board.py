"""The live table."""

from __future__ import annotations

from millbeck.pipeline.demo.board import COLUMNS, board


def test_the_last_windows_stand_side_by_side() -> None:
    totals = {("north", number * 300_000): 100 * number for number in range(COLUMNS + 3)}
    totals["unknown", (COLUMNS + 2) * 300_000] = 123_456
    lines = board(totals)
    assert lines[0].split() == ["region", "00:15", "00:20", "00:25", "00:30", "00:35"]
    assert lines[1].split() == ["north", "3.00", "4.00", "5.00", "6.00", "7.00"]
    assert lines[2].split() == ["unknown", "-", "-", "-", "-", "1,234.56"]
    assert len({len(line) for line in lines}) == 1


def test_nothing_is_shown_before_a_window_has_closed() -> None:
    assert board({}) == []
