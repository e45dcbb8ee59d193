"""Kafka's own producer and consumer perf tools against either system, from the client's core."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import tempfile
import time

from bench.cells import Cell
from bench.load import make_values
from bench.measure import Bench, Transfer
from bench.stolen import least_disturbed
from bench.systems.apache_kafka import java_command

RUN_TIMEOUT_S = 300


class PerfToolFailed(Exception):
    """The tool ended badly or printed no figures; the text is its output."""


def _run(bench: Bench, main_class: str, *arguments: str) -> tuple[str, float, float, float]:
    """(output, wall seconds, client CPU seconds, broker CPU seconds) of one run of a tool."""
    core = bench.client_core
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    broker_before, start_s = bench.node.usage().cpu_seconds, time.monotonic()
    done = subprocess.run(
        java_command(main_class, *arguments, log_level="error"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT_S,
        preexec_fn=None if core is None else lambda: os.sched_setaffinity(0, {core}),
    )
    wall_s = time.monotonic() - start_s
    broker_s = bench.node.usage().cpu_seconds - broker_before
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise PerfToolFailed(done.stdout[-1000:] + done.stderr[-1000:])
    client_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done.stdout, wall_s, client_s, broker_s


def _transfer(
    megabytes_per_second: float, total_bytes: int, wall_s: float, client_s: float, broker_s: float
) -> Transfer:
    return Transfer(
        megabytes_per_second=megabytes_per_second,
        broker_cpu_per_gigabyte=broker_s / (total_bytes / 1e9),
        broker_busy=broker_s / wall_s,
        client_busy=client_s / wall_s,
    )


def produce(bench: Bench, cell: Cell, topic: str, total_bytes: int) -> Transfer:
    count = total_bytes // cell.record_bytes
    with tempfile.NamedTemporaryFile("wb", suffix=".payload") as payload:
        payload.write(b"\n".join(make_values(cell.record_bytes)) + b"\n")
        payload.flush()
        settings = [
            f"bootstrap.servers={bench.node.bootstrap}",
            f"acks={cell.acks}",
            f"batch.size={cell.batch_bytes}",
            f"compression.type={cell.codec}",
            "linger.ms=5",
            "enable.idempotence=false",
        ]
        output, *used = _run(
            bench,
            "org.apache.kafka.tools.ProducerPerformance",
            *("--topic", topic, "--num-records", str(count), "--throughput", "-1"),
            *("--payload-file", payload.name, "--producer-props", *settings),
        )
    rates = re.findall(r"([\d.]+) records/sec", output)
    if not rates:
        raise PerfToolFailed(output[-1000:])
    return _transfer(float(rates[-1]) * cell.record_bytes / 1e6, total_bytes, *used)


def consume(bench: Bench, cell: Cell, topic: str, total_bytes: int) -> Transfer:
    count = total_bytes // cell.record_bytes
    output, *used = _run(
        bench,
        "org.apache.kafka.tools.ConsumerPerformance",
        *(
            "--bootstrap-server",
            bench.node.bootstrap,
            "--topic",
            topic,
            "--num-records",
            str(count),
            "--timeout",
            "30000",
        ),
    )
    lines = [line.split(", ") for line in output.strip().splitlines() if ", " in line]
    named = dict(zip(lines[0], lines[-1], strict=True)) if len(lines) > 1 else {}
    if "fetch.nMsg.sec" not in named or int(float(named["data.consumed.in.nMsg"])) < count:
        raise PerfToolFailed(output[-1000:])
    return _transfer(float(named["fetch.nMsg.sec"]) * cell.record_bytes / 1e6, total_bytes, *used)


def run_cell(bench: Bench, cell: Cell, total_bytes: int) -> tuple[Transfer, Transfer]:
    topic, produced = least_disturbed(
        lambda: _produce_anew(bench, cell, total_bytes), lambda other: bench.delete_topic(other[0])
    )
    consumed = least_disturbed(lambda: consume(bench, cell, topic, total_bytes))
    bench.delete_topic(topic)
    return produced, consumed


def _produce_anew(bench: Bench, cell: Cell, total_bytes: int) -> tuple[str, Transfer]:
    topic = bench.new_topic()
    return topic, produce(bench, cell, topic, total_bytes)
