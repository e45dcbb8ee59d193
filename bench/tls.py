"""`python -m bench.tls`: TLS beside plain text and beside Apache Kafka's TLS, and what connections cost.

millbeck in plain text, millbeck over TLS and Kafka over TLS take turns on one machine, all warm, with the same
certificate and librdkafka as the client. The goals: produce of 16 KB batches for at most 0.8 of the processor time that
Kafka's TLS takes and 1.6 of our own plain text, consume for at most 0.6 of Kafka's; at most 24 KiB for an idle
connection, 0.5 ms for a handshake beyond a plain connection, and a loop that is late by less than 20 ms while 300
clients connect a second.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import shutil
import sys
import time
import urllib.request
from collections import defaultdict
from statistics import median

from bench import machine
from bench.budgets import Row
from bench.cells import KILO, LARGE_BATCH, SMALL_BATCH, Cell
from bench.measure import Bench, CellResult
from bench.report import stamp, write_section
from bench.rounds import run_round
from bench.secured import SecuredBench, make_certificate, secured_node
from bench.systems import Millbeck
from bench.worker import run_load
from tools import peers

PLAIN, OURS, THEIRS = "millbeck, plain", "millbeck, TLS", "Kafka, TLS"
CELLS = (
    Cell(record_bytes=1000, batch_bytes=SMALL_BATCH, acks="all", codec="none"),
    Cell(record_bytes=10_000, batch_bytes=SMALL_BATCH, acks="all", codec="none"),
    Cell(record_bytes=1000, batch_bytes=LARGE_BATCH, acks="all", codec="none"),
)
"""librdkafka makes a TLS record of each value and of what is between two: with 1 KB values each holds 500 bytes, and to
read that many costs more than anything else. With 10 KB values they are about as large as other clients' records."""
IDLE_CONNECTIONS = 1000
WARM_CONNECTIONS = 200
CONNECTS_PER_SECOND = 300
PACE_SECONDS = 20


