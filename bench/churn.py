"""`python -m bench.churn`: connections, topics and long keys come and go beside a steady client.

300 connections are opened and closed a second beside 2,000 that stay a while, topics of 100 to 1,000 partitions are
created and deleted, and records with keys of a megabyte are written by slow clients, 200 at a time. Quiet and churn
alternate, so that both see the same weather. The goals: no error; the steady client's p99 under churn at most its quiet
p99 + 20 ms; and one minute later the node's memory at most twice what it was before, with the same partitions. What the
kernel and the node say meanwhile is printed, so that a client's timeout can be laid at a door: the accept queue,
handshakes that were dropped, and how late the loop ran.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import threading
import time
import urllib.request
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from bench import machine, raw, sockets
from bench.budgets import MIB, Row
from bench.load import latency_summary, percentile
from bench.report import stamp, write_section
from bench.systems import SYSTEMS, Millbeck, Node
from bench.worker import Load

TOPIC = "steady"
STEADY_PARTITIONS = 200
STEADY_RATE = 20
"""One request at a time: a reply that takes longer than the time between two makes all that follow late."""
P99_ADDED_MS_MAX = 20.0
RSS_GROWTH_MAX = 2.0
SETTLE_SECONDS = 20.0
AFTER_SECONDS = 60.0
SAMPLE_SECONDS = 0.05
NICE = 10
# Deleted topics leave the disk while the run goes on.
OVERRIDES = {"log.segment.delete.delay.ms": "1000"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Churn:
    """How much of everything."""

    connections_per_second: float
    held_connections: int
    topics_per_second: float
    partitions: int
    writers: int
    waves_per_second: float


class Watch:
    """Samples the node's memory and its accept queue, from a thread."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.rss_bytes_max = 0
        self.accept_queue_max = 0

    def _run(self) -> None:
        while not self._stopping.wait(SAMPLE_SECONDS):
            self.rss_bytes_max = max(self.rss_bytes_max, self._node.usage().rss_bytes)
            self.accept_queue_max = max(self.accept_queue_max, sockets.accept_queue(self._node.port))

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(5)


@dataclass(slots=True)
class Outcome:
    """What all phases of the run came to."""

    quiet_ms: list[float] = field(default_factory=list)
    churn_ms: list[float] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    opened: int = 0
    created: int = 0
    keys_written: int = 0
    slowest_connect_ms: float = 0.0
    slowest_reply_ms: float = 0.0
    accept_queue_max: int = 0
    rss_bytes_max: int = 0
    idle_bytes: int = 0
    after_bytes: int = 0
    restarted_bytes: int = 0

    def add(self, result: dict[str, Any]) -> None:
        """One client's."""
        self.errors.update(result["errors"])
        self.opened += result.get("opened", 0)
        self.created += result.get("created", 0)
        self.keys_written += result.get("written", 0)
        slowest = result.get("slowest_ms", {})
        self.slowest_connect_ms = max(self.slowest_connect_ms, slowest.get("connect", 0.0))
        self.slowest_reply_ms = max(self.slowest_reply_ms, slowest.get("reply", 0.0))


def _print_line(text: str) -> None:
    load = os.getloadavg()[0]
    print(f"[{time.strftime('%H:%M:%S')}, load {load:.1f}] {text}", flush=True)


def _mib(size_bytes: int) -> str:
    return f"{size_bytes / MIB:.0f} MiB"


def loop_lag_ms(node: Node) -> str:
    """The quantiles of the loop lag that the node has counted since its start, or of the last while."""
    with urllib.request.urlopen(f"http://127.0.0.1:{node.metrics_port}/metrics", timeout=10) as reply:
        text = reply.read().decode()
    found = dict(re.findall(r'^millbeck_loop_lag_ms\{quantile="([\d.]+)"\} (\S+)$', text, re.MULTILINE))
    return ", ".join(f"p{float(quantile) * 100:g} {float(value):.1f} ms" for quantile, value in found.items())


