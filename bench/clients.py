"""`python -m bench.clients`: millbeck's Python clients beside aiokafka and confluent-kafka.

Every load is a process of its own against the same broker; the clients take turns in each round, and the medians of
the rounds count. Records have 100 bytes and 1 KB, acks=all. The goals: with compiled kernels producing at least 2.5
times as fast as aiokafka and consuming record objects twice as fast; columns level with confluent-kafka in records per
second of processor time; the synchronous clients half as fast as the asynchronous ones; the 99th percentile of 1,000
records a second no worse than confluent-kafka's. ``MILLBECK_PURE=1`` measures the Python files instead.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median

from bench.budgets import Row
from bench.client_loads import LOADS
from millbeck.client.admin import Admin
from millbeck.client.admin.results import NewTopic
from millbeck.compiled import in_use
from millbeck.testing import broker

SIZES = (100, 1000)
LINGERS_MS = (0, 5, 100, 1500)
LINGER_PACE = 200
LINGER_RECORDS = 600
PROFILES = ("low-latency", "throughput", "durable")

Measured = dict[tuple[str, str, int], list[dict[str, float]]]
"""Results by client, load and record size, one for each round."""


def _report(text: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {text}", flush=True)


def run_load(client: str, load: str, bootstrap: str, topic: str, count: int, size: int) -> dict[str, float]:
    arguments = [client, load, bootstrap, topic, str(count), str(size)]
    done = subprocess.run(
        [sys.executable, "-m", "bench.client_loads", *arguments], capture_output=True, text=True, timeout=600
    )
    if done.returncode:
        raise RuntimeError(f"{client}, {load}: {done.stderr.strip().splitlines()[-1:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


async def create(bootstrap: str, names: Sequence[str]) -> None:
    async with Admin(bootstrap_servers=bootstrap) as admin:
        await admin.create_topics([NewTopic(name=name, partition_count=1, replication_factor=1) for name in names])


def measure(bootstrap: str, *, rounds: int, count: int, latency_records: int) -> Measured:
    found: Measured = {}
    for number in range(rounds):
        for size in SIZES:
            records = count if size <= 100 else count // 4
            topic = f"read-{size}-{number}"
            asyncio.run(create(bootstrap, [topic]))
            run_load("confluent-kafka", "produce", bootstrap, topic, records, size)
            for client, load in LOADS:
                if load == "latency" and (size != 100 or not latency_records):
                    continue
                written = f"{load}-{client.replace(' ', '-')}-{size}-{number}"
                if load != "consume":
                    asyncio.run(create(bootstrap, [written]))
                result = run_load(
                    client,
                    load,
                    bootstrap,
                    topic if load == "consume" else written,
                    latency_records if load == "latency" else records,
                    size,
                )
                found.setdefault((client, load, size), []).append(result)
        _report(f"round {number + 1} of {rounds}")
    return found


def rate(found: Measured, client: str, load: str, size: int, per: str = "seconds") -> float:
    """The median of records per second, or per second of processor time (``cpu_s``)."""
    return median(each["records"] / each[per] for each in found[client, load, size])


def goals(found: Measured) -> list[Row]:
    times = {"produce": 2.5, "consume": 2.0} if in_use() else {"produce": 1.0, "consume": 1.0}
    rows = []
    for load, factor in times.items():
        for size in SIZES:
            ratio = rate(found, "millbeck", load, size) / rate(found, "aiokafka", load, size)
            rows.append(_row(f"{load} {size} B, times aiokafka", ratio, factor))
            ratio = rate(found, "millbeck.sync", load, size) / rate(found, "millbeck", load, size)
            rows.append(_row(f"{load} {size} B, synchronous to asynchronous", ratio, 0.5))
            columns = rate(found, "millbeck columns", load, size, "cpu_s")
            ratio = columns / rate(found, "confluent-kafka", load, size, "cpu_s")
            rows.append(_row(f"{load} {size} B, columns to confluent-kafka per CPU second", ratio, 1.0))
    if ("millbeck", "latency", 100) in found:
        ours, theirs = (
            median(each["p99_ms"] for each in found[client, "latency", 100])
            for client in ("millbeck", "confluent-kafka")
        )
        rows.append(
            Row(
                what="p99 of 1,000 records/s",
                measured=f"{ours:.2f} ms",
                budget=f"≤ {theirs:.2f} ms (confluent-kafka)",
                met=ours <= theirs,
            )
        )
    return rows


def _row(what: str, ratio: float, least: float) -> Row:
    return Row(what=what, measured=f"{ratio:.2f}", budget=f"≥ {least:g}", met=ratio >= least)


def rates_table(found: Measured) -> list[str]:
    lines = ["| load | client | records/s | records per CPU second |", "|---|---|---|---|"]
    for (client, load, size), results in found.items():
        if "seconds" in results[0]:
            per_s, per_cpu_s = (rate(found, client, load, size, per) for per in ("seconds", "cpu_s"))
            lines.append(f"| {load} {size} B | {client} | {per_s:,.0f} | {per_cpu_s:,.0f} |")
        else:
            shown = ", ".join(f"p{name} {median(each[f'p{name}_ms'] for each in results):.2f} ms" for name in (50, 99))
            lines.append(f"| {load} {size} B | {client} | {shown} | |")
    return lines


async def batching(bootstrap: str) -> list[str]:
    """What lingering does to a producer that has 200 records of 1,000 bytes a second, and what the profiles do."""
    lines = ["| producer | records per batch | p50 | p99 |", "|---|---|---|---|"]
    lingering = [await _batching_row(bootstrap, f"linger {each} ms", linger_ms=each) for each in LINGERS_MS]
    profiled = [await _batching_row(bootstrap, f"profile {each}", profile=each) for each in PROFILES]
    return [*lines, *lingering, *profiled]


async def _batching_row(bootstrap: str, name: str, *, linger_ms: int | None = None, profile: str | None = None) -> str:
    from millbeck.client import Producer

    topic = f"batching-{name.replace(' ', '-')}"
    await create(bootstrap, [topic])
    times_s: list[float] = []
    loop = asyncio.get_running_loop()
    async with Producer(bootstrap_servers=bootstrap, profile=profile, linger_ms=linger_ms) as producer:
        began_s = loop.time()
        for number in range(LINGER_RECORDS):
            await asyncio.sleep(max(0.0, began_s + number / LINGER_PACE - loop.time()))
            sent_s = loop.time()
            future = producer.send_nowait(topic, b"v" * 1000)
            future.add_done_callback(partial(_note, times_s, sent_s, loop.time))
        await producer.flush()
        values = {each.name: value for each, value in producer.metrics().items() if each.group == "producer-metrics"}
    times_s.sort()
    p50_ms, p99_ms = (times_s[len(times_s) * part // 100] * 1000 for part in (50, 99))
    return f"| {name} | {values['records-per-request-avg']:.1f} | {p50_ms:.1f} ms | {p99_ms:.1f} ms |"


def _note(times_s: list[float], sent_s: float, now_s: Callable[[], float], _: object) -> None:
    times_s.append(now_s() - sent_s)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.clients", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--records", type=int, default=1_000_000, help="of 100 bytes; a quarter as many of 1 KB")
    parser.add_argument("--latency-records", type=int, default=10_000)
    chosen = parser.parse_args()
    with broker() as started:
        _report(f"compiled kernels: {in_use()}")
        found = measure(
            started.bootstrap, rounds=chosen.rounds, count=chosen.records, latency_records=chosen.latency_records
        )
        tables = [rates_table(found), asyncio.run(batching(started.bootstrap))]
    rows = goals(found)
    for table in tables:
        print("\n" + "\n".join(table))
    print("\n| goal | measured | | |\n|---|---|---|---|")
    for row in rows:
        print(f"| {row.what} | {row.measured} | {row.budget} | {'met' if row.met else 'missed'} |")
    return 0 if all(row.met for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
