"""`python -m bench [--full]`: millbeck beside Apache Kafka, one run, interleaved rounds.

Each broker is pinned to one core and the client to another. In every round each step of a cell runs on one system and
then on the other, so that both see the same weather, and the order changes from round to round. Where Apache Kafka
cannot be had, the run says so and measures millbeck alone. Both brokers stay up for the whole run: a warm Java process
is Kafka at its best, and an idle broker costs the other next to nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import sys
import time
from collections import defaultdict
from pathlib import Path
from statistics import median

from bench import machine, perf_tools
from bench.cells import CORE_CELLS, FULL_CELLS, PERF_TOOL_CELLS, SMALL_BATCH, Cell
from bench.compare import compare, compare_direction
from bench.dirty_pages import dirty_page_section
from bench.measure import Bench, CellResult, Transfer
from bench.report import comparison_section, stamp, transfer_table, write_section
from bench.rounds import run_round
from bench.startup import startup_section
from bench.stolen import stolen_seconds
from bench.systems import SYSTEMS, Node, compared_systems
from tools import peers

# Deleted topics leave the disk soon, so that their removal falls between the cells.
OVERRIDES = {"log.segment.delete.delay.ms": "200"}
RESULTS = peers.ROOT / "build" / "bench"


def _print_line(text: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {text}", flush=True)


def _start(system: str, directory: Path, core: int | None) -> Node:
    node = SYSTEMS[system](directory / system, overrides=OVERRIDES, core=core)
    node.start()
    _print_line(f"{system} is up")
    return node


def _order(benches: dict[str, Bench], round_number: int) -> list[str]:
    return list(benches) if round_number % 2 == 0 else list(benches)[::-1]


def _rounds(
    benches: dict[str, Bench],
    cells: tuple[Cell, ...],
    *,
    rounds: int,
    total_bytes: int,
    latency_seconds: float,
    full: bool,
) -> dict[tuple[str, Cell], list[CellResult]]:
    results: dict[tuple[str, Cell], list[CellResult]] = defaultdict(list)
    for round_number in range(rounds):
        order = _order(benches, round_number)
        for cell in cells:
            # At 1,000 records a second a batch holds one record, whatever its limit: once per batch size is enough.
            timed = latency_seconds if not full or cell.batch_bytes == SMALL_BATCH else 0
            outcome = run_round(benches, order, cell, total_bytes=total_bytes, latency_seconds=timed)
            for system, result in outcome.items():
                results[system, cell].append(result)
                _print_line(
                    f"round {round_number + 1} {cell.name}: {system}"
                    f" produce {result.produce.megabytes_per_second:.0f} MB/s"
                    f" consume {median(turn.megabytes_per_second for turn in result.consumes):.0f} MB/s"
                    f" p99 {result.produce_p99_ms or 0:.2f} ms"
                )
    return results


def _perf_tool_tables(benches: dict[str, Bench], *, rounds: int, total_bytes: int) -> list[str]:
    results: dict[tuple[str, Cell], list[tuple[Transfer, Transfer]]] = defaultdict(list)
    for round_number in range(rounds):
        for cell in PERF_TOOL_CELLS:
            for system in _order(benches, round_number):
                produced, consumed = perf_tools.run_cell(benches[system], cell, total_bytes)
                results[system, cell].append((produced, consumed))
                _print_line(
                    f"perf tools, round {round_number + 1} {cell.name}: {system}"
                    f" produce {produced.megabytes_per_second:.0f} MB/s"
                    f" consume {consumed.megabytes_per_second:.0f} MB/s"
                )
    lines = []
    ours, *others = benches
    for index, title in enumerate(("Produce, kafka-producer-perf-test", "Consume, kafka-consumer-perf-test")):
        rows = []
        for cell in PERF_TOOL_CELLS:
            theirs = [one[index] for one in results[others[0], cell]] if others else []
            rows.append((cell.name, compare_direction([one[index] for one in results[ours, cell]], theirs)))
        lines += transfer_table(title, rows)
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description="millbeck beside Apache Kafka.")
    parser.add_argument("--full", action="store_true", help="24 settings and Kafka's own perf tools")
    parser.add_argument(
        "--against", type=Path, metavar="DIR", help="beside the compiled millbeck of another checkout; writes no docs"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--megabytes", type=int, default=256, help="per cell; at most 1,000")
    parser.add_argument("--latency-seconds", type=float, default=6)
    parser.add_argument("--only", choices=list(SYSTEMS), help="one system, in the column of millbeck; writes no docs")
    parser.add_argument("--skip-dirty-pages", action="store_true", help="leave out the cell past the dirty-page limit")
    chosen = parser.parse_args()
    total_bytes = min(chosen.megabytes, 1000) * 1_000_000
    broker_core, client_core = machine.cores()
    systems = compared_systems(chosen.only, chosen.against)
    facts = machine.facts("apache-kafka" in systems)
    cells = FULL_CELLS if chosen.full else CORE_CELLS
    directory = machine.scratch_directory("bench-")
    started_s, stolen_s = time.monotonic(), stolen_seconds()
    try:
        startup = startup_section(systems, directory, core=broker_core, rounds=chosen.rounds)
        with contextlib.ExitStack() as stack:
            nodes = {system: stack.enter_context(_start(system, directory, broker_core)) for system in systems}
            benches = {system: Bench(node, client_core=client_core) for system, node in nodes.items()}
            for system, bench in benches.items():
                bench.warm_up(CORE_CELLS, min(total_bytes, 128_000_000))
                _print_line(f"{system} is warm")
            results = _rounds(
                benches,
                cells,
                rounds=chosen.rounds,
                total_bytes=total_bytes,
                latency_seconds=chosen.latency_seconds,
                full=chosen.full,
            )
            tools = []
            if chosen.full and "apache-kafka" in systems:
                tools = _perf_tool_tables(benches, rounds=chosen.rounds, total_bytes=total_bytes)
            dirty = [] if chosen.skip_dirty_pages else dirty_page_section(benches)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    ours, *others = systems
    comparisons = [
        compare(cell.name, results[ours, cell], results[others[0], cell] if others else []) for cell in cells
    ]
    lines = [*stamp(facts), *comparison_section(comparisons), *tools, *startup, *dirty]
    took_s = time.monotonic() - started_s
    lines.append(
        f"The run took {took_s / 60:.0f} minutes: {chosen.rounds} rounds, {chosen.megabytes} MB a cell."
        f" Meanwhile the host took {(stolen_seconds() - stolen_s) / took_s:.0%} of a core for others."
    )
    RESULTS.mkdir(parents=True, exist_ok=True)
    raw = {f"{system} {cell.name}": [one.as_json() for one in rounds] for (system, cell), rounds in results.items()}
    (RESULTS / ("full.json" if chosen.full else "core.json")).write_text(json.dumps(raw, indent=1))
    print("\n".join(lines))
    if not (chosen.only or chosen.against):
        write_section("full" if chosen.full else "core", lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
