"""`python -m bench.budgets`: the budgets of the design, one by one, with a raw client that costs next to nothing.

Each budget is a function that takes a `Site` and returns one or more rows: what, measured, budget, met. Broker CPU is
the process's own time over the measured window; "one core" figures are bytes per second of broker CPU, with the
wall-clock rate beside them, because client and broker share the machine.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from confluent_kafka.admin import AdminClient, NewTopic

from bench import machine, raw
from bench.report import stamp, write_section
from bench.startup import measure_startup
from bench.systems import SYSTEMS, Node
from bench.systems.millbeck import cli_command, cli_environment

MIB = 1 << 20
ROUNDS = 3
CLI_RUNS = 5
TOPIC = "budget"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table."""

    what: str
    measured: str
    budget: str
    met: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where the budgets are measured."""

    system: str
    directory: Path
    broker_core: int | None

    def node(self, name: str, **overrides: str) -> Node:
        dotted = {key.replace("_", "."): value for key, value in overrides.items()}
        return SYSTEMS[self.system](self.directory / name, core=self.broker_core, overrides=dotted)


def _row(what: str, value: float, unit: str, limit: float, *, at_least: bool = False, digits: int = 1) -> Row:
    sign = "≥" if at_least else "≤"
    met = value >= limit if at_least else value <= limit
    return Row(what=what, measured=f"{value:,.{digits}f} {unit}", budget=f"{sign} {limit:g} {unit}", met=met)


def startup(site: Site) -> list[Row]:
    runs = [measure_startup(site.system, site.directory / "startup", core=site.broker_core) for _ in range(ROUNDS)]
    return [
        _row("start to first accepted produce", median(one[0] for one in runs), "s", 0.5, digits=2),
        _row("idle RSS", median(one[1] for one in runs) / MIB, "MiB", 80),
    ]


def up_to_first_produce(site: Site) -> list[Row]:
    """`millbeck up` itself: zero configuration, formats its storage, one screen."""
    if site.system != "millbeck":
        return []
    seconds = []
    for attempt in range(ROUNDS):
        data = site.directory / f"up-{attempt}"
        (port,) = _free_port()
        started_s = time.monotonic()
        process = subprocess.Popen(
            cli_command("up", "--data", str(data), "--port", str(port)),
            env=cli_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            accepted_s = raw.first_accepted_produce(f"127.0.0.1:{port}", "first", deadline_s=started_s + 30)
            seconds.append(accepted_s - started_s)
        finally:
            process.kill()
            process.wait(10)
    return [_row("`millbeck up` to first accepted produce", median(seconds), "s", 0.5, digits=2)]


def _free_port() -> list[int]:
    with socket.create_server(("127.0.0.1", 0)) as held:
        return [held.getsockname()[1]]


def cli_cold(site: Site) -> list[Row]:
    """Commands in a fresh interpreter, the slowest of a handful."""
    if site.system != "millbeck":
        return []
    with site.node("cli") as node:
        commands = {
            "--help": ["--help"],
            "topic list": ["topic", "list", "--bootstrap-server", node.bootstrap],
            "group list": ["group", "list", "--bootstrap-server", node.bootstrap],
            "topic create": ["topic", "create", "--bootstrap-server", node.bootstrap, "--topic"],
            "storage random-uuid": ["storage", "random-uuid"],
        }
        rows = []
        for name, arguments in commands.items():
            times_ms = []
            cpu_before = _children_cpu_s()
            for attempt in range(CLI_RUNS):
                extra = [f"made-{attempt}"] if name == "topic create" else []
                started_s = time.monotonic()
                done = subprocess.run(
                    cli_command(*arguments, *extra), env=cli_environment(), capture_output=True, text=True, timeout=30
                )
                times_ms.append((time.monotonic() - started_s) * 1000)
                if done.returncode != 0:
                    raise RuntimeError(f"millbeck {name}: {done.stderr[-500:]}")
            cpu_ms = (_children_cpu_s() - cpu_before) / CLI_RUNS * 1000
            row = _row(f"`millbeck {name}`, cold", median(times_ms), "ms", 300, digits=0)
            rows.append(replace(row, measured=f"{row.measured} (CPU {cpu_ms:.0f})"))
        return rows


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _create(node: Node, topic: str, partitions: int, **configs: str) -> None:
    admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(topic, partitions, 1, config=configs)])[topic].result(60)
    raw.wait_until_led(node.bootstrap, topic, partitions)


def _pipelined(connections: list[raw.RawConnection], frames: list[bytes], *, in_flight: int, count: int) -> None:
    """Keep `in_flight` requests open on each connection until `count` were answered in all."""
    per_connection = count // len(connections)
    for connection, frame in zip(connections, frames, strict=True):
        connection.socket.sendall(frame * min(in_flight, per_connection))
    for done in range(per_connection):
        for connection, frame in zip(connections, frames, strict=True):
            error, _ = connection.receive_produce()
            if error:
                raise raw.RawError(f"Produce: error {error}")
            if done + in_flight < per_connection:
                connection.socket.sendall(frame)


def _measure_produce(node: Node, batch: bytes, *, connections: int, in_flight: int, count: int) -> tuple[float, float]:
    """(broker CPU seconds, wall seconds) for `count` Produce requests, after a warm-up of a tenth."""
    opened = [raw.RawConnection(node.bootstrap) for _ in range(connections)]
    try:
        bodies = [raw.produce_body(TOPIC, partition, batch, acks=1) for partition in range(connections)]
        frames = [one.frame(raw.PRODUCE, 7, body) for one, body in zip(opened, bodies, strict=True)]
        _pipelined(opened, frames, in_flight=in_flight, count=max(connections * in_flight, count // 10))
        cpu_before, started_s = node.usage().cpu_seconds, time.monotonic()
        _pipelined(opened, frames, in_flight=in_flight, count=count)
        return node.usage().cpu_seconds - cpu_before, time.monotonic() - started_s
    finally:
        for one in opened:
            one.close()


def small_produce(site: Site) -> list[Row]:
    with site.node("small") as node:
        _create(node, TOPIC, 1)
        batch = raw.build_batch([b"x" * 100])
        micros = []
        for _ in range(ROUNDS):
            cpu_s, _ = _measure_produce(node, batch, connections=1, in_flight=5, count=100_000)
            micros.append(cpu_s / 100_000 * 1e6)
        return [_row("Produce, 1 record, 5 in flight, broker CPU", min(micros), "µs", 15)]


def batch_produce(site: Site) -> list[Row]:
    with site.node("batches") as node:
        _create(node, TOPIC, 4)
        batch = raw.build_batch([b"x" * 1000] * 16)
        count = 40_000
        cpu_rates, wall_rates = [], []
        for _ in range(ROUNDS):
            cpu_s, wall_s = _measure_produce(node, batch, connections=4, in_flight=5, count=count)
            cpu_rates.append(count * len(batch) / 1e6 / cpu_s)
            wall_rates.append(count * len(batch) / 1e6 / wall_s)
        row = _row(
            "Produce, 16 KB uncompressed batches, one core", max(cpu_rates), "MB/s", 600, at_least=True, digits=0
        )
        return [_with_wall(row, max(wall_rates))]


def _with_wall(row: Row, wall_rate: float) -> Row:
    return replace(row, measured=f"{row.measured} (wall {wall_rate:,.0f} MB/s)")


def large_fetch(site: Site) -> list[Row]:
    with site.node("fetch") as node:
        _create(node, TOPIC, 1)
        batch = raw.build_batch([b"x" * 1000] * 1000)
        with raw.RawConnection(node.bootstrap) as connection:
            for _ in range(200):
                connection.send_produce(TOPIC, 0, batch)
                if error := connection.receive_produce()[0]:
                    raise raw.RawError(f"Produce: error {error}")
            cpu_rates, wall_rates = [], []
            for _ in range(ROUNDS + 1):
                moved = offset = 0
                cpu_before, started_s = node.usage().cpu_seconds, time.monotonic()
                while moved < 2_000_000_000:
                    connection.send_fetch(TOPIC, 0, offset, size_bytes_max=MIB)
                    high_watermark, records = connection.receive_fetch()
                    moved += len(records)
                    offset = raw.offset_after(records, offset)
                    offset = 0 if offset >= high_watermark else offset
                cpu_rates.append(moved / 1e9 / max(0.01, node.usage().cpu_seconds - cpu_before))
                wall_rates.append(moved / 1e6 / (time.monotonic() - started_s))
        # The first pass warmed up.
        row = _row("Fetch from page cache, 1 MB, one core", max(cpu_rates[1:]), "GB/s", 2, at_least=True, digits=2)
        return [_with_wall(row, max(wall_rates[1:]))]


def idle_connections(site: Site) -> list[Row]:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = min(2000, hard // 2)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 2 * count + 500), hard))
    with site.node("idle") as node:
        opened: list[raw.RawConnection] = []
        try:
            # What the first few cost once for all is not counted.
            _open_more(node, opened, 100)
            before = node.usage().rss_bytes
            _open_more(node, opened, count)
            time.sleep(1)
            each_kib = (node.usage().rss_bytes - before) / count / 1024
        finally:
            for one in opened:
                one.close()
    return [_row(f"idle connection, of {count}", each_kib, "KiB", 4)]


def _open_more(node: Node, opened: list[raw.RawConnection], count: int) -> None:
    for _ in range(count):
        connection = raw.RawConnection(node.bootstrap)
        connection.api_versions()
        opened.append(connection)


def many_partitions(site: Site) -> list[Row]:
    """2,000 partitions: create, write one record to some, restart, then sit idle."""
    node = site.node("partitions")
    with node:
        for index in range(20):
            _create(node, f"{TOPIC}-{index}", 100)
        node.stop()
        started_s = time.monotonic()
        node.start(wait=False)
        restart_s = raw.first_accepted_produce(node.bootstrap, f"{TOPIC}-19", deadline_s=started_s + 90) - started_s
        time.sleep(3)
        cpu_before, idle_from_s = node.usage().cpu_seconds, time.monotonic()
        time.sleep(10)
        idle_share = (node.usage().cpu_seconds - cpu_before) / (time.monotonic() - idle_from_s)
        rss = node.usage().rss_bytes
    return [
        _row("2,000 partitions: start", restart_s, "s", 3, digits=2),
        _row("2,000 partitions: idle CPU", idle_share * 100, "%", 2, digits=2),
        Row(what="2,000 partitions: RSS", measured=f"{rss / MIB:.0f} MiB", budget="–", met=True),
    ]


BUDGETS: dict[str, Callable[[Site], list[Row]]] = {
    "up": up_to_first_produce,
    "startup": startup,
    "cli": cli_cold,
    "small-produce": small_produce,
    "batch-produce": batch_produce,
    "large-fetch": large_fetch,
    "idle-connections": idle_connections,
    "many-partitions": many_partitions,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.budgets", description="The design's budgets, measured.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"only these: {', '.join(BUDGETS)}")
    parser.add_argument("--system", default="millbeck", choices=list(SYSTEMS), help="another system writes no docs")
    chosen = parser.parse_args()
    broker_core, client_core = machine.cores()
    if client_core is not None:
        os.sched_setaffinity(0, {client_core})
    lines = ["| what | measured | budget | met |", "|---|---|---|---|"]
    missed = 0
    directory = machine.scratch_directory("budgets-")
    try:
        site = Site(system=chosen.system, directory=directory, broker_core=broker_core)
        for name in chosen.names or BUDGETS:
            for row in BUDGETS[name](site):
                lines.append(f"| {row.what} | {row.measured} | {row.budget} | {'yes' if row.met else '**no**'} |")
                missed += not row.met
                print(lines[-1], flush=True)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    if chosen.system == "millbeck" and not chosen.names:
        write_section("budgets", [*stamp(machine.facts(False)), *lines])
    print(f"{missed} budgets missed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
