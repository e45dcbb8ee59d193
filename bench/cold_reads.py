"""`python -m bench.cold_reads`: a replay from disk must not disturb those who follow the log's end.

The broker runs in a memory cgroup, so that most of a 2 GB topic is not in memory. Quiet: one producer at 1,000
records/s and one tail. Then the same while a third client replays the 2 GB, over and over until the pair is done. The
goal: tail p99 at most twice the quiet p99 + 5 ms. The replaying client is raw and niced, since all clients share a core
and it is the broker that is measured.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench import machine
from bench.cells import LARGE_BATCH, SMALL_BATCH, Cell
from bench.measure import LATENCY_RATE, Bench
from bench.memory_group import NoMemoryGroups, memory_group
from bench.report import stamp, write_section
from bench.startup import measure_startup
from bench.systems import SYSTEMS, NodeFailed
from bench.systems.node import bytes_read_from_disk
from bench.worker import Load, LoadFailed, run_load
from tools import peers

MIB = 1 << 20
HEAVY = Cell(record_bytes=10_000, batch_bytes=LARGE_BATCH, acks="1", codec="none")
PACED = Cell(record_bytes=1000, batch_bytes=SMALL_BATCH, acks="all", codec="none")


@dataclass(frozen=True, slots=True, kw_only=True)
class ColdReads:
    """Medians over the rounds, of one system."""

    limit_bytes: int
    quiet_p99_ms: float
    busy_p99_ms: float
    replay_megabytes_per_second: float
    replays: int
    disk_share: float

    @property
    def allowed_ms(self) -> float:
        return 2 * self.quiet_p99_ms + 5


def _pair(bench: Bench, topic: str, seconds: float) -> Load:
    """Start the tail, then the paced producer; the tail's result carries the latency."""
    common = bench.arguments(PACED, topic) | {"rate": LATENCY_RATE, "seconds": seconds}
    follower = Load("tail", **common)
    follower.wait_until_ready()
    run_load("paced_produce", **common)
    return follower


def _replay_until(bench: Bench, topic: str, follower_topic: str, seconds: float) -> tuple[dict[str, Any], list[float]]:
    """Run the pair while another client replays; (the tail's latencies, the replays' MB/s)."""
    rates: list[float] = []
    common = bench.arguments(PACED, follower_topic) | {"rate": LATENCY_RATE, "seconds": seconds}
    follower = Load("tail", **common)
    follower.wait_until_ready()
    replay = Load("replay", **bench.arguments(HEAVY, topic), nice=10)
    time.sleep(0.5)
    producer = Load("paced_produce", **common)
    while True:
        result = replay.result()
        rates.append(result["bytes"] / 1e6 / result["seconds"])
        if not producer.running:
            break
        replay = Load("replay", **bench.arguments(HEAVY, topic), nice=10)
    producer.result()
    return follower.result(), rates


def measure(
    system: str, directory: Path, *, limit_bytes: int, replay_bytes: int, seconds: float, rounds: int, heap_mib: int
) -> ColdReads:
    broker_core, client_core = machine.cores()
    with (
        memory_group(limit_bytes) as group,
        SYSTEMS[system](directory, core=broker_core, memory_group=group, heap_mib=heap_mib) as node,
    ):
        bench = Bench(node, client_core=client_core)
        cold_topic, tail_topic = bench.new_topic(), bench.new_topic(partitions=1)
        run_load("produce", **bench.arguments(HEAVY, cold_topic), total_bytes=replay_bytes)
        bench.sync_disk()
        quiet, busy, rates = [], [], []
        _pair(bench, tail_topic, 2).result()
        read_before = bytes_read_from_disk(node.pid)
        for _ in range(rounds):
            quiet.append(_pair(bench, tail_topic, seconds).result()["p99_ms"])
            followed, some_rates = _replay_until(bench, cold_topic, tail_topic, seconds)
            busy.append(followed["p99_ms"])
            rates += some_rates
        disk_bytes = bytes_read_from_disk(node.pid) - read_before
        node.stop()
    return ColdReads(
        limit_bytes=limit_bytes,
        quiet_p99_ms=median(quiet),
        busy_p99_ms=median(busy),
        replay_megabytes_per_second=median(rates),
        replays=len(rates),
        disk_share=disk_bytes / (len(rates) * replay_bytes),
    )


def _row(system: str, result: ColdReads, judged: bool) -> str:
    met = "" if not judged else "met" if result.busy_p99_ms <= result.allowed_ms else "missed"
    return (
        f"| {system} | {result.limit_bytes / MIB:.0f} | {result.quiet_p99_ms:.2f} | {result.busy_p99_ms:.2f}"
        f" | {result.allowed_ms:.2f} {met} | {result.replay_megabytes_per_second:.0f} | {result.replays}"
        f" | {result.disk_share:.0%} |"
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.cold_reads", description="A replay beside a tail.")
    parser.add_argument("--only", choices=list(SYSTEMS), help="one system; writes no docs")
    parser.add_argument("--megabytes", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    systems = [chosen.only] if chosen.only else list(SYSTEMS)
    lines = [
        "| system | limit MiB | quiet tail p99 ms | tail p99 ms during replay | allowed ms | replay MB/s | replays"
        " | from disk |",
        "|---|---|---|---|---|---|---|---|",
    ]
    directory = machine.scratch_directory("cold-")
    try:
        for system in systems:
            idle_bytes = 0
            if system == "millbeck":
                _, idle_bytes = measure_startup(system, directory / "idle", core=machine.cores()[0])
            limit_bytes = idle_bytes + 512 * MIB if system == "millbeck" else 1536 * MIB
            try:
                result = measure(
                    system,
                    directory / system,
                    limit_bytes=limit_bytes,
                    replay_bytes=chosen.megabytes * 1_000_000,
                    seconds=chosen.seconds,
                    rounds=chosen.rounds,
                    heap_mib=512,
                )
                lines.append(_row(system, result, judged=system == "millbeck"))
            except (NodeFailed, LoadFailed, peers.PeerUnavailable) as failure:
                if system == "millbeck":
                    raise
                reason = str(failure).splitlines()[0]
                lines.append(f"| {system} | {limit_bytes / MIB:.0f} | would not run so: {reason} | | | | | |")
            print(lines[-1], flush=True)
    except NoMemoryGroups as missing:
        print(f"cold reads are not measured here: {missing}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    if not chosen.only:
        write_section("cold-reads", [*stamp(machine.facts(True)), *lines])
    return 0


if __name__ == "__main__":
    sys.exit(main())
