"""`python -m bench.cluster`: three nodes of millbeck beside three of Apache Kafka, one run, interleaved rounds.

All six processes and the client share the machine, so a wall-clock figure says little about a broker. What is judged is
the CPU that all brokers of a cluster use per gigabyte that a client produced (with two copies made of it), and how long
after the session timeout the partitions of a killed leader take records again. Throughput, p99 and the time a broker
needs to fetch everything anew are printed beside.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import sys
import time
from collections import defaultdict
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench import machine
from bench.cells import LARGE_BATCH, SMALL_BATCH, Cell
from bench.cluster_measure import ClusterBench, Failover, Produced, Return
from bench.cluster_report import failover_table, judgement, produce_table, return_table
from bench.report import stamp, write_section
from bench.systems import SYSTEMS, compared_systems
from bench.systems.cluster import BrokerCluster
from tools import peers

CELLS = tuple(
    Cell(record_bytes=1000, batch_bytes=batch_bytes, acks="all", codec="none")
    for batch_bytes in (SMALL_BATCH, LARGE_BATCH)
)
OVERRIDES = {"log.segment.delete.delay.ms": "200"}
QUICK = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
DEFAULT = {"broker.session.timeout.ms": "9000", "broker.heartbeat.interval.ms": "2000"}
RESULTS = peers.ROOT / "build" / "bench"
MEGA = 1_000_000

Results = dict[str, dict[str, list[Any]]]
"""By what was measured, then by system, a list of rounds."""


def _print_line(text: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {text}", flush=True)


def _produce_rounds(
    benches: dict[str, ClusterBench], results: Results, *, rounds: int, total_bytes: int, latency_seconds: float
) -> None:
    for bench in benches.values():
        for cell in CELLS:
            bench.produce(cell, total_bytes=total_bytes, latency_seconds=0)
        _print_line(f"{bench.cluster.name} is warm")
    for number in range(rounds):
        order = list(benches) if number % 2 == 0 else list(benches)[::-1]
        for cell in CELLS:
            for system in order:
                one = benches[system].produce(cell, total_bytes=total_bytes, latency_seconds=latency_seconds)
                results[cell.name][system].append(one)
                _print_line(
                    f"round {number + 1} {cell.name}: {system} {one.transfer.megabytes_per_second:.0f} MB/s,"
                    f" {one.transfer.broker_cpu_per_gigabyte:.2f} CPU s/GB, p99 {one.p99_ms or 0:.2f} ms"
                )


def _failover_rounds(
    benches: dict[str, ClusterBench], results: Results, *, name: str, settings: dict[str, str], rounds: int
) -> None:
    for bench in benches.values():
        bench.cluster.change(settings)
    session_seconds = int(settings["broker.session.timeout.ms"]) / 1000
    for number in range(rounds):
        for of_controller in (False, True):
            for system, bench in benches.items():
                one = bench.failover(session_seconds=session_seconds, of_controller=of_controller)
                whom = "controller" if of_controller else "broker"
                results[f"failover of a {whom}, {name}"][system].append(one)
                _print_line(
                    f"failover {number + 1} of a {whom}, {name}: {system} session + {one.median_seconds:.3f} s,"
                    f" the last + {one.last_seconds:.3f} s"
                )


def _returns(benches: dict[str, ClusterBench], results: Results, *, total_bytes: int, rounds: int) -> None:
    for _ in range(rounds):
        for system, bench in benches.items():
            with_data, emptied = bench.returns(total_bytes=total_bytes)
            results["returns with its data"][system].append(with_data)
            results["returns with an empty disk"][system].append(emptied)
            _print_line(
                f"{system}: in sync {with_data.seconds:.2f} s after a restart ({with_data.cpu_seconds:.2f} CPU s),"
                f" {emptied.seconds:.2f} s with an empty disk ({emptied.cpu_seconds:.2f} CPU s)"
            )


def _measure(chosen: argparse.Namespace, systems: list[str], directory: Path) -> Results:
    results: Results = defaultdict(lambda: defaultdict(list))
    with contextlib.ExitStack() as stack:
        benches = {}
        for system in systems:
            cluster = BrokerCluster(SYSTEMS[system], directory / system, overrides=OVERRIDES | DEFAULT)
            benches[system] = ClusterBench(stack.enter_context(cluster))
            _print_line(f"three nodes of {system} are up")
        if "produce" in chosen.parts:
            _produce_rounds(
                benches,
                results,
                rounds=chosen.rounds,
                total_bytes=chosen.megabytes * MEGA,
                latency_seconds=chosen.latency_seconds,
            )
        if "return" in chosen.parts:
            _returns(benches, results, total_bytes=chosen.return_megabytes * MEGA, rounds=chosen.return_rounds)
        if "failover" in chosen.parts:
            quick, default = chosen.failover_rounds, chosen.default_failover_rounds
            _failover_rounds(benches, results, name="session 3 s", settings=QUICK, rounds=quick)
            if default:
                _failover_rounds(benches, results, name="session 9 s", settings=DEFAULT, rounds=default)
    return results


def _lines(results: Results, systems: list[str]) -> list[str]:
    """The section of the page: the verdict, then a table of each kind."""
    kinds: dict[type, dict[str, dict[str, list[Any]]]] = {Produced: {}, Failover: {}, Return: {}}
    for name, by_system in results.items():
        kinds[type(by_system[systems[0]][0])][name] = by_system
    return [
        *judgement(kinds[Produced], kinds[Failover]),
        "",
        *produce_table(kinds[Produced], systems),
        *failover_table(kinds[Failover], systems),
        *return_table(kinds[Return], systems),
    ]


def main() -> int:
    parts = ("produce", "return", "failover")
    parser = argparse.ArgumentParser(prog="python -m bench.cluster", description="Three nodes beside Apache Kafka's.")
    parser.add_argument("--only", choices=list(SYSTEMS), help="one system; writes no docs")
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts, help="some of them; writes no docs")
    parser.add_argument(
        "--against", type=Path, metavar="DIR", help="beside the compiled millbeck of another checkout; writes no docs"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--megabytes", type=int, default=512, help="produced in each cell")
    parser.add_argument("--latency-seconds", type=float, default=6)
    parser.add_argument("--failover-rounds", type=int, default=4, help="with a session of 3 s")
    parser.add_argument("--default-failover-rounds", type=int, default=2, help="with the default session of 9 s")
    parser.add_argument("--return-megabytes", type=int, default=2000)
    parser.add_argument("--return-rounds", type=int, default=1)
    chosen = parser.parse_args()
    systems = compared_systems(chosen.only, chosen.against)
    facts = machine.facts("apache-kafka" in systems)
    started_s = time.monotonic()
    directory = machine.scratch_directory("cluster-")
    try:
        results = _measure(chosen, systems, directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    lines = [*stamp(facts), *_lines(results, systems)]
    lines.append(
        f"The run took {(time.monotonic() - started_s) / 60:.0f} minutes: {chosen.rounds} rounds,"
        f" {chosen.megabytes} MB a cell, {chosen.return_megabytes} MB fetched anew."
    )
    RESULTS.mkdir(parents=True, exist_ok=True)
    as_json = {
        f"{system} {name}": [asdict(one) for one in rounds]
        for name, by_system in results.items()
        for system, rounds in by_system.items()
    }
    (RESULTS / "cluster.json").write_text(json.dumps(as_json, indent=1))
    print("\n".join(lines))
    if systems[1:] == ["apache-kafka"] and set(chosen.parts) == set(parts):
        write_section("cluster", lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
