"""The harness itself: the raw client's batches, the verdicts of the bench, and the page it writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import report
from bench.compare import compare_direction
from bench.measure import Transfer
from bench.raw import BATCH_HEADER_SIZE, build_batch, offset_after, read_batches
from tests.interop.__main__ import _targets


def _transfer(*, rate: float, cpu: float = 1.0, broker: float = 0.5, client: float = 0.5) -> Transfer:
    return Transfer(megabytes_per_second=rate, broker_cpu_per_gigabyte=cpu, broker_busy=broker, client_busy=client)


def test_a_built_batch_reads_back() -> None:
    batch = build_batch([b"one", b"", b"x" * 5000], timestamp_ms=1234)
    (found,) = read_batches(memoryview(batch))
    assert (found.size_bytes, found.record_count, found.last_offset_delta) == (len(batch), 3, 2)
    assert (found.codec, found.crc_valid, found.max_timestamp_ms, found.producer_id) == ("none", True, 1234, -1)


def test_a_damaged_batch_is_noticed_and_a_cut_one_left_out() -> None:
    batch = bytearray(build_batch([b"value"]))
    batch[-2] ^= 1
    (found,) = read_batches(memoryview(bytes(batch)))
    assert not found.crc_valid
    assert list(read_batches(memoryview(bytes(batch[:-1])))) == []
    assert list(read_batches(memoryview(bytes(batch[: BATCH_HEADER_SIZE - 1])))) == []


def test_hopping_over_headers_ends_behind_the_last_whole_batch() -> None:
    batch = build_batch([b"a", b"b"])
    assert offset_after(memoryview(batch + batch[:40]), 0) == 2
    assert offset_after(memoryview(batch[:40]), 7) == 7


def test_the_ratio_is_the_median_of_paired_rounds() -> None:
    ours = [_transfer(rate=100), _transfer(rate=300), _transfer(rate=90)]
    theirs = [_transfer(rate=100), _transfer(rate=100), _transfer(rate=100)]
    direction = compare_direction(ours, theirs)
    assert (direction.throughput_ratio, direction.verdict) == (1.0, "level")


CLIENT_BOUND = {
    "on ours": ({"client": 0.95}, {}, True),
    "on theirs": ({}, {"client": 0.95}, True),
    "on neither": ({"client": 0.85}, {"client": 0.85}, False),
    "both cores full": ({"client": 0.95, "broker": 0.95}, {}, False),
}


@pytest.mark.parametrize(("ours", "theirs", "expected"), CLIENT_BOUND.values(), ids=CLIENT_BOUND.keys())
def test_a_client_bound_cell_is_judged_by_broker_cpu(
    ours: dict[str, float], theirs: dict[str, float], expected: bool
) -> None:
    direction = compare_direction([_transfer(rate=50, cpu=1, **ours)], [_transfer(rate=100, cpu=3, **theirs)])
    assert direction.client_bound == expected
    assert direction.judged_ratio == (3.0 if expected else 0.5)


def test_alone_there_is_no_ratio() -> None:
    direction = compare_direction([_transfer(rate=50)], [])
    assert (direction.judged_ratio, direction.verdict) == (None, "alone")


def test_a_section_replaces_its_own_part_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "head\n<!-- core: begin -->\nold\n<!-- core: end -->\n<!-- full: begin -->\nkept\n<!-- full: end -->\n"
    )
    monkeypatch.setattr(report, "PAGE", page)
    report.write_section("core", ["new"])
    assert page.read_text() == (
        "head\n<!-- core: begin -->\nnew\n<!-- core: end -->\n<!-- full: begin -->\nkept\n<!-- full: end -->\n"
    )
    with pytest.raises(ValueError, match="no section"):
        report.write_section("absent", [])


def test_the_page_has_every_section() -> None:
    text = report.PAGE.read_text()
    assert all(f"<!-- {name}: begin -->" in text for name in ("core", "full", "budgets", "cold-reads"))


def test_a_named_file_is_the_only_target() -> None:
    assert _targets(["-q", "-x"]) == ["tests/interop"]
    assert _targets(["tests/interop/test_kill.py"]) == []
    assert _targets(["--deselect", "tests/interop/test_kill.py"]) == ["tests/interop"]
