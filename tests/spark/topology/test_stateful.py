"""The state of a key in Spark: what a logic puts away is there in the next batch and after a restart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from pyspark.sql import functions as sf
from pyspark.sql.types import LongType, StringType

from millbeck.pipeline.topology.keyed import InputRecord, KeyState, OutputRecord
from millbeck.pipeline.topology.serdes import json
from millbeck.pipeline.topology.stateful import JoinInput, run_keyed
from tests.spark.waves import Event, by_key

if TYPE_CHECKING:
    from millbeck.pipeline.topology.topology import Topology
    from tests.spark.waves import Waves


@dataclass(frozen=True)
class Remember:
    """Puts each number in the map, and forgets those that come a second time."""

    def arrived(self, slots: KeyState, arrivals: Iterator[InputRecord]) -> Iterator[OutputRecord]:
        known = dict(slots.entries())
        last = None
        for arrival in arrivals:
            number = str(arrival.value["n"])
            kept = None if number in known else 1
            slots.put_entry(number, kept)
            known.pop(number, None)
            if kept is not None:
                known[number] = kept
            last = arrival
        if last is not None:
            yield OutputRecord((",".join(sorted(known)),), last.timestamp, last.order)


def test_slots_and_entries_outlive_the_batch(waves: Waves) -> None:
    numbers = [[(case + wave * step) % 7 for step in range(1, 4)] for case in range(50) for wave in range(2)]
    rows = [
        {"numbers": [Event(f"case-{case}", {"n": n}) for case in range(50) for n in numbers[2 * case + wave]]}
        for wave in range(2)
    ]

    def build(topology: Topology, topics: dict[str, str]) -> None:
        stream = topology.stream(topics["numbers"], value=json("n INT"))
        side = JoinInput(stream.frame, key=sf.col("key"), value=sf.col("value"))
        made = run_keyed(
            [side], Remember(), slots={}, outputs={"value": StringType()}, entries=(StringType(), LongType())
        )
        topology.table_of(made).to(topics["kept"])

    found = by_key(waves.run(build, rows, ["kept"])["kept"])
    for case in range(50):
        kept: set[int] = set()
        told = []
        for wave in range(2):
            for number in numbers[2 * case + wave]:
                kept ^= {number}
            told.append(",".join(str(number) for number in sorted(kept)))
        assert [str(value) for value in found[f'"case-{case}"']] == told
