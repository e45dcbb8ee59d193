"""The tables of `bench.cluster`, and whether the goals are met. Ratios above 1 are in millbeck's favour."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import TypeVar

from bench.cluster_measure import Failover, Produced, Return

OURS, THEIRS = "millbeck", "apache-kafka"
CPU_GOAL = 1.0
CPU_OPEN = 1.25

T = TypeVar("T")
Rounds = Mapping[str, Mapping[str, Sequence[T]]]
"""By row, then by system."""


def _ratio(by_system: Mapping[str, Sequence[T]], pick: Callable[[T], float]) -> float | None:
    """millbeck's over Kafka's in the same round, the median over the rounds."""
    ours, theirs = by_system.get(OURS, []), by_system.get(THEIRS, [])
    if not ours or len(ours) != len(theirs):
        return None
    return median(pick(own) / max(1e-9, pick(other)) for own, other in zip(ours, theirs, strict=True))


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"


def _cpu(one: Produced) -> float:
    return one.transfer.broker_cpu_per_gigabyte


def judgement(produced: Rounds[Produced], failovers: Rounds[Failover]) -> list[str]:
    """The two goals, in sentences."""
    lines = []
    shares = {name: share for name, rounds in produced.items() if (share := _ratio(rounds, _cpu)) is not None}
    if shares:
        worst = max(shares, key=shares.__getitem__)
        word = "met" if shares[worst] <= CPU_GOAL else "missed" if shares[worst] <= CPU_OPEN else "missed by far"
        lines.append(
            f"- Broker CPU per GB produced and replicated: {shares[worst]:.2f} of Kafka's at most"
            f" ({worst}; the goal is 1, above {CPU_OPEN} is too much): {word}."
        )
    for name, by_system in failovers.items():
        if not by_system.get(OURS) or not by_system.get(THEIRS):
            continue
        ours, theirs = (median(one.last_seconds for one in by_system[system]) for system in (OURS, THEIRS))
        lines.append(
            f"- {name[0].upper()}{name[1:]}: the last partition is back at session timeout {ours:+.2f} s,"
            f" Kafka's at {theirs:+.2f} s: {'met' if ours <= theirs else 'missed'}."
        )
    return lines or ["- Measured alone: there is nothing to compare with."]


def produce_table(produced: Rounds[Produced], systems: Sequence[str]) -> list[str]:
    if not produced:
        return []
    lines = [
        "**Produce, acks=all, three replicas, min.insync.replicas=2; CPU of all three brokers**",
        "",
        "| record / batch / acks / codec | system | MB/s | CPU s/GB | p50 ms | p99 ms | client busy |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, by_system in produced.items():
        for system in systems:
            rounds = by_system[system]
            p50 = [one.p50_ms for one in rounds if one.p50_ms is not None]
            p99 = [one.p99_ms for one in rounds if one.p99_ms is not None]
            lines.append(
                f"| {name} | {system} | {median(one.transfer.megabytes_per_second for one in rounds):.0f}"
                f" | {median(_cpu(one) for one in rounds):.2f}"
                f" | {_number(median(p50) if p50 else None, 2)} | {_number(median(p99) if p99 else None, 2)}"
                f" | {median(one.transfer.client_busy for one in rounds):.0%} |"
            )
        faster = _ratio(by_system, lambda one: one.transfer.megabytes_per_second)
        dearer = _ratio(by_system, _cpu)
        timed = all(one.p99_ms is not None for rounds in by_system.values() for one in rounds)
        slower = _ratio(by_system, lambda one: one.p99_ms or 0.0) if timed else None
        if dearer is not None:
            inverse = None if slower is None else 1 / max(slower, 1e-9)
            lines.append(
                f"| {name} | ratio | {_number(faster, 2)} | {_number(1 / dearer, 2)} | | {_number(inverse, 2)} | |"
            )
    return [*lines, ""]


def failover_table(failovers: Rounds[Failover], systems: Sequence[str]) -> list[str]:
    """Milliseconds beyond the session timeout; below zero when the last heartbeat was some time before the kill."""
    if not failovers:
        return []
    lines = [
        "**Failover: kill -9 to the first acknowledged record of each partition the victim led, minus the session "
        "timeout, ms**",
        "",
        "| what | system | median partition | last partition | worst round | rounds |",
        "|---|---|---|---|---|---|",
    ]
    for name, by_system in failovers.items():
        for system in systems:
            rounds = by_system[system]
            middle = median(one.median_seconds for one in rounds)
            last = median(one.last_seconds for one in rounds)
            worst = max(one.last_seconds for one in rounds)
            lines.append(
                f"| {name} | {system} | {middle * 1000:.0f} | {last * 1000:.0f} | {worst * 1000:.0f} | {len(rounds)} |"
            )
    return [*lines, ""]


def return_table(returns: Rounds[Return], systems: Sequence[str]) -> list[str]:
    if not returns:
        return []
    lines = [
        "**A broker comes back: from its start to all replicas in sync; CPU of all three brokers, start-up included**",
        "",
        "| what | system | MB of the topic | seconds | CPU s | CPU s/GB |",
        "|---|---|---|---|---|---|",
    ]
    for name, by_system in returns.items():
        for system in systems:
            rounds = by_system[system]
            lines.append(
                f"| {name} | {system} | {rounds[0].size_bytes / 1e6:.0f} | {median(one.seconds for one in rounds):.2f}"
                f" | {median(one.cpu_seconds for one in rounds):.2f}"
                f" | {median(one.cpu_per_gigabyte for one in rounds):.2f} |"
            )
    return [*lines, ""]
