"""One cell past the dirty-page limit: the kernel throttles writers, and the broker's loop must not feel it.

Large batches are produced until the machine's dirty pages have passed the kernel's threshold. On a machine with much
memory that would take many gigabytes, so the limit is lowered for this cell where we may (as root) and put back after
it. Beside the throughput the cell reports how far the kernel got, the loop lag that millbeck's own metrics saw, and
what a paced producer on another topic felt meanwhile, in the worst of its five-second stints.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from bench import machine
from bench.cells import LARGE_BATCH, Cell
from bench.measure import LATENCY_RATE, Bench
from bench.systems import Millbeck
from bench.worker import Load, run_load

BYTES_MAX = 8_000_000_000
LIMIT_BYTES = 256 << 20
VM = Path("/proc/sys/vm")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
HEAVY = Cell(record_bytes=10_000, batch_bytes=LARGE_BATCH, acks="1", codec="none")
PACE = {"rate": LATENCY_RATE, "seconds": 5}
PACED = Cell(record_bytes=1000, batch_bytes=16384, acks="all", codec="none")


class DirtyPeak:
    """Watches /proc/vmstat from a thread."""

    def __init__(self) -> None:
        self.peak_share = 0.0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        while not self._stopping.wait(0.1):
            limit = max(1, machine.vmstat("nr_dirty_threshold"))
            unwritten = machine.vmstat("nr_dirty") + machine.vmstat("nr_writeback")
            self.peak_share = max(self.peak_share, unwritten / limit)

    def __enter__(self) -> DirtyPeak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(5)


def loop_lag_ms(bench: Bench) -> float | None:
    """p99.9 of the loop lag that the node's own metrics report; none for a system without one."""
    if not isinstance(bench.node, Millbeck):
        return None
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{bench.node.metrics_port}/metrics", timeout=10) as reply:
            text = reply.read().decode()
    except OSError:
        return None
    found = re.search(r'^millbeck_loop_lag_ms\{quantile="0.999"\} ([\d.eE+-]+)$', text, re.MULTILINE)
    return float(found.group(1)) if found else None


@contextlib.contextmanager
def lowered_limit(limit_bytes: int = LIMIT_BYTES) -> Iterator[None]:
    """Lower the kernel's dirty limit for a while; without the right to do so, leave it as it is."""
    old_ratio = (VM / "dirty_ratio").read_text()
    old_bytes = (VM / "dirty_bytes").read_text()
    try:
        (VM / "dirty_bytes").write_text(str(limit_bytes))
    except OSError:
        yield
        return
    try:
        yield
    finally:
        # Whichever of the two is written last is the one in force.
        if int(old_bytes):
            (VM / "dirty_bytes").write_text(old_bytes)
        else:
            (VM / "dirty_ratio").write_text(old_ratio)


def bytes_to_pass_the_limit() -> int:
    """Eight times the kernel's threshold, since the disk writes all the while; within the bound."""
    return min(BYTES_MAX, 8 * machine.vmstat("nr_dirty_threshold") * PAGE_BYTES)


def dirty_page_section(benches: dict[str, Bench]) -> list[str]:
    with lowered_limit():
        return _measure(benches)


def _measure(benches: dict[str, Bench]) -> list[str]:
    total_bytes = bytes_to_pass_the_limit()
    limit_bytes = machine.vmstat("nr_dirty_threshold") * PAGE_BYTES
    lines = [
        f"**Past the dirty-page limit ({limit_bytes >> 20} MiB):"
        f" {total_bytes / 1e9:.1f} GB in 1 MB batches beside a paced producer**",
        "",
        "| system | MB/s | peak of dirty pages / limit | paced produce p50 ms | p99 ms | max ms | loop lag p99.9 ms |",
        "|---|---|---|---|---|---|---|",
    ]
    for system, bench in benches.items():
        heavy_topic, paced_topic = bench.new_topic(), bench.new_topic(partitions=1)
        with DirtyPeak() as peak:
            heavy = Load("produce", **bench.arguments(HEAVY, heavy_topic), total_bytes=total_bytes, nice=10)
            stints = [run_load("paced_produce", **bench.arguments(PACED, paced_topic), **PACE)]
            while heavy.running:
                stints.append(run_load("paced_produce", **bench.arguments(PACED, paced_topic), **PACE))
            transferred = heavy.result()
        worst = max(stints, key=lambda one: float(one["p99_ms"]))
        lag_ms = loop_lag_ms(bench)
        for topic in (heavy_topic, paced_topic):
            bench.delete_topic(topic)
        rate = transferred["bytes"] / 1e6 / transferred["seconds"]
        lines.append(
            f"| {system} | {rate:.0f} | {peak.peak_share:.0%} | {worst['p50_ms']:.2f} | {worst['p99_ms']:.2f}"
            f" | {worst['max_ms']:.1f} | {'–' if lag_ms is None else f'{lag_ms:.1f}'} |"
        )
    return [*lines, ""]
