"""The goals of the clients' benchmark are computed from medians, by the right clients and loads."""

from __future__ import annotations

from bench.client_loads import LOADS
from bench.clients import SIZES, Measured, goals, rate, rates_table
from millbeck.compiled import in_use


def figures(**slower: float) -> Measured:
    """Three rounds in which every client does 1,000 records a second, one of them a bad one; some are slower."""
    found: Measured = {}
    for client, load in LOADS:
        for size in SIZES:
            if load == "latency":
                found[client, load, 100] = [{"p50_ms": 1.0, "p99_ms": 2.0}] * 3
                continue
            seconds = slower.get(client.replace("-", "_"), 1.0)
            rounds = [{"records": 1000.0, "seconds": seconds * bad, "cpu_s": seconds * bad} for bad in (1, 9, 1)]
            found[client, load, size] = rounds
    return found


def test_a_rate_is_the_median_of_the_rounds() -> None:
    assert rate(figures(), "millbeck", "produce", 100) == 1000
    assert len(rates_table(figures())) == 2 + len(figures())


def test_goals_compare_with_aiokafka_and_confluent_kafka() -> None:
    least = 2.5 if in_use() else 1.0
    met = {row.what: row.met for row in goals(figures(aiokafka=least + 0.1, confluent_kafka=1.1))}
    assert len(met) == 13
    assert all(met.values())
    missed = [row.what for row in goals(figures(aiokafka=0.5, confluent_kafka=0.5)) if not row.met]
    assert len(missed) == 8
    assert [what for what in missed if "synchronous" in what or "p99" in what] == []
