"""A round puts each step on one system beside the same step on the other."""

from __future__ import annotations

from statistics import median
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bench.cells import CORE_CELLS, Cell
from bench.compare import compare
from bench.measure import Bench, Filled, Transfer
from bench.rounds import CONSUMES, run_round

CELL = CORE_CELLS[0]


def _transfer(rate: float) -> Transfer:
    return Transfer(megabytes_per_second=rate, broker_cpu_per_gigabyte=1, broker_busy=0.5, client_busy=0.5)


class RecordedBench:
    """Does nothing but write down what it was asked for."""

    def __init__(self, name: str, steps: list[str]) -> None:
        self._name = name
        self._steps = steps
        self._consumed = 0
        self.node = SimpleNamespace(usage=lambda: SimpleNamespace(rss_bytes=7))

    def produce(self, cell: Cell, total_bytes: int) -> tuple[Filled, Transfer]:
        self._steps.append(f"produce {self._name}")
        return Filled(topic=f"topic of {self._name}", records=total_bytes // cell.record_bytes), _transfer(10)

    def consume(self, cell: Cell, filled: Filled) -> Transfer:
        assert filled.topic == f"topic of {self._name}"
        self._consumed += 1
        self._steps.append(f"consume {self._name}")
        return _transfer(self._consumed)

    def sync_disk(self) -> None:
        self._steps.append(f"settle {self._name}")

    def delete_topic(self, topic: str) -> None:
        self._steps.append(f"delete {topic}")

    def latency(self, cell: Cell, seconds: float) -> tuple[dict[str, Any], dict[str, Any]]:
        self._steps.append(f"latency {self._name}")
        return {"p50_ms": 1.0, "p99_ms": 2.0}, {"p50_ms": 3.0, "p99_ms": 4.0}


@pytest.fixture
def steps() -> list[str]:
    return []


@pytest.fixture
def benches(steps: list[str]) -> dict[str, Bench]:
    return {name: cast(Bench, RecordedBench(name, steps)) for name in "ab"}


def test_systems_take_turns_at_every_step(benches: dict[str, Bench], steps: list[str]) -> None:
    run_round(benches, ["a", "b"], CELL, total_bytes=1000, latency_seconds=1)
    assert steps == [
        *("produce a", "settle a", "produce b", "settle b"),
        *("consume a", "consume b", "consume b", "consume a", "consume a", "consume b"),
        *("delete topic of a", "delete topic of b"),
        *("latency a", "latency b"),
    ]


def test_every_turn_counts(benches: dict[str, Bench]) -> None:
    result = run_round(benches, ["b", "a"], CELL, total_bytes=1000, latency_seconds=1)["a"]
    assert [turn.megabytes_per_second for turn in result.consumes] == list(range(1, CONSUMES + 1))
    assert compare("cell", [result], []).consume.ours_megabytes == median(range(1, CONSUMES + 1))
    assert (result.produce_p99_ms, result.end_to_end_p99_ms, result.rss_bytes) == (2.0, 4.0, 7)


def test_single_records_are_timed_only_on_request(benches: dict[str, Bench], steps: list[str]) -> None:
    result = run_round(benches, ["a"], CELL, total_bytes=1000, latency_seconds=0)["a"]
    assert result.produce_p99_ms is None
    assert "latency a" not in steps
