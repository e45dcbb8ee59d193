"""Operators on tables against plain Python: what each table says last is what the last values say."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from millbeck.pipeline.topology.serdes import json
from tests.spark.waves import Event, by_key

if TYPE_CHECKING:
    from millbeck.pipeline.topology.topology import Topology
    from tests.spark.live_log import LiveLog
    from tests.spark.waves import Waves

CASES = 60
ORDERS = json("n INT, customer STRING")
CUSTOMERS = json("region STRING")


def _waves(seed: int) -> list[dict[str, list[Event]]]:
    """Two waves in which rows of both tables come, change and go, out of order too."""
    random_numbers = random.Random(seed)
    waves = []
    for wave in range(2):
        events: dict[str, list[Event]] = {"orders": [], "customers": []}
        for case in range(CASES):
            for _ in range(random_numbers.randint(0, 3)):
                at_ms = wave * 1000 + random_numbers.randint(0, 500)
                value = {"n": random_numbers.randint(0, 9), "customer": f"case-{random_numbers.randint(0, CASES)}"}
                gone = random_numbers.random() < 0.2
                events["orders"].append(Event(f"case-{case}", None if gone else value, at_ms))
            for _ in range(random_numbers.randint(0, 2)):
                at_ms = wave * 1000 + random_numbers.randint(0, 500)
                gone = random_numbers.random() < 0.3
                region = {"region": random_numbers.choice("news")}
                events["customers"].append(Event(f"case-{case}", None if gone else region, at_ms))
        waves.append(events)
    return waves


def _last(waves: list[dict[str, list[Event]]], name: str) -> dict[str, Any]:
    last = {str(event.key): event.value for wave in waves for event in wave[name]}
    return {key: value for key, value in last.items() if value is not None}


def _table(rows: list[tuple[Any, Any]]) -> dict[str, Any]:
    """What a table's topic says in the end."""
    return {key.strip('"'): values[-1] for key, values in by_key(rows).items() if values[-1] is not None}


@pytest.mark.long
def test_tables_end_as_their_last_values_say(waves: Waves) -> None:
    cases = _waves(7)
    outputs = ["copy", "filter", "map_values", "join", "left_join", "outer_join", "foreign", "foreign_left"]

    def build(topology: Topology, topics: dict[str, str]) -> None:
        orders = topology.table(topics["orders"], value=ORDERS)
        customers = topology.table(topics["customers"], value=CUSTOMERS)
        orders.to(topics["copy"])
        orders.filter(lambda row: row.value.n > 4).to(topics["filter"])
        orders.map_values(lambda value: {"twice": value.n * 2}).to(topics["map_values"])
        for kind in ("join", "left_join", "outer_join"):
            joined = getattr(orders, kind)(customers, lambda order, customer: {"n": order.n, "r": customer.region})
            joined.to(topics[kind])
        for kind, output in (("join", "foreign"), ("left_join", "foreign_left")):
            joined = getattr(orders, kind)(
                customers,
                lambda order, customer: {"n": order.n, "r": customer.region},
                foreign_key=lambda value: value.customer,
            )
            joined.to(topics[output])

    found = waves.run(build, cases, outputs)
    orders, customers = _last(cases, "orders"), _last(cases, "customers")

    def joined(order: Any, customer: Any) -> dict[str, Any]:
        row = {"n": order and order["n"], "r": customer and customer["region"]}
        return {name: value for name, value in row.items() if value is not None}

    expected = {
        "copy": orders,
        "filter": {key: value for key, value in orders.items() if value["n"] > 4},
        "map_values": {key: {"twice": value["n"] * 2} for key, value in orders.items()},
        "join": {key: joined(orders[key], customers[key]) for key in orders.keys() & customers.keys()},
        "left_join": {key: joined(value, customers.get(key)) for key, value in orders.items()},
        "outer_join": {key: joined(orders.get(key), customers.get(key)) for key in orders.keys() | customers.keys()},
        "foreign": {
            key: joined(value, customers[value["customer"]])
            for key, value in orders.items()
            if value["customer"] in customers
        },
        "foreign_left": {key: joined(value, customers.get(value["customer"])) for key, value in orders.items()},
    }
    for name in outputs:
        assert len(expected[name]) >= 5, name
        assert _table(found[name]) == expected[name], name


