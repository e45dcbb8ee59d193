"""Each operator on streams against a few lines of plain Python, over many generated cases and a restart."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from pyspark.sql import functions as sf

from millbeck.pipeline.errors import TopologyError
from millbeck.pipeline.topology.serdes import json
from millbeck.pipeline.topology.windows import sliding_join
from tests.spark.waves import Event

if TYPE_CHECKING:
    from millbeck.pipeline.topology.topology import Topology
    from tests.spark.waves import Waves

CASES = 60
NUMBERS = json("n INT, words ARRAY<STRING>")


def _cases(seed: int, *, late: bool = False) -> list[list[Event]]:
    """Two waves of a few records for each case."""
    random_numbers = random.Random(seed)
    waves: list[list[Event]] = [[], []]
    for case in range(CASES):
        for number in range(random_numbers.randint(1, 6)):
            words = [random_numbers.choice("abc") for _ in range(random_numbers.randint(0, 3))]
            value = {"n": random_numbers.randint(-5, 5), "words": words}
            waves[number % 2].append(Event(f"case-{case}", value, random_numbers.randint(0, 60_000)))
    return waves


def _multiset(rows: list[tuple[Any, Any]]) -> Counter[str]:
    return Counter(repr(row) for row in rows)


@pytest.mark.long
def test_stateless_operators(waves: Waves) -> None:
    cases = _cases(1)
    outputs = ("filter", "filter_not", "map", "map_values", "flat_map", "flat_map_values", "select_key")
    branches = ("branch_small", "branch_even", "merge", "peek")

    def build(topology: Topology, topics: dict[str, str]) -> None:
        numbers = topology.stream(topics["numbers"], value=NUMBERS)
        numbers.filter(lambda r: r.value.n > 0).to(topics["filter"])
        numbers.filter_not(lambda r: r.value.n > 0).to(topics["filter_not"])
        numbers.map(lambda r: (sf.upper(r.key), {"twice": r.value.n * 2})).to(topics["map"])
        numbers.map_values(lambda value: {"n": value.n + 1, "kind": "more"}).to(topics["map_values"])
        numbers.flat_map(
            lambda r: sf.transform(r.value.words, lambda word: sf.struct(word.alias("key"), r.value.n.alias("value")))
        ).to(topics["flat_map"])
        numbers.flat_map_values(lambda value: value.words).to(topics["flat_map_values"])
        numbers.select_key(lambda r: sf.concat(sf.lit("n"), r.value.n)).to(topics["select_key"])
        small, even = numbers.branch(lambda r: r.value.n < 0, lambda r: r.value.n % 2 == 0)
        small.to(topics["branch_small"])
        even.to(topics["branch_even"])
        small.merge(even).to(topics["merge"])
        numbers.peek(lambda key, value: None).to(topics["peek"])

    found = waves.run(build, [{"numbers": wave} for wave in cases], [*outputs, *branches])
    records = [(event.key, event.value) for wave in cases for event in wave]
    small = [(key, value) for key, value in records if value["n"] < 0]
    even = [(key, value) for key, value in records if value["n"] >= 0 and value["n"] % 2 == 0]
    expected: dict[str, list[tuple[Any, Any]]] = {
        "filter": [row for row in records if row[1]["n"] > 0],
        "filter_not": [row for row in records if row[1]["n"] <= 0],
        "map": [(str(key).upper(), {"twice": value["n"] * 2}) for key, value in records],
        "map_values": [(key, {"n": value["n"] + 1, "kind": "more"}) for key, value in records],
        "flat_map": [(word, value["n"]) for _, value in records for word in value["words"]],
        "flat_map_values": [(key, word) for key, value in records for word in value["words"]],
        "select_key": [(f"n{value['n']}", value) for _, value in records],
        "branch_small": small,
        "branch_even": even,
        "merge": small + even,
        "peek": records,
    }
    for name, rows in expected.items():
        assert _multiset(found[name]) == _multiset(rows), name


@pytest.mark.long
@pytest.mark.parametrize("kind", ["join", "left_join", "outer_join"])
def test_two_streams_are_joined_within_a_window(waves: Waves, kind: str) -> None:
    """Nothing here is late: each wave is newer than the one before by more than the window."""
    random_numbers = random.Random(3)
    before, after = 3_000, 7_000
    rows: list[dict[str, list[Event]]] = []
    for wave in range(2):
        events: dict[str, list[Event]] = {"left": [], "right": []}
        for case in range(CASES):
            for name, side in events.items():
                for _ in range(random_numbers.randint(0, 2)):
                    at_ms = wave * 100_000 + random_numbers.randint(0, 20_000)
                    side.append(Event(f"case-{case}", {"n": random_numbers.randint(0, 99), "words": [name]}, at_ms))
        rows.append(events)
    # Far later, so that every window has closed.
    rows.append({"left": [Event("end", {"n": -1}, 900_000)], "right": [Event("end", {"n": -1}, 900_000)]})
    rows.append({"left": [Event("end", {"n": -2}, 901_000)], "right": [Event("end", {"n": -2}, 901_000)]})

    def build(topology: Topology, topics: dict[str, str]) -> None:
        left, right = (topology.stream(topics[name], value=NUMBERS) for name in ("left", "right"))
        window = sliding_join(before="3 seconds", after="7 seconds", grace="1 second")
        joined = getattr(left, kind)(right, lambda one, other: {"l": one.n, "r": other.n}, window=window)
        joined.filter(lambda r: r.key != "end").to(topics["joined"])

    found = waves.run(build, rows, ["joined"])["joined"]
    lefts, rights = (
        [event for wave in rows for event in wave[name] if event.key != "end"] for name in ("left", "right")
    )
    expected: list[tuple[Any, Any]] = []
    met: set[int] = set()
    for left in lefts:
        partners = [
            right
            for right in rights
            if right.key == left.key and left.at_ms - before <= right.at_ms <= left.at_ms + after
        ]
        expected += [(left.key, {"l": left.value["n"], "r": right.value["n"]}) for right in partners]
        met.update(map(id, partners))
        if not partners and kind != "join":
            expected.append((left.key, {"l": left.value["n"]}))
    if kind == "outer_join":
        expected += [(right.key, {"r": right.value["n"]}) for right in rights if id(right) not in met]
    assert len(expected) >= 20
    assert _multiset(found) == _multiset(expected)


class TestRefusals:
    @pytest.fixture
    def numbers(self, spark: Any, log: Any, make_topic: Any) -> Any:
        from millbeck.pipeline.topology.topology import Topology

        topology = Topology("refused", spark, bootstrap_servers=log.bootstrap)
        return topology.stream(make_topic(1), value=NUMBERS)

    def test_a_join_of_streams_without_a_window(self, numbers: Any) -> None:
        with pytest.raises(TopologyError, match="sliding_join"):
            numbers.join(numbers, lambda one, other: one)

    def test_a_map_that_returns_no_pair(self, numbers: Any) -> None:
        with pytest.raises(TopologyError, match="map_values"):
            numbers.map(lambda r: r.value)

    def test_a_function_that_returns_no_column(self, numbers: Any) -> None:
        with pytest.raises(TopologyError, match="returns a column"):
            numbers.map_values(lambda value: object())

    def test_streams_that_hold_different_things(self, numbers: Any) -> None:
        with pytest.raises(TopologyError, match="different types"):
            numbers.merge(numbers.map_values(lambda value: value.n))

    def test_keys_of_different_types(self, numbers: Any) -> None:
        other = numbers.select_key(lambda r: r.value.n)
        with pytest.raises(TopologyError, match="one type"):
            numbers.join(other, lambda one, two: one, window=sliding_join("1 second"))

    def test_timers_of_no_known_kind(self, numbers: Any) -> None:
        with pytest.raises(TopologyError, match="EventTime"):
            numbers.process(object(), key="STRING", value="INT", time="Lunch")

    def test_a_topology_that_writes_nothing(self, numbers: Any) -> None:
        with pytest.raises(TopologyError, match="has no output"):
            numbers.topology.outgoing()
