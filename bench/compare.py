"""From rounds to verdicts: medians, ratios of paired rounds, client-bound cells.

A ratio is millbeck over Apache Kafka in the same turn; the median over all turns of all rounds counts. A direction of a
cell is client-bound when, on either system, the client's core was at least 90 % busy while the broker's was below: the
broker was then waiting for the client, and the cell is judged by broker CPU per gigabyte instead of by throughput.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from bench.measure import CellResult, Transfer

GOOD_ENOUGH = 0.95
TOO_SLOW = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Direction:
    """Produce or consume in one cell, both systems. Ratios above 1 are in millbeck's favour."""

    ours_megabytes: float
    theirs_megabytes: float | None
    ours_cpu: float
    theirs_cpu: float | None
    ours_client_busy: float
    theirs_client_busy: float | None
    throughput_ratio: float | None
    cpu_ratio: float | None
    client_bound: bool

    @property
    def judged_ratio(self) -> float | None:
        return self.cpu_ratio if self.client_bound else self.throughput_ratio

    @property
    def verdict(self) -> str:
        ratio = self.judged_ratio
        if ratio is None:
            return "alone"
        word = "ahead" if ratio > 1 else "level" if ratio >= GOOD_ENOUGH else "behind"
        return f"{word}{', by CPU' if self.client_bound else ''}"


def _median_of(results: Sequence[CellResult], pick: Callable[[CellResult], float | None]) -> float | None:
    values = [value for result in results if (value := pick(result)) is not None]
    return median(values) if values else None


def _paired(ours: list[Transfer], theirs: list[Transfer], ratio: Callable[[Transfer, Transfer], float]) -> float | None:
    return median(ratio(own, other) for own, other in zip(ours, theirs, strict=True)) if theirs else None


def _cpu_ratio(own: Transfer, other: Transfer) -> float:
    return other.broker_cpu_per_gigabyte / max(own.broker_cpu_per_gigabyte, 1e-6)


def compare_direction(ours: list[Transfer], theirs: list[Transfer]) -> Direction:
    """`theirs` may be empty: millbeck was then measured alone."""
    return Direction(
        ours_megabytes=median(one.megabytes_per_second for one in ours),
        theirs_megabytes=median(one.megabytes_per_second for one in theirs) if theirs else None,
        ours_cpu=median(one.broker_cpu_per_gigabyte for one in ours),
        theirs_cpu=median(one.broker_cpu_per_gigabyte for one in theirs) if theirs else None,
        ours_client_busy=median(one.client_busy for one in ours),
        theirs_client_busy=median(one.client_busy for one in theirs) if theirs else None,
        throughput_ratio=_paired(
            ours, theirs, lambda own, other: own.megabytes_per_second / other.megabytes_per_second
        ),
        cpu_ratio=_paired(ours, theirs, _cpu_ratio),
        client_bound=_bound(ours) or _bound(theirs),
    )


def _bound(rounds: list[Transfer]) -> bool:
    return bool(rounds) and sum(one.client_bound for one in rounds) * 2 > len(rounds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One cell, both systems, all rounds."""

    cell_name: str
    produce: Direction
    consume: Direction
    ours_latency: tuple[float | None, float | None, float | None]
    theirs_latency: tuple[float | None, float | None, float | None]
    ours_rss_bytes: float
    theirs_rss_bytes: float | None


def _latency(results: list[CellResult]) -> tuple[float | None, float | None, float | None]:
    return (
        _median_of(results, lambda one: one.produce_p50_ms),
        _median_of(results, lambda one: one.produce_p99_ms),
        _median_of(results, lambda one: one.end_to_end_p99_ms),
    )


def compare(cell_name: str, ours: list[CellResult], theirs: list[CellResult]) -> Comparison:
    return Comparison(
        cell_name=cell_name,
        produce=compare_direction([one.produce for one in ours], [one.produce for one in theirs]),
        consume=compare_direction(
            [turn for one in ours for turn in one.consumes], [turn for one in theirs for turn in one.consumes]
        ),
        ours_latency=_latency(ours),
        theirs_latency=_latency(theirs),
        ours_rss_bytes=median(one.rss_bytes for one in ours),
        theirs_rss_bytes=_median_of(theirs, lambda one: one.rss_bytes),
    )


def summary(comparisons: list[Comparison]) -> list[str]:
    """What the table says, in sentences: the goals and whether they are met."""
    directions = [
        (f"{direction_name} {one.cell_name}", direction)
        for one in comparisons
        for direction_name, direction in (("produce", one.produce), ("consume", one.consume))
    ]
    judged = [(name, direction.judged_ratio) for name, direction in directions if direction.judged_ratio is not None]
    if not judged:
        return ["Measured alone: there is nothing to compare with."]
    behind = [f"{name} ({ratio:.2f})" for name, ratio in judged if ratio < GOOD_ENOUGH]
    much_behind = [f"{name} ({ratio:.2f})" for name, ratio in judged if ratio < TOO_SLOW]
    lines = [
        f"Ahead in {sum(ratio > 1 for _, ratio in judged)} of {len(judged)} directions"
        f" ({sum(direction.client_bound for _, direction in directions)} client-bound, judged by broker CPU per GB).",
        f"Below {GOOD_ENOUGH}: {', '.join(behind) if behind else 'none'}."
        f" Below {TOO_SLOW}: {', '.join(much_behind) if much_behind else 'none'}.",
    ]
    half = [one for one in comparisons if "16 KB" in one.cell_name and one.cell_name.endswith("none")]
    shares = [1 / one.produce.cpu_ratio for one in half if one.produce.cpu_ratio]
    if shares:
        lines.append(f"Broker CPU per GB produced in uncompressed 16 KB batches: {max(shares):.2f} of Kafka's at most.")
    slower = [
        one.cell_name
        for one in comparisons
        if one.ours_latency[1] is not None
        and one.theirs_latency[1] is not None
        and one.ours_latency[1] > one.theirs_latency[1]
    ]
    lines.append(f"Produce p99 worse than Kafka's: {', '.join(slower) if slower else 'nowhere'}.")
    return lines