def _report(text: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {text}", flush=True)


def row(what: str, value: float, limit: float, unit: str = "") -> Row:
    return Row(
        what=what, measured=f"{value:,.2f} {unit}".strip(), budget=f"≤ {limit:g} {unit}".strip(), met=value <= limit
    )


def transfers(benches: dict[str, Bench], *, rounds: int, total_bytes: int, latency_seconds: float) -> list[str]:
    for name, bench in benches.items():
        bench.warm_up(CELLS, total_bytes)
        _report(f"{name} is warm")
    results: dict[tuple[str, Cell], list[CellResult]] = defaultdict(list)
    for number in range(rounds):
        order = list(benches) if number % 2 == 0 else list(benches)[::-1]
        for cell in CELLS:
            outcome = run_round(benches, order, cell, total_bytes=total_bytes, latency_seconds=latency_seconds)
            for name, result in outcome.items():
                results[name, cell].append(result)
                _report(
                    f"round {number + 1} {cell.name}: {name}"
                    f" produce {result.produce.broker_cpu_per_gigabyte:.2f} s/GB"
                    f" consume {_consume_cpu(result):.2f} s/GB p99 {result.produce_p99_ms or 0:.2f} ms"
                )
    lines = [
        "| acks=all | record / batch | produce CPU s/GB | MB/s | consume CPU s/GB | MB/s | produce p99 ms |",
        "|---|---|---|---|---|---|---|",
    ]
    for cell in CELLS:
        for name in benches:
            found = results[name, cell]
            figures = (
                median(each.produce.broker_cpu_per_gigabyte for each in found),
                median(each.produce.megabytes_per_second for each in found),
                median(_consume_cpu(each) for each in found),
                median(median(turn.megabytes_per_second for turn in each.consumes) for each in found),
                median(each.produce_p99_ms or 0.0 for each in found),
            )
            lines.append(
                f"| {name} | {cell.name.removesuffix(' / acks=all / none')} | "
                + " | ".join(f"{each:,.2f}" for each in figures)
                + " |"
            )
    small = [cell for cell in CELLS if cell.batch_bytes == SMALL_BATCH]
    rows = [_against(results, cell, PLAIN, "produce", 1.6) for cell in small]
    if THEIRS in benches:
        rows += [_against(results, cell, THEIRS, "produce", 0.8) for cell in small]
        rows += [_against(results, cell, THEIRS, "consume", 0.6) for cell in CELLS]
    return [*lines, "", *table(rows)]


def _consume_cpu(result: CellResult) -> float:
    return median(turn.broker_cpu_per_gigabyte for turn in result.consumes)


def _against(
    results: dict[tuple[str, Cell], list[CellResult]], cell: Cell, other: str, direction: str, limit: float
) -> Row:
    def cpu(result: CellResult) -> float:
        return result.produce.broker_cpu_per_gigabyte if direction == "produce" else _consume_cpu(result)

    pairs = zip(results[OURS, cell], results[other, cell], strict=True)
    ratio = median(cpu(ours) / max(cpu(theirs), 1e-9) for ours, theirs in pairs)
    return row(f"{direction}, {cell.name}: CPU of ours over TLS / {other}", ratio, limit)


def connections(node: Millbeck, trusted: str, *, core: int | None) -> list[str]:
    common = {"broker_pid": node.pid, "trusted": trusted, "warm": WARM_CONNECTIONS, "count": IDLE_CONNECTIONS}
    measured = {}
    for name, port in (("plain", node.port), ("tls", node.behind_proxy_port)):
        arguments = common | {"is_tls": name == "tls", "port": port}
        measured[name] = run_load("idle", module="bench.tls_connections", core=core, **arguments)
    pace = run_load(
        "pace",
        module="bench.tls_connections",
        core=core,
        is_tls=True,
        port=node.behind_proxy_port,
        rate=CONNECTS_PER_SECOND,
        seconds=PACE_SECONDS,
        trusted=trusted,
    )
    plain, tls = measured["plain"], measured["tls"]
    rows = [
        row("idle TLS connection", tls["bytes"] / KILO, 24, "KiB"),
        row("TLS handshake, beyond a plain connection", (tls["cpu_us"] - plain["cpu_us"]) / 1000, 0.5, "ms"),
        row(f"loop lag p99 at {pace['per_second']:.0f} TLS connects a second", loop_lag_ms(node), 20, "ms"),
    ]
    facts = (
        f"An idle plain connection takes {plain['bytes'] / KILO:.1f} KiB. Connecting with a first request takes"
        f" {plain['cpu_us'] / 1000:.2f} ms of the broker's processor in plain text and {tls['cpu_us'] / 1000:.2f} ms"
        f" over TLS. With {CONNECTS_PER_SECOND} connects a second, client and broker on a core each, the p99 of"
        f" connect, handshake and first reply was {pace['p99_ms']:.1f} ms."
    )
    return [*table(rows), facts, ""]


def loop_lag_ms(node: Millbeck) -> float:
    url = f"http://127.0.0.1:{node.metrics_port}/metrics?name[]=millbeck_loop_lag_ms"
    with urllib.request.urlopen(url, timeout=10) as answer:
        text = answer.read().decode()
    found = re.search(r'^millbeck_loop_lag_ms\{quantile="0.99"\} (\S+)$', text, re.MULTILINE)
    assert found is not None, text
    return float(found[1])


def table(rows: list[Row]) -> list[str]:
    lines = [f"| {each.what} | {each.measured} | {each.budget} | {'yes' if each.met else '**no**'} |" for each in rows]
    return ["| what | measured | goal | met |", "|---|---|---|---|", *lines, ""]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.tls", description="TLS beside plain text and Apache Kafka.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--megabytes", type=int, default=256, help="per cell; at most 1,000")
    parser.add_argument("--latency-seconds", type=float, default=5)
    parser.add_argument("--only-connections", action="store_true")
    parser.add_argument("--without-kafka", action="store_true")
    parser.add_argument("--dry-run", action="store_true", help="do not write docs/benchmarks.md")
    chosen = parser.parse_args()
    broker_core, client_core = machine.cores()
    directory = machine.scratch_directory("bench-tls-")
    lines = stamp(machine.facts(not (chosen.without_kafka or chosen.only_connections)))
    try:
        certificate = make_certificate(directory)
        with contextlib.ExitStack() as stack:
            node = stack.enter_context(secured_node("millbeck", directory, certificate, core=broker_core))
            assert isinstance(node, Millbeck)
            lines += connections(node, str(certificate.trusted), core=client_core)
            if not chosen.only_connections:
                benches: dict[str, Bench] = {
                    PLAIN: Bench(node, client_core=client_core),
                    OURS: SecuredBench(node, certificate, client_core=client_core),
                }
                if not chosen.without_kafka:
                    peers.install("kafka")
                    kafka = secured_node("apache-kafka", directory, certificate, core=broker_core)
                    benches[THEIRS] = SecuredBench(stack.enter_context(kafka), certificate, client_core=client_core)
                lines += transfers(
                    benches,
                    rounds=chosen.rounds,
                    total_bytes=min(chosen.megabytes, 1000) * 1_000_000,
                    latency_seconds=chosen.latency_seconds,
                )
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    print("\n".join(lines))
    if not (chosen.dry_run or chosen.only_connections or chosen.without_kafka):
        write_section("tls", lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
