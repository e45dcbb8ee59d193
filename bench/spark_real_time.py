"""`python -m bench.spark_real_time`: the latency of real-time mode and of Kafka Streams, on the same topologies.

A record's value is the time at which it is sent; a consumer of the output takes the time when it arrives. Both systems
run on one node of ours, in turns, at the same rate: a filter, and the greatest value of each key. Both deliver at least
once; Streams has no cache before its output, so that it writes every result.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.spark_latency import quantile
from bench.spark_restore import machine_facts
from tools import peers

KINDS = ("stateless", "keyed")
SHAPES = ((1, 1), (4, 2))
"""Partitions of the topics, and of the shuffle."""
RATE = 50
SECONDS = 40.0
WARM_SECONDS = 15.0
CURRENT_MS = 2_000.0
START_SECONDS_MAX = 120.0
BATCH_SECONDS = 60
KEYS = 10
STREAMS = Path(__file__).parent / "LatencyStreams.java"


@contextmanager
def ours(bootstrap: str, kind: str, topics: tuple[str, str], shape: tuple[int, int], directory: Path) -> Iterator[None]:
    command = [sys.executable, "-m", "bench.spark_real_time", "--run", bootstrap, kind, *topics, *map(str, shape)]
    with _running([*command, str(directory)], directory / "said", "running"):
        yield


@contextmanager
def streams(
    bootstrap: str, kind: str, topics: tuple[str, str], shape: tuple[int, int], directory: Path
) -> Iterator[None]:
    command = ["java", "-Xmx512m", "-cp", f"{peers.peer_path('kafka-streams')}/*", str(STREAMS), bootstrap]
    with _running([*command, str(directory / "state"), kind, *topics, str(shape[1])], directory / "said", "RUNNING"):
        yield


@contextmanager
def _running(command: list[str], said: Path, word: str) -> Iterator[None]:
    said.parent.mkdir(parents=True, exist_ok=True)
    with said.open("wb") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
    try:
        ends_at = time.monotonic() + 120
        while word not in said.read_text(errors="replace").splitlines():
            if process.poll() is not None or time.monotonic() > ends_at:
                raise RuntimeError(f"{command[0]} did not start: {said.read_text(errors='replace')[-2000:]}")
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(30)


def run(bootstrap: str, kind: str, topics: tuple[str, str], shape: tuple[int, int], directory: str) -> None:
    """Our side of a turn, in a process of its own."""
    from pyspark.sql import functions as sf

    from millbeck.pipeline.session import spark_session
    from millbeck.pipeline.topology.real_time import SESSION_SETTINGS, RealTimeTopology
    from millbeck.pipeline.topology.serdes import string

    jars = ",".join(str(jar) for jar in sorted(peers.peer_path("spark-connector").glob("*.jar")))
    settings = {**SESSION_SETTINGS, "spark.jars": jars, "spark.ui.enabled": "false", "spark.log.level": "ERROR"}
    settings["spark.sql.shuffle.partitions"] = str(shape[1])
    spark = spark_session("latency", master=f"local[{sum(shape) + 1}]", settings=settings)
    topology = RealTimeTopology("latency", spark, bootstrap_servers=bootstrap)
    records = topology.stream(topics[0], value=string())
    if kind == "keyed":
        records.group_by_key().aggregate_columns(lambda r: sf.max(r.value)).to(topics[1])
    else:
        records.filter(lambda r: sf.length(r.value) > 0).to(topics[1])
    query = topology.start(f"{directory}/checkpoint", trigger={"realTime": f"{BATCH_SECONDS} seconds"})
    print("running", flush=True)
    query.awaitTermination()


def latencies_ms(bootstrap: str, topics: tuple[str, str], partitions: int, seconds: float) -> list[float]:
    """Of the records that are sent once the output has been current for `WARM_SECONDS`."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "latency", "fetch.wait.max.ms": 5})
    consumer.assign([TopicPartition(topics[1], number, 0) for number in range(partitions)])
    stops = threading.Event()
    sender = threading.Thread(target=_send, args=(bootstrap, topics[0], stops))
    sender.start()
    taken: list[float] = []
    begins_at = time.monotonic() + START_SECONDS_MAX
    current_since: float | None = None
    while time.monotonic() < begins_at + seconds:
        message = consumer.poll(0.1)
        if message is None or message.error() is not None:
            continue
        latency_ms = (time.time_ns() - int(message.value() or 0)) / 1e6
        now = time.monotonic()
        if now >= begins_at:
            taken.append(latency_ms)
        elif latency_ms > CURRENT_MS:
            current_since = None
        elif current_since is None:
            current_since = now
        elif now - current_since >= WARM_SECONDS:
            begins_at = now
    stops.set()
    sender.join()
    consumer.close()
    return taken


def _send(bootstrap: str, topic: str, stops: threading.Event) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    number = 0
    begins = time.monotonic()
    while not stops.is_set():
        producer.produce(topic, key=f"key-{number % KEYS}".encode(), value=str(time.time_ns()).encode())
        producer.poll(0)
        number += 1
        time.sleep(max(0.0, begins + number / RATE - time.monotonic()))
    producer.flush(10)


def measure(rounds: int, seconds: float, shapes: Sequence[tuple[int, int]]) -> list[str]:
    from millbeck.testing.broker_process import broker
    from millbeck.testing.topics import create_topic

    peers.install("spark-connector")
    systems: dict[str, Any] = {"real-time mode": ours, "Kafka Streams": streams}
    taken: dict[tuple[str, str, tuple[int, int]], list[float]] = {}
    with broker() as node, tempfile.TemporaryDirectory(prefix="bench-real-time-") as scratch:
        for turn in range(rounds):
            for shape in shapes:
                for kind in KINDS:
                    for name, system in systems.items():
                        label = f"{turn}-{kind}-{shape[0]}-{name.replace(' ', '-')}"
                        topics = (f"in-{label}", f"out-{label}")
                        for topic in topics:
                            create_topic(node.bootstrap, topic, partitions=shape[0])
                        with system(node.bootstrap, kind, topics, shape, Path(scratch) / label):
                            found = latencies_ms(node.bootstrap, topics, shape[0], seconds)
                        print(f"{label}: {len(found)} records, p50 {quantile(found, 0.5):.1f} ms", flush=True)
                        taken.setdefault((name, kind, shape), []).extend(found)
    lines = [
        "| system | topology | partitions, shuffle | p50 ms | p90 | p99 | records |",
        "|---|---|---|---|---|---|---|",
    ]
    for (name, kind, shape), found in taken.items():
        p50, p90, p99 = (quantile(found, share) for share in (0.5, 0.9, 0.99))
        lines.append(
            f"| {name} | {kind} | {shape[0]}, {shape[1]} | {p50:.1f} | {p90:.1f} | {p99:.1f} | {len(found):,} |"
        )
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.spark_real_time", description="Latency beside Streams.")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each turn, once it is warm")
    parser.add_argument("--partitions", type=int, help="only this shape: 1 or 4 partitions")
    parser.add_argument("--run", nargs=7, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.run:
        bootstrap, kind, source, target, partitions, shuffles, directory = chosen.run
        run(bootstrap, kind, (source, target), (int(partitions), int(shuffles)), directory)
        return 0
    shapes = [shape for shape in SHAPES if chosen.partitions in (None, shape[0])]
    lines = measure(chosen.rounds, chosen.seconds, shapes)
    print("\n".join([*machine_facts(), *lines]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
