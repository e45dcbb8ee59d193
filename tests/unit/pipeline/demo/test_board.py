"""What the demo shows."""

from __future__ import annotations

from millbeck.pipeline.demo.board import COLUMNS, Figures, board, line, table
from millbeck.pipeline.demo.recount import WINDOW_MS


def test_the_last_windows_stand_side_by_side() -> None:
    totals = {("north", number * WINDOW_MS): 100 * number for number in range(COLUMNS + 3)}
    totals["unknown", (COLUMNS + 2) * WINDOW_MS] = 123_456
    lines = table({"north": 5_000}, totals)
    assert lines[0].split() == ["revenue", "so", "far", "00:03", "00:04", "00:05", "00:06"]
    assert lines[1].split() == ["north", "50.00", "3.00", "4.00", "5.00", "6.00"]
    assert lines[2].split() == ["unknown", "-", "-", "-", "-", "1,234.56"]
    assert len({len(each) for each in lines}) == 1


def test_totals_are_shown_before_any_window_has_closed() -> None:
    assert [each.split() for each in table({"east": 250}, {})] == [["revenue", "so", "far"], ["east", "2.50"]]


def test_all_of_it_fits_a_terminal_of_80_by_24() -> None:
    regions = ("north", "south", "east", "west", "unknown")
    figures = Figures(
        bootstrap="127.0.0.1:65535",
        orders_per_second=100_000,
        orders_in=123_456_789,
        log_bytes=123_456_789_012,
        batch="batch 12,345: 100,000 records/s, lag 1,000,000, took 12.3 s",
        read_count=123_456_789,
        so_far=dict.fromkeys(regions, 123_456_789_01),
        windows={(region, start): 123_456_78 for region in regions for start in range(0, 10 * WINDOW_MS, WINDOW_MS)},
    )
    lines = board(figures)
    assert len(lines) <= 22
    assert max(map(len, lines)) <= 79


def test_the_stage_is_told_until_the_first_batch_is_through() -> None:
    figures = Figures(bootstrap="127.0.0.1:9092", stage="Spark is starting", orders_in=400, log_bytes=1_500_000)
    assert board(figures)[2] == "pipeline  Spark is starting"
    assert line(figures) == ("log 1.5 MB, 400 orders written, 0 records read, 0 windows closed; Spark is starting")
    figures.batch = "batch 0: 10 records/s"
    assert line(figures).endswith("; batch 0: 10 records/s")
