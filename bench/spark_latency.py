"""`python -m bench.spark_latency`: how long a record takes through an exactly-once pipeline at the rate it can hold.

One process writes records at a rate, each with the time at which it was handed over; the pipeline reads them and
writes them in transactions; this process reads what is committed in the output and takes the time. The rate
is raised step by step while what waits does not grow; the figures are those of the last step that held.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, Producer, TopicPartition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS = 2
FIRST_RATE = 10_000
GROWTH = 1.5
STEPS_MAX = 9
STEP_S = 15.0
SETTLE_S = 5.0
P99_BAR_S = 5.0
TICK_S = 0.02
DRAIN_S = 60.0
GROWS_S = 1.0
"""A step is held when its second half is not slower than its first by more than this, which is noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    rate: int
    sent: int
    latencies_s: list[float]
    """Of what was sent after the step had settled, in the order of sending."""

    @property
    def is_held(self) -> bool:
        half = len(self.latencies_s) // 2
        if not half:
            return False
        return quantile(self.latencies_s[half:], 0.5) <= quantile(self.latencies_s[:half], 0.5) + GROWS_S

    def quantile_s(self, share: float) -> float:
        return quantile(self.latencies_s, share)


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def send(bootstrap: str, topic: str, value_bytes: int) -> None:
    """Each line of the input is a rate and for how long; the answer is how many were sent."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "linger.ms": 5, "queue.buffering.max.messages": 2_000_000, "log_level": 0}
    )
    padding = b"x" * (value_bytes - 17)
    for line in sys.stdin:
        rate, seconds = int(line.split()[0]), float(line.split()[1])
        began = time.time()
        sent = 0
        while (passed := time.time() - began) < seconds:
            due = int(rate * passed)
            # The time at which it was due: a producer that is late makes no record look younger.
            for number in range(sent, due):
                producer.produce(topic, b"%017.6f" % (began + number / rate) + padding, partition=number % PARTITIONS)
            sent = max(sent, due)
            producer.poll(0)
            time.sleep(TICK_S)
        producer.flush()
        print(sent, flush=True)


class Output:
    def __init__(self, bootstrap: str, topic: str) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "bench",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "log_level": 0,
            }
        )
        self._consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])

    def take(self, timeout_s: float) -> Iterator[tuple[float, float]]:
        """When each record was sent, and how long it took."""
        messages = self._consumer.consume(20_000, timeout_s)
        now = time.time()
        for message in messages:
            value = message.value()
            if message.error() is None and value is not None:
                sent_at = float(value[:17])
                yield sent_at, now - sent_at

    def close(self) -> None:
        self._consumer.close()


def start_pipeline(spark: SparkSession, bootstrap: str, source: str, target: str, checkpoint: str) -> Any:
    from pyspark.sql import functions as sf

    from millbeck.pipeline.topology.topology import Topology

    topology = Topology("bench-latency", spark, bootstrap_servers=bootstrap)
    topology.stream(source).filter(lambda record: sf.length(record.value) > 0).to(target)
    return topology.start(checkpoint, trigger={"processingTime": "0 seconds"})


def run_step(sender: subprocess.Popen[str], output: Output, rate: int) -> Step:
    assert sender.stdin is not None
    assert sender.stdout is not None
    began = time.time()
    sender.stdin.write(f"{rate} {STEP_S}\n")
    sender.stdin.flush()
    found: list[tuple[float, float]] = []
    while time.time() - began < STEP_S:
        found += output.take(0.2)
    sent = int(sender.stdout.readline())
    ends_at = time.monotonic() + DRAIN_S
    while len(found) < sent and time.monotonic() < ends_at:
        found += output.take(0.2)
    if len(found) < sent:
        return Step(rate=rate, sent=sent, latencies_s=[])
    settled = sorted(each for each in found if each[0] >= began + SETTLE_S)
    return Step(rate=rate, sent=sent, latencies_s=[latency for _, latency in settled])


def steps(spark: SparkSession, bootstrap: str, value_bytes: int) -> Iterator[Step]:
    """One after the other, with a higher rate each, up to the first that is not held."""
    from confluent_kafka.admin import AdminClient, NewTopic

    source, target = f"latency-in-{value_bytes}", f"latency-out-{value_bytes}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(topic, PARTITIONS, 1) for topic in (source, target)]).values():
        future.result(30)
    arguments = [sys.executable, "-m", "bench.spark_latency", "--send", bootstrap, source, str(value_bytes)]
    sender = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    output = Output(bootstrap, target)
    with tempfile.TemporaryDirectory(prefix="bench-latency-") as checkpoint:
        query = start_pipeline(spark, bootstrap, source, target, checkpoint)
        try:
            run_step(sender, output, FIRST_RATE // 10)  # warms up
            rate = FIRST_RATE
            for _ in range(STEPS_MAX):
                step = run_step(sender, output, rate)
                yield step
                if not step.is_held:
                    return
                rate = int(rate * GROWTH)
        finally:
            query.stop()
            output.close()
            sender.kill()
            sender.wait()


def measure(spark: SparkSession, bootstrap: str, value_bytes: int) -> None:
    print(f"\nlatency through an exactly-once pipeline, {value_bytes} B values", flush=True)
    best: Step | None = None
    for step in steps(spark, bootstrap, value_bytes):
        if not step.latencies_s:
            print(f"  {step.rate:>9,}/s  not all of it came out", flush=True)
            continue
        times = f"p50 {step.quantile_s(0.5):.2f} s  p99 {step.quantile_s(0.99):.2f} s"
        print(f"  {step.rate:>9,}/s  {times}{'' if step.is_held else '  (what waits grows)'}", flush=True)
        best = step if step.is_held else best
    if best is None:
        print("  no rate was held")
        return
    verdict = "within" if best.quantile_s(0.99) <= P99_BAR_S else "beyond"
    print(
        f"  highest rate held: {best.rate:,}/s, p50 {best.quantile_s(0.5):.2f} s, p99 {best.quantile_s(0.99):.2f} s:"
        f" {verdict} {P99_BAR_S:.0f} s",
        flush=True,
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.spark_latency", description="Latency of a pipeline.")
    parser.add_argument("--bytes", type=int, default=100, help="of each value")
    parser.add_argument("--send", nargs=3, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.send:
        send(chosen.send[0], chosen.send[1], int(chosen.send[2]))
        return 0
    from millbeck.pipeline.session import spark_session
    from millbeck.testing.broker_process import broker

    with broker() as node:
        settings = {"spark.ui.enabled": "false", "spark.log.level": "ERROR"}
        spark = spark_session("bench", master="local[2]", settings=settings)
        measure(spark, node.bootstrap, chosen.bytes)
        spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