@pytest.mark.parametrize("kind", [pytest.param("join", marks=pytest.mark.long), "left_join"])
def test_a_stream_meets_the_table_of_its_time(waves: Waves, kind: str) -> None:
    """Times do not go back here within a table's key, so that the oracle is a replay by time."""
    random_numbers = random.Random(11)
    rows: list[dict[str, list[Event]]] = []
    for wave in range(2):
        events: dict[str, list[Event]] = {"orders": [], "customers": []}
        for case in range(CASES):
            times = sorted(random_numbers.sample(range(1000), random_numbers.randint(1, 6)))
            for number, at_ms in enumerate(times):
                at_ms += wave * 10_000
                if random_numbers.random() < 0.5:
                    value = {"n": number + 10 * wave, "customer": ""}
                    events["orders"].append(Event(f"case-{case}", value, at_ms))
                else:
                    gone = random_numbers.random() < 0.3
                    region = {"region": random_numbers.choice("news")}
                    events["customers"].append(Event(f"case-{case}", None if gone else region, at_ms))
        rows.append(events)

    def build(topology: Topology, topics: dict[str, str]) -> None:
        orders = topology.stream(topics["orders"], value=ORDERS)
        customers = topology.table(topics["customers"], value=CUSTOMERS)
        joined = getattr(orders, kind)(customers, lambda order, customer: {"n": order.n, "r": customer.region})
        joined.to(topics["joined"])

    found = by_key(waves.run(build, rows, ["joined"])["joined"])
    expected: dict[str, list[Any]] = {}
    table: dict[str, Any] = {}
    marked = [(event.at_ms, name, event) for wave in rows for name in wave for event in wave[name]]
    for _, name, event in sorted(marked, key=lambda one: (one[0], one[1])):
        key = f'"{event.key}"'
        if name == "customers":
            table[key] = event.value
            continue
        customer = table.get(key)
        if customer is not None:
            expected.setdefault(key, []).append({"n": event.value["n"], "r": customer["region"]})
        elif kind == "left_join":
            expected.setdefault(key, []).append({"n": event.value["n"]})
    assert found == expected


def test_a_global_table_is_looked_up_by_anything(waves: Waves) -> None:
    regions = [Event(letter, {"region": letter * 2}) for letter in "news"] + [Event("w", None, 1)]
    orders = [Event(f"case-{number}", {"n": number, "customer": "newsx"[number % 5]}) for number in range(CASES)]

    def build(topology: Topology, topics: dict[str, str]) -> None:
        table = topology.global_table(topics["customers"], value=CUSTOMERS)
        stream = topology.stream(topics["orders"], value=ORDERS)
        stream.left_join(
            table, lambda order, found: {"n": order.n, "r": found.region}, key=lambda r: r.value.customer
        ).to(topics["joined"])

    found = waves.run(build, [{"customers": regions, "orders": orders}], ["joined"])["joined"]
    expected = {
        f"case-{number}": {"n": number} if letter in "wx" else {"n": number, "r": letter * 2}
        for number in range(CASES)
        for letter in ["newsx"[number % 5]]
    }
    assert dict(found) == expected


@pytest.mark.parametrize("histories", [40, pytest.param(1000, marks=pytest.mark.long)])
def test_a_global_table_holds_what_a_table_holds(waves: Waves, log: LiveLog, histories: int) -> None:
    _told_by_a_global_table(waves, log, 31, histories)


def _told_by_a_global_table(waves: Waves, log: LiveLog, seed: int, histories: int) -> None:
    """Each key is a history: values and tombstones at times that go back, in waves with a restart and a compaction
    between them. After each wave the global table holds the last value of each key, as `table` does.
    """
    random_numbers = random.Random(seed)
    keys = [f"case-{case}" for case in range(histories)]
    rows: list[dict[str, list[Event]]] = []
    for wave in range(3):
        changes = []
        for key in keys:
            for _ in range(random_numbers.randint(0, 4)):
                region = {"region": random_numbers.choice("news")}
                gone = random_numbers.random() < 0.3
                changes.append(Event(key, None if gone else region, random_numbers.randint(-100_000, 100_000)))
        random_numbers.shuffle(changes)
        asked = [Event(key, {"n": wave, "customer": key}) for key in keys]
        rows.append({"customers": changes, "orders": asked})

    def build(topology: Topology, topics: dict[str, str]) -> None:
        whole = topology.global_table(topics["customers"], value=CUSTOMERS)
        orders = topology.stream(topics["orders"], value=ORDERS)
        joined = orders.left_join(whole, lambda order, row: {"wave": order.n, "r": row.region})
        joined.to(topics["looked_up"])
        topology.table(topics["customers"], value=CUSTOMERS).to_stream().to_table(store="kept").to(topics["copy"])

    written: list[int] = []

    def compacted(topics: dict[str, str]) -> None:
        written.append(len(rows[len(written)]["customers"]))
        ends_at = time.monotonic() + 30
        while (left := len(log.read(topics["customers"]))) >= sum(written):
            assert time.monotonic() < ends_at, f"{left} records: nothing was compacted"
            time.sleep(0.1)

    small = {"cleanup_policy": "compact", "internal_segment_bytes": "1024", "min_cleanable_dirty_ratio": "0.01"}
    found = waves.run(build, rows, ["looked_up", "copy"], configs={"customers": small}, between=compacted)
    last: dict[str, Any] = {}
    expected = set()
    for number, changed in enumerate(rows):
        last |= {str(event.key): event.value for event in changed["customers"]}
        expected |= {(key, number, last[key]["region"] if last.get(key) else None) for key in keys}
    assert {(key, value["wave"], value.get("r")) for key, value in found["looked_up"]} == expected
    assert _table(found["copy"]) == {key: value for key, value in last.items() if value is not None}