class Run:
    """One node, and phases of quiet and churn."""

    def __init__(self, node: Node, churn: Churn, core: int | None) -> None:
        self._node = node
        self._churn = churn
        self._core = core
        self.outcome = Outcome()

    def _load(self, mode: str, seconds: float, nice: int = NICE, **arguments: Any) -> Load:
        return Load(
            mode,
            module="bench.churn_load",
            core=self._core,
            bootstrap=self._node.bootstrap,
            topic=TOPIC,
            seconds=seconds,
            nice=nice,
            **arguments,
        )

    def prepare(self) -> None:
        with raw.RawConnection(self._node.bootstrap) as connection:
            connection.create_topic(TOPIC, STEADY_PARTITIONS, config={})
        raw.wait_until_led(self._node.bootstrap, TOPIC, STEADY_PARTITIONS)
        time.sleep(SETTLE_SECONDS)
        self.outcome.idle_bytes = self._node.usage().rss_bytes
        _print_line(f"idle with {STEADY_PARTITIONS} partitions: {_mib(self.outcome.idle_bytes)}")

    def quiet(self, seconds: float) -> None:
        result = self._load("steady", seconds, nice=0, rate=STEADY_RATE).result()
        self.outcome.add(result)
        for trace in result["traces"]:
            _print_line(trace)
        self.outcome.quiet_ms += result["latencies_ms"]
        summary = latency_summary(result["latencies_ms"])
        rss = _mib(self._node.usage().rss_bytes)
        _print_line(f"quiet: p99 {summary['p99_ms']:.1f} ms, max {summary['max_ms']:.1f} ms, {rss}")

    def churn(self, seconds: float) -> None:
        churn, outcome = self._churn, self.outcome
        dropped_before = sockets.overflow_counters()
        with Watch(self._node) as watch:
            rates: dict[str, Any] = {"rate": churn.connections_per_second, "held": churn.held_connections}
            loads = [
                self._load("connections", seconds, **rates),
                self._load("topics", seconds, rate=churn.topics_per_second, partitions=churn.partitions),
                self._load("keys", seconds, rate=churn.waves_per_second, writers=churn.writers),
            ]
            steady = self._load("steady", seconds, nice=0, rate=STEADY_RATE)
            results = [load.result() for load in (*loads, steady)]
        for result in results:
            outcome.add(result)
            for trace in result["traces"]:
                _print_line(trace)
        outcome.accept_queue_max = max(outcome.accept_queue_max, watch.accept_queue_max)
        outcome.rss_bytes_max = max(outcome.rss_bytes_max, watch.rss_bytes_max)
        dropped = {key: value - dropped_before[key] for key, value in sockets.overflow_counters().items()}
        outcome.churn_ms += results[-1]["latencies_ms"]
        summary = latency_summary(results[-1]["latencies_ms"])
        _print_line(
            f"churn: p99 {summary['p99_ms']:.1f} ms, max {summary['max_ms']:.1f} ms; {outcome.opened:,} connections so"
            f" far, slowest connect {outcome.slowest_connect_ms:.0f} ms,"
            f" slowest reply {outcome.slowest_reply_ms:.0f} ms;"
            f" accept queue at most {watch.accept_queue_max}; {', '.join(f'{k} +{n}' for k, n in dropped.items())};"
            f" loop lag {loop_lag_ms(self._node)}; memory at most {_mib(watch.rss_bytes_max)},"
            f" now {_mib(self._node.usage().rss_bytes)}; errors: {dict(outcome.errors) or 'none'}"
        )

    def measure_afterwards(self) -> None:
        """Memory one minute after, and that of a node that starts with the same partitions."""
        for _ in range(int(AFTER_SECONDS // 10)):
            time.sleep(10)
            _print_line(f"after: {_mib(self._node.usage().rss_bytes)}")
        self.outcome.after_bytes = self._node.usage().rss_bytes
        self._node.stop()
        self._node.start()
        time.sleep(SETTLE_SECONDS)
        self.outcome.restarted_bytes = self._node.usage().rss_bytes


def rows(outcome: Outcome) -> list[Row]:
    quiet, churn = (percentile(sorted(each), 0.99) for each in (outcome.quiet_ms, outcome.churn_ms))
    errors = sum(outcome.errors.values())
    allowed_ms = quiet + P99_ADDED_MS_MAX
    growth = outcome.after_bytes / outcome.idle_bytes
    return [
        Row(
            what=f"{outcome.opened:,} connections, {outcome.created} topics, {outcome.keys_written} long keys: errors",
            measured=str(errors),
            budget="0",
            met=errors == 0,
        ),
        Row(
            what=f"steady client's p99 (quiet {quiet:.1f} ms)",
            measured=f"{churn:.1f} ms",
            budget=f"≤ {allowed_ms:.1f} ms",
            met=churn <= allowed_ms,
        ),
        Row(
            what=f"memory a minute after (idle before {_mib(outcome.idle_bytes)},"
            f" at most {_mib(outcome.rss_bytes_max)}, after a restart {_mib(outcome.restarted_bytes)})",
            measured=f"{_mib(outcome.after_bytes)}, {growth:.2f} ×",
            budget=f"≤ {RSS_GROWTH_MAX:g} ×",
            met=growth <= RSS_GROWTH_MAX,
        ),
        Row(
            what="slowest connect and reply, accept queue",
            measured=f"{outcome.slowest_connect_ms:.0f} ms, {outcome.slowest_reply_ms:.0f} ms,"
            f" {outcome.accept_queue_max}",
            budget="–",
            met=True,
        ),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.churn", description="Churn beside a steady client.")
    parser.add_argument("--minutes", type=float, default=10, help="of churn")
    parser.add_argument("--rounds", type=int, default=4, help="each is quiet, then churn")
    parser.add_argument("--connections", type=float, default=300, help="opened and closed a second")
    parser.add_argument("--held", type=int, default=2000, help="connections that stay for a phase")
    parser.add_argument("--partitions", type=int, default=5000, help="of topics that come and go, at most")
    parser.add_argument("--unpinned", action="store_true", help="for a machine that others use as well")
    parser.add_argument("--no-docs", action="store_true", help="leave docs/benchmarks.md as it is")
    chosen = parser.parse_args()
    churn = Churn(
        connections_per_second=chosen.connections,
        held_connections=chosen.held,
        topics_per_second=1,
        partitions=chosen.partitions,
        writers=200,
        waves_per_second=1 / 15,
    )
    seconds = chosen.minutes * 60 / chosen.rounds
    broker_core, client_core = (None, None) if chosen.unpinned else machine.cores()
    directory = machine.scratch_directory("churn-")
    try:
        with SYSTEMS["millbeck"](directory / "node", overrides=OVERRIDES, core=broker_core) as node:
            assert isinstance(node, Millbeck)
            run = Run(node, churn, client_core)
            run.prepare()
            for _ in range(chosen.rounds):
                run.quiet(max(10.0, seconds / 4))
                run.churn(seconds)
            run.measure_afterwards()
            node.stop()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    table = rows(run.outcome)
    lines = [
        "| what | measured | budget | |",
        "|---|---|---|---|",
        *(f"| {row.what} | {row.measured} | {row.budget} | {'met' if row.met else 'missed'} |" for row in table),
    ]
    print("\n".join(lines))
    if not chosen.no_docs:
        write_section("churn", [*stamp(machine.facts(False)), *lines])
    return 0 if all(row.met for row in table) else 1


if __name__ == "__main__":
    sys.exit(main())
