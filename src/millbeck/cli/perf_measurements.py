"""Latency and throughput measurements of ``millbeck perf``, and their summary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MEGABYTE: Final = 1 << 20
QUANTILES: Final = (0.5, 0.95, 0.99, 0.999)


class Latencies:
    """A histogram with steps of 0.1 ms: its size does not depend on the number of measurements."""

    STEP_MS: Final = 0.1
    STEP_COUNT: Final = 600_000

    def __init__(self) -> None:
        self.count = 0
        self.total_ms = 0.0
        self.max_ms = 0.0
        self._counts: dict[int, int] = {}

    def add(self, latency_ms: float) -> None:
        self.count += 1
        self.total_ms += latency_ms
        self.max_ms = max(self.max_ms, latency_ms)
        step = min(int(latency_ms / self.STEP_MS), self.STEP_COUNT)
        self._counts[step] = self._counts.get(step, 0) + 1

    @property
    def mean_ms(self) -> float:
        return self.total_ms / self.count if self.count else 0.0

    def quantile_ms(self, share: float) -> float:
        """The latency that this share of the measurements does not exceed, rounded up to the step."""
        wanted = share * self.count
        seen = 0
        for step in sorted(self._counts):
            seen += self._counts[step]
            if seen >= wanted:
                return min((step + 1) * self.STEP_MS, self.max_ms)
        return self.max_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    record_count: int
    size_bytes: int
    elapsed_s: float

    @property
    def records_per_s(self) -> float:
        return self.record_count / self.elapsed_s if self.elapsed_s > 0 else 0.0

    @property
    def megabytes_per_s(self) -> float:
        return self.size_bytes / MEGABYTE / self.elapsed_s if self.elapsed_s > 0 else 0.0


def produce_line(throughput: Throughput, latencies: Latencies) -> str:
    """The summary line of Kafka's kafka-producer-perf-test."""
    quantiles = ", ".join(f"{latencies.quantile_ms(share):.1f} ms {f'{share * 100:g}'}th" for share in QUANTILES)
    return (
        f"{throughput.record_count} records sent, {throughput.records_per_s:.1f} records/sec "
        f"({throughput.megabytes_per_s:.2f} MB/sec), {latencies.mean_ms:.2f} ms avg latency, "
        f"{latencies.max_ms:.2f} ms max latency, {quantiles}."
    )
