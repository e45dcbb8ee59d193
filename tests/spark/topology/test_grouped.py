"""Aggregates against plain Python, with and without windows."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

import itertools

from pyspark.sql import functions as sf

from millbeck.pipeline.topology.serdes import json
from millbeck.pipeline.topology.windows import hopping, session, tumbling
from tests.spark.waves import BEGIN_MS, Event, by_key

if TYPE_CHECKING:
    from millbeck.pipeline.topology.topology import Topology
    from tests.spark.waves import Waves

CASES = 60
SALES = json("n INT, shop STRING")


def _sales(seed: int, *, tombstones: bool) -> list[dict[str, list[Event]]]:
    random_numbers = random.Random(seed)
    waves = []
    for wave in range(2):
        events = []
        for case in range(CASES):
            for _ in range(random_numbers.randint(0, 4)):
                value = {"n": random_numbers.randint(0, 9), "shop": f"shop-{random_numbers.randint(0, 5)}"}
                gone = tombstones and random_numbers.random() < 0.2
                at_ms = wave * 1000 + random_numbers.randint(0, 500)
                events.append(Event(f"case-{case}", None if gone else value, at_ms))
        waves.append({"sales": events})
    return waves


def _last(rows: list[tuple[Any, Any]]) -> dict[str, Any]:
    return {key.strip('"'): values[-1] for key, values in by_key(rows).items()}


@pytest.mark.long
def test_aggregates_of_a_stream(waves: Waves) -> None:
    cases = _sales(21, tombstones=False)

    def build(topology: Topology, topics: dict[str, str]) -> None:
        sales = topology.stream(topics["sales"], value=SALES)
        sales.group_by_key().count().to(topics["count"])
        sales.map_values(lambda value: value.n).group_by_key().reduce(max).to(topics["reduce"])
        sales.group_by(lambda r: r.value.shop).aggregate(
            {"total": 0, "count": 0},
            lambda kept, value: {"total": kept["total"] + value["n"], "count": kept["count"] + 1},
            type="total BIGINT, count BIGINT",
        ).to(topics["aggregate"])

    found = waves.run(build, cases, ["count", "reduce", "aggregate"])
    values: dict[str, list[Any]] = defaultdict(list)
    shops: dict[str, list[Any]] = defaultdict(list)
    for wave in cases:
        for event in wave["sales"]:
            values[str(event.key)].append(event.value["n"])
            shops[event.value["shop"]].append(event.value["n"])
    assert _last(found["count"]) == {key: len(numbers) for key, numbers in values.items()}
    assert _last(found["reduce"]) == {key: max(numbers) for key, numbers in values.items()}
    assert _last(found["aggregate"]) == {
        key: {"total": sum(numbers), "count": len(numbers)} for key, numbers in shops.items()
    }


@pytest.mark.long
def test_several_streams_add_to_one_aggregate(waves: Waves) -> None:
    sold, returned = _sales(24, tombstones=False), _sales(25, tombstones=False)
    cases = [{**one, "returns": other["sales"]} for one, other in zip(sold, returned, strict=True)]

    def build(topology: Topology, topics: dict[str, str]) -> None:
        sales, returns = (topology.stream(topics[name], value=SALES) for name in ("sales", "returns"))
        balance = sales.repartition(3).group_by_key().cogroup(lambda total, value: total + value["n"])
        balance = balance.cogroup(returns.group_by_key(), lambda total, value: total - value["n"])
        balance.aggregate(0, type="BIGINT").to(topics["balance"])

    found = waves.run(build, cases, ["balance"])
    expected = Counter[str]()
    for wave in cases:
        for name, sign in (("sales", 1), ("returns", -1)):
            for event in wave[name]:
                expected[str(event.key)] += sign * event.value["n"]
    assert _last(found["balance"]) == dict(expected)


@pytest.mark.long
def test_aggregates_of_a_table_follow_its_changes(waves: Waves) -> None:
    cases = _sales(22, tombstones=True)

    def build(topology: Topology, topics: dict[str, str]) -> None:
        sales = topology.table(topics["sales"], value=SALES)
        grouped = sales.group_by(lambda row: row.value.shop)
        grouped.count().to(topics["count"])
        grouped.aggregate(
            0, lambda total, value: total + value["n"], lambda total, value: total - value["n"], type="BIGINT"
        ).to(topics["aggregate"])

    found = waves.run(build, cases, ["count", "aggregate"])
    rows = {event.key: event.value for wave in cases for event in wave["sales"]}
    counts, totals = Counter[str](), Counter[str]()
    for value in rows.values():
        if value is not None:
            counts[value["shop"]] += 1
            totals[value["shop"]] += value["n"]
    assert {key: count for key, count in _last(found["count"]).items() if count} == counts
    assert {key: total for key, total in _last(found["aggregate"]).items() if total} == +totals


@pytest.mark.long
def test_windows_leave_once_and_whole(waves: Waves) -> None:
    """The third wave is too late: what it brings is in no window, and no window is told twice."""
    random_numbers = random.Random(23)
    size, advance, gap = 10_000, 5_000, 4_000
    first = [
        Event(f"case-{case}", {"n": random_numbers.randint(1, 9)}, random_numbers.randint(0, 40_000))
        for case in range(CASES)
        for _ in range(3)
    ]
    second = [Event(f"case-{case}", {"n": 100}, 60_000 + random_numbers.randint(0, 5_000)) for case in range(CASES)]
    late = [Event(f"case-{case}", {"n": 1_000}, 3_000) for case in range(CASES)]
    ends = [[Event("end", {"n": 0}, at_ms)] for at_ms in (500_000, 600_000, 700_000)]
    rows = [{"sales": events} for events in (first, second, late, *ends)]

    def build(topology: Topology, topics: dict[str, str]) -> None:
        sales = topology.stream(topics["sales"], value=SALES).filter(lambda r: r.value.n >= 0).group_by_key()
        tumbled = sales.windowed_by(tumbling("10 seconds", grace="2 seconds"), emit="final")
        tumbled.aggregate(lambda r: {"total": sf.sum(r.value.n)}).to(topics["tumbling"])
        hopped = sales.windowed_by(hopping("10 seconds", advance="5 seconds", grace="2 seconds"), emit="final")
        hopped.count().to(topics["hopping"])
        sales.windowed_by(session("4 seconds", grace="2 seconds"), emit="final").count().to(topics["session"])

    found = waves.run(build, rows, ["tumbling", "hopping", "session"])
    kept: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for event in first:
        kept[str(event.key)].append((event.at_ms, event.value["n"]))

    def windows(at_ms: int, step: int) -> list[int]:
        absolute = BEGIN_MS + at_ms
        last = absolute - absolute % step
        return list(range(last, absolute - size, -step))

    for name, step in (("tumbling", size), ("hopping", advance)):
        expected: dict[tuple[str, int], list[int]] = defaultdict(list)
        for event in first + second:
            for start in windows(event.at_ms, step):
                expected[str(event.key), start].append(event.value["n"])
        told = [
            (row[0]["key"], _milliseconds(row[0]["start"]), row[1]) for row in found[name] if row[0]["key"] != "end"
        ]
        assert len(told) == len({one[:2] for one in told}), "a window was told twice"
        assert {(key, start): value for key, start, value in told} == {
            window: {"total": sum(numbers)} if name == "tumbling" else len(numbers)
            for window, numbers in expected.items()
        }, name
    sessions: dict[str, list[int]] = defaultdict(list)
    for key, entries in kept.items():
        times = sorted([at_ms for at_ms, _ in entries] + [event.at_ms for event in second if event.key == key])
        lengths = [1]
        for before, after in itertools.pairwise(times):
            if after - before < gap:
                lengths[-1] += 1
            else:
                lengths.append(1)
        sessions[key] = lengths
    told_sessions: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for key, value in found["session"]:
        if key["key"] != "end":
            told_sessions[key["key"]].append((_milliseconds(key["start"]), value))
    assert {key: [value for _, value in sorted(one)] for key, one in told_sessions.items()} == sessions


def _milliseconds(text: str) -> int:
    from datetime import datetime

    return round(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000)
