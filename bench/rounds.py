"""One round of a cell on all systems, step by step beside each other.

A machine's weather changes within seconds, and what is compared should be measured in the same weather. So a step runs
on one system and then on the other before the next one begins. What one has written reaches the disk before the other
writes, or whoever comes second would pay for both. Consuming often takes a fraction of a second, too short to say much:
what was produced is consumed several times, in turns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.cells import Cell
from bench.measure import Bench, CellResult

CONSUMES = 3


def run_round(
    benches: Mapping[str, Bench], order: Sequence[str], cell: Cell, *, total_bytes: int, latency_seconds: float
) -> dict[str, CellResult]:
    """By system, in ``order``; without ``latency_seconds`` single records are not timed."""
    produced = {}
    for system in order:
        produced[system] = benches[system].produce(cell, total_bytes)
        benches[system].sync_disk()
    turns = [
        {
            system: benches[system].consume(cell, produced[system][0])
            for system in (order if turn % 2 == 0 else order[::-1])
        }
        for turn in range(CONSUMES)
    ]
    for system in order:
        benches[system].delete_topic(produced[system][0].topic)
    timed = {
        system: benches[system].latency(cell, latency_seconds) if latency_seconds else ({}, {}) for system in order
    }
    return {
        system: CellResult(
            produce=produced[system][1],
            consumes=tuple(turn[system] for turn in turns),
            produce_p50_ms=timed[system][0].get("p50_ms"),
            produce_p99_ms=timed[system][0].get("p99_ms"),
            end_to_end_p50_ms=timed[system][1].get("p50_ms"),
            end_to_end_p99_ms=timed[system][1].get("p99_ms"),
            rss_bytes=benches[system].node.usage().rss_bytes,
        )
        for system in order
    }
