"""Generated topologies against plain Python: a running result is the aggregate of a prefix of its records.

With ``update`` prefixes only grow, and the last one is all of them, which is also the final result; with ``every`` each
prefix is there once, in order. Windows close when their sources are idle.
"""

from __future__ import annotations

import json as json_module
import random
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from pyspark.sql import Column
from pyspark.sql import functions as sf

from millbeck.pipeline.topology.serdes import json
from millbeck.pipeline.topology.windows import hopping, tumbling
from millbeck.testing.plugin import topology_driver  # noqa: F401  (the fixture)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millbeck.pipeline.topology.topology import Topology
    from millbeck.testing.topology_driver import TopologyTestDriver

    Drivers = Callable[..., TopologyTestDriver]

SECOND_MS = 1000
BATCHES = 3
RECORDS = 40

AGGREGATES: dict[str, tuple[Callable[[Column], Column], Callable[[list[int]], Any]]] = {
    "count": (sf.count, len),
    "sum": (sf.sum, sum),
    "max": (sf.max, max),
    "min": (sf.min, min),
    "span": (lambda n: sf.max(n) - sf.min(n), lambda n: max(n) - min(n)),
    "last": (sf.last, lambda n: n[-1]),
    "listed": (lambda n: sf.array_join(sf.collect_list(n), "-"), lambda n: "-".join(map(str, n))),
}


class Generated(NamedTuple):
    """Records whose number is no multiple of ``dropped``, grouped by their key or by number modulo ``modulus``."""

    name: str
    dropped: int
    modulus: int | None
    size_s: int | None
    advance_s: int
    aggregate: str
    emit: str

    @classmethod
    def of(cls, random_numbers: random.Random, number: int) -> Generated:
        size_s = random_numbers.choice([None, 10, 20, 60])
        return cls(
            f"out-{number}",
            random_numbers.choice([2, 3, 1000]),
            random_numbers.choice([None, 2, 5]),
            size_s,
            size_s // random_numbers.choice([1, 2]) if size_s else 0,
            random_numbers.choice(list(AGGREGATES)),
            random_numbers.choice(["update", "every"]),
        )

    def build(self, topology: Topology) -> None:
        numbers = topology.stream("numbers", value=json("n BIGINT")).filter(lambda r: r.value.n % self.dropped != 0)
        described, _ = AGGREGATES[self.aggregate]
        modulus = self.modulus
        grouped = (
            numbers.group_by_key()
            if modulus is None
            else numbers.group_by(lambda r: (r.value.n % modulus).cast("string"))
        )
        if self.size_s is None:
            table = grouped.aggregate_columns(lambda r: {"made": described(r.value.n)}, emit=self.emit)
            table.to(self.name)
            return
        size, advance = f"{self.size_s} seconds", f"{self.advance_s} seconds"
        window = tumbling(size) if self.advance_s == self.size_s else hopping(size, advance=advance)
        for emit, topic in ((self.emit, self.name), ("final", f"{self.name}-final")):
            results = grouped.windowed_by(window, emit=emit).aggregate(lambda r: {"made": described(r.value.n)})
            results.to(topic)

    def groups(self, records: list[tuple[str, int, int]]) -> dict[tuple[str, int], list[int]]:
        """The numbers of each key, and start of a window, in the order of the log."""
        found: dict[tuple[str, int], list[int]] = {}
        for key, n, at_ms in records:
            if n % self.dropped == 0:
                continue
            name = key if self.modulus is None else str(n % self.modulus)
            if self.size_s is None:
                found.setdefault((name, 0), []).append(n)
                continue
            size, advance = self.size_s * SECOND_MS, self.advance_s * SECOND_MS
            for start in range(at_ms - at_ms % advance, at_ms - size, -advance):
                found.setdefault((name, start), []).append(n)
        return found

    def told(self, driver: TopologyTestDriver, topic: str) -> dict[tuple[str, int], list[Any]]:
        found: dict[tuple[str, int], list[Any]] = {}
        for record in driver.read(topic):
            made = json_module.loads(record.value or b"null")["made"]
            text = (record.key or b"").decode()
            if self.size_s is None:
                found.setdefault((text, 0), []).append(made)
                continue
            key = json_module.loads(text)
            start = datetime.fromisoformat(key["start"]).astimezone(UTC).timestamp()
            found.setdefault((key["key"], round(start * 1000)), []).append(made)
        return found


@pytest.fixture
def topology_spark(spark: SparkSession) -> SparkSession:
    return spark


def _grows(told: list[Any], prefixes: list[Any]) -> bool:
    """Whether the results are those of longer and longer prefixes, the last one of all records."""
    position = -1
    for result in told[:-1]:
        position = next((at for at in range(position + 1, len(prefixes)) if prefixes[at] == result), len(prefixes))
        if position == len(prefixes):
            return False
    return position < len(prefixes) - 1 and told[-1] == prefixes[-1]


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
def test_running_results_are_aggregates_of_prefixes(topology_driver: Drivers, seed: int) -> None:  # noqa: F811
    random_numbers = random.Random(seed)
    generated = [Generated.of(random_numbers, number) for number in range(5)]

    def build(topology: Topology) -> None:
        for one in generated:
            one.build(topology)

    driver = topology_driver(build, options={"idleAfter": "10s"})
    records: list[tuple[str, int, int]] = []
    for batch in range(BATCHES):
        for _ in range(RECORDS):
            at_ms = batch * 60 * SECOND_MS + random_numbers.randint(0, 59) * SECOND_MS
            records.append((random_numbers.choice("abc"), random_numbers.randint(1, 99), at_ms))
            key, n, _ = records[-1]
            driver.pipe("numbers", {"n": n}, key=key, at=at_ms)
        driver.advance()
    driver.advance(idle_at=BATCHES * 60 * SECOND_MS + 120 * SECOND_MS)
    for one in generated:
        _, plain = AGGREGATES[one.aggregate]
        told, groups = one.told(driver, one.name), one.groups(records)
        assert set(told) == set(groups), one
        for name, numbers in groups.items():
            prefixes = [plain(numbers[: count + 1]) for count in range(len(numbers))]
            if one.emit == "every":
                assert told[name] == prefixes, (one, name)
            else:
                assert _grows(told[name], prefixes), (one, name, told[name], prefixes)
        if one.size_s is not None and one.aggregate not in ("last", "listed"):
            final = one.told(driver, f"{one.name}-final")
            assert final == {name: [results[-1]] for name, results in told.items()}, one
