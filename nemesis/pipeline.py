"""`python -m nemesis.pipeline`: kills while an exactly-once pipeline runs on Spark, and its output counted again.

Three brokers, a stream of orders, and ``millbeck pipeline run`` of the demo's pipeline, which also copies every order.
Spark's driver (its Python process or its Java), a Python worker or a broker is killed at random moments, most of them
while a batch is written or has just been, some while the last kill is still being recovered from. At the end what
readers of committed records see, along the way and in one go, must be what plain counting of the input says. The same
seed makes the same choices; when things happen is up to the machine.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from millbeck.pipeline.demo.orders import CUSTOMERS, ORDERS, REVENUE, SPEED, TOPICS, closing, customers, orders
from millbeck.pipeline.demo.recount import WINDOW_MS
from millbeck.pipeline.running.run_directory import RunDirectory
from millbeck.testing.cluster_processes import Cluster, cluster
from nemesis import audited_revenue
from nemesis.audited_revenue import COPIES
from nemesis.pipeline_audit import (
    PROBLEMS_SHOWN,
    Bar,
    Place,
    Row,
    audit_copies,
    audit_tail,
    audit_windows,
    emptiness,
    rows_of,
)
from nemesis.pipeline_victims import DRIVER, JAVA, WORKER, Process, is_running, processes, victims

BROKER = "broker"
KINDS = (DRIVER, JAVA, WORKER, BROKER)
PARTITIONS = {**TOPICS, COPIES: 3}
DAY_MS = 86_400_000
FAR_AHEAD_MS = 3_600_000
RECOVERY_S = 600.0
END_S = 600.0
AT_ONCE_SHARE = 0.2
AIMED_SHARE = 0.6
WRITING_S = 0.5
"""How long after a batch's first records at most a kill is aimed; what follows is their end and Spark's own commit."""
LEAVES_S = 30.0
SETTINGS = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
}


class RunFailed(Exception):
    """There is nothing to be judged."""


class Orders:
    """The stream of orders, as the clock goes, on a thread of its own."""

    def __init__(self, bootstrap: str, seed: int, per_second: int, begin_ms: int) -> None:
        self._settings = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "delivery.timeout.ms": 180_000}
        self._begin_ms = begin_ms
        self._made = orders(seed, begin_ms, per_second=per_second)
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name="orders")
        self.written_ms = begin_ms
        self.error: str | None = None

    def start(self) -> None:
        self.send(customers(self._begin_ms))
        self._thread.start()

    def stop(self) -> None:
        self._ends.set()
        if self._thread.is_alive():
            self._thread.join()

    def send(self, events: Any) -> None:
        producer = Producer({**self._settings, "log_level": 0})
        self._hand_over(producer, events)
        self._flush(producer)

    def _run(self) -> None:
        producer = Producer({**self._settings, "log_level": 0})
        second = 0
        while not self._ends.is_set():
            began = time.monotonic()
            self._hand_over(producer, next(self._made))
            second += 1
            self.written_ms = self._begin_ms + second * SPEED * 1000
            self._ends.wait(max(0.0, 1 - (time.monotonic() - began)))
        self._flush(producer)

    def _hand_over(self, producer: Producer, events: Any) -> None:
        for event in events:
            producer.produce(
                event.topic, event.value, event.key, timestamp=event.timestamp_ms, on_delivery=self._delivered
            )
            producer.poll(0)

    def _flush(self, producer: Producer) -> None:
        if producer.flush(180):
            self.error = "orders could not be written for three minutes"

    def _delivered(self, error: KafkaError | None, message: Any) -> None:
        if error is not None:
            self.error = f"an order was not written: {error}"


class Tail:
    """Reads along what is committed, on a thread of its own."""

    def __init__(self, bootstrap: str) -> None:
        self.read: dict[Place, Row] = {}
        self.problems: list[str] = []
        self._consumer = _consumer(bootstrap)
        self._consumer.assign([TopicPartition(*each, 0) for each in _partitions(REVENUE, COPIES)])
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tail")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ends.set()
        if self._thread.is_alive():
            self._thread.join()
        self._consumer.close()

    def _run(self) -> None:
        while not self._ends.is_set():
            for message in self._consumer.consume(1000, 0.5):
                if message.error() is None:
                    place, row = _of(message)
                    if place in self.read:
                        self.problems.append(f"{place} was read twice")
                    self.read[place] = row


def _consumer(bootstrap: str, isolation_level: str = "read_committed") -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "nobody",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "isolation.level": isolation_level,
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )


def _partitions(*topics: str) -> list[tuple[str, int]]:
    return [(topic, number) for topic in topics for number in range(PARTITIONS[topic])]


def _of(message: Any) -> tuple[Place, Row]:
    place = (message.topic(), message.partition(), message.offset())
    return place, Row(message.key() or b"", message.value() or b"", message.timestamp()[1])


def read_all(bootstrap: str, *topics: str) -> dict[Place, Row]:
    """Everything that is committed, up to the end of each partition."""
    consumer = _consumer(bootstrap)
    waiting = set(_partitions(*topics))
    consumer.assign([TopicPartition(*each, 0) for each in sorted(waiting)])
    found: dict[Place, Row] = {}
    ends_at = time.monotonic() + END_S
    try:
        while waiting:
            if time.monotonic() > ends_at:
                raise RunFailed(f"{sorted(waiting)} could not be read to the end")
            for message in consumer.consume(1000, 1.0):
                error = message.error()
                if error is None:
                    place, row = _of(message)
                    found[place] = row
                elif error.code() == KafkaError._PARTITION_EOF:
                    waiting.discard((message.topic(), message.partition()))
    finally:
        consumer.close()
    return found


class Pipeline:
    """``millbeck pipeline run``, and what is to be seen of it."""

    def __init__(self, bootstrap: str, master: str, directory: Path) -> None:
        self.directory = RunDirectory(directory, audited_revenue.PIPELINE["name"])  # type: ignore[arg-type]
        self.log = directory / "pipeline.log"
        self.seen: dict[tuple[int, int], Process] = {}
        file = str(Path(audited_revenue.__file__).resolve())
        command = ("pipeline", "run", file, "--bootstrap-server", bootstrap, "--master", master)
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "millbeck.cli.main", *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "MILLBECK_PIPELINES": str(directory)},
            )

    def batch(self) -> int:
        return int((self.directory.status().get("progress") or {}).get("batch", -1))

    def check(self) -> None:
        if self.process.poll() is not None:
            raise RunFailed(f"the pipeline ended by itself with status {self.process.returncode}; see {self.log}")

    def await_batch(self, after: int, patience_s: float) -> None:
        ends_at = time.monotonic() + patience_s
        while self.batch() <= after:
            self.check()
            if time.monotonic() > ends_at:
                raise RunFailed(f"no batch after {after} in {patience_s:.0f} s; see {self.log}")
            time.sleep(0.1)

    def victims(self) -> dict[str, list[Process]]:
        found = victims(self.process.pid, processes())
        for each in found.values():
            self.seen |= {(process.process_id, process.started): process for process in each}
        return found

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(RECOVERY_S)

    def end(self) -> None:
        """Whatever happened before: nothing of it stays."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for process in self.seen.values():
            if is_running(process):
                os.kill(process.process_id, signal.SIGKILL)

    def left_over(self) -> list[str]:
        """What runs on after the end."""
        ends_at = time.monotonic() + LEAVES_S
        while time.monotonic() < ends_at and any(is_running(process) for process in self.seen.values()):
            time.sleep(0.2)
        return [
            f"process {process.process_id} was left behind: {process.command[:100]}"
            for process in self.seen.values()
            if is_running(process)
        ]


class FaultInjector:
    def __init__(
        self, seed: int, count: int, pipeline: Pipeline, brokers: Cluster, report: Callable[[str], None]
    ) -> None:
        self._rng = random.Random(seed)
        self._pipeline = pipeline
        self._brokers = brokers
        self._report = report
        self._admin = AdminClient({"bootstrap.servers": brokers.bootstrap, "log_level": 0})
        self._looker = _consumer(brokers.bootstrap, "read_uncommitted")
        self.kills: Counter[str] = Counter()
        self.plan = [KINDS[number % len(KINDS)] for number in range(count)]
        self._rng.shuffle(self.plan)

    def carry_out(self) -> None:
        for number, kind in enumerate(self.plan, 1):
            chance = self._rng.random()
            if number > 1 and chance < AT_ONCE_SHARE:
                wait_s = self._rng.uniform(0.0, 12.0)
                when = f"{wait_s:.1f} s after the last kill, recovered or not"
            elif chance < AT_ONCE_SHARE + AIMED_SHARE:
                self._pipeline.await_batch(self._pipeline.batch(), RECOVERY_S)
                if kind == BROKER:
                    self._await_in_sync()
                self._await_writing()
                wait_s = self._rng.uniform(0.0, WRITING_S)
                when = f"{wait_s:.2f} s after records of the batch behind {self._pipeline.batch()}"
            else:
                self._pipeline.await_batch(self._pipeline.batch(), RECOVERY_S)
                wait_s = self._rng.uniform(0.0, 3.0)
                when = f"{wait_s:.1f} s after batch {self._pipeline.batch()}"
            time.sleep(wait_s)
            self._pipeline.check()
            self._kill_broker(number, when) if kind == BROKER else self._kill_process(number, kind, when)
        self._pipeline.await_batch(self._pipeline.batch(), RECOVERY_S)

    def _kill_process(self, number: int, kind: str, when: str) -> None:
        ends_at = time.monotonic() + RECOVERY_S
        while True:
            if time.monotonic() > ends_at:
                raise RunFailed(f"there is no {kind} to kill")
            found = self._pipeline.victims()[kind]
            if not found:
                time.sleep(0.02)
                continue
            victim = self._rng.choice(sorted(found))
            try:
                os.kill(victim.process_id, signal.SIGKILL)
                break
            except ProcessLookupError:
                # It ended by itself a moment ago; another one takes its place.
                continue
        self.kills[kind] += 1
        self._report(f"kill {number}: {kind} {victim.process_id}, {when}")

    def _kill_broker(self, number: int, when: str) -> None:
        self._await_in_sync()
        node = self._rng.choice(self._brokers.nodes)
        node.kill()
        self.kills[BROKER] += 1
        away_s = self._rng.uniform(0.5, 5.0)
        self._report(f"kill {number}: broker at {node.bootstrap}, {when}; back in {away_s:.1f} s")
        time.sleep(away_s)
        node.start()

    def _await_writing(self) -> None:
        """Until records of a batch are in the output, committed or not."""
        ends_at = time.monotonic() + RECOVERY_S
        before = self._output_ends()
        while time.monotonic() < ends_at:
            self._pipeline.check()
            now = self._output_ends()
            if before and now and now != before:
                return
            before = before or now
            time.sleep(0.01)
        raise RunFailed("nothing was written")

    def _output_ends(self) -> list[int]:
        """Where each partition ends; empty while a broker is away."""
        try:
            return [
                self._looker.get_watermark_offsets(TopicPartition(*each), timeout=5)[1] for each in _partitions(COPIES)
            ]
        except KafkaException:
            return []

    def _await_in_sync(self) -> None:
        """A second broker that goes before the first has caught up is a loss that nobody promised to survive."""
        ends_at = time.monotonic() + RECOVERY_S
        while time.monotonic() < ends_at:
            topics = self._admin.list_topics(timeout=10).topics.values()
            found = [len(partition.isrs) for topic in topics for partition in topic.partitions.values()]
            if found and min(found) == len(self._brokers.nodes):
                return
            time.sleep(0.5)
        raise RunFailed("the brokers did not come together again")


class Run:
    def __init__(self, chosen: argparse.Namespace, seed: int, directory: Path) -> None:
        self._chosen = chosen
        self._seed = seed
        self._directory = directory
        self._began = time.monotonic()

    def report(self, text: str) -> None:
        print(f"  {time.monotonic() - self._began:7.1f} s  {text}", flush=True)

    def judged(self) -> list[str]:
        with cluster(SETTINGS, nodes=3) as brokers:
            try:
                return self._on(brokers)
            finally:
                for node in brokers.nodes:
                    (self._directory / f"broker-{node.port}.log").write_text(node.output())

    def _on(self, brokers: Cluster) -> list[str]:
        bootstrap = brokers.bootstrap
        admin = AdminClient({"bootstrap.servers": bootstrap})
        made = admin.create_topics([NewTopic(name, count, 3) for name, count in PARTITIONS.items()])
        for future in made.values():
            future.result(60)
        begin_ms = int(time.time() * 1000 - DAY_MS) // WINDOW_MS * WINDOW_MS
        stream = Orders(bootstrap, self._seed, self._chosen.orders_per_second, begin_ms)
        tail = Tail(bootstrap)
        pipeline = Pipeline(bootstrap, self._chosen.master, self._directory)
        try:
            with _running(stream, tail):
                self.report("the pipeline is starting")
                harm = FaultInjector(self._seed, self._chosen.kills, pipeline, brokers, self.report)
                harm.carry_out()
                self.report("the harm is done")
                stream.stop()
                end_ms = stream.written_ms // WINDOW_MS * WINDOW_MS + WINDOW_MS
                problems, windows, copies = self._await_end(bootstrap, stream, pipeline, end_ms)
                final = read_all(bootstrap, REVENUE, COPIES)
                self._await_tail(tail, final)
            problems += tail.problems + audit_tail(tail.read, final)
            problems += [stream.error] if stream.error else []
            status = pipeline.stop()
            problems += [f"the pipeline ended with status {status}"] if status else []
            problems += pipeline.left_over()
        finally:
            pipeline.end()
        killed = ", ".join(f"{count} {kind}" for kind, count in sorted(harm.kills.items()))
        restarts = pipeline.directory.restarts()
        self.report(f"killed: {killed}; {restarts} restarts, {windows} windows, {copies} orders copied")
        return problems + emptiness(self._bar, harm.kills, windows, copies)

    @property
    def _bar(self) -> Bar:
        kills = self._chosen.kills
        return Bar(
            kills=dict.fromkeys(KINDS, max(1, kills // 8) if kills >= len(KINDS) else 0),
            kills_in_all=kills,
            windows=5 * kills,
            copies=2 * self._chosen.orders_per_second * kills,
        )

    def _await_end(self, bootstrap: str, stream: Orders, pipeline: Pipeline, end_ms: int) -> tuple[list[str], int, int]:
        """What is wrong when everything has been written, or when it should have been; and how much there was."""
        ends_at = time.monotonic() + END_S
        step = 0
        while True:
            if step < 5:
                # Each time a little later: Spark closes windows one batch after it has seen the time pass.
                stream.send(closing(end_ms + FAR_AHEAD_MS + step, PARTITIONS[ORDERS]))
                step += 1
            time.sleep(3)
            pipeline.check()
            inputs = read_all(bootstrap, CUSTOMERS, ORDERS)
            final = read_all(bootstrap, REVENUE, COPIES)
            ordered, copied, windows = rows_of(inputs, ORDERS), rows_of(final, COPIES), rows_of(final, REVENUE)
            problems = audit_windows(rows_of(inputs, CUSTOMERS), ordered, windows, end_ms)
            problems += audit_copies(ordered, copied)
            if (not problems and step >= 5) or time.monotonic() > ends_at:
                return problems, len(windows), len(copied)

    def _await_tail(self, tail: Tail, final: dict[Place, Row]) -> None:
        ends_at = time.monotonic() + 30
        while len(tail.read) < len(final) and time.monotonic() < ends_at:
            time.sleep(0.2)


@contextmanager
def _running(stream: Orders, tail: Tail) -> Iterator[None]:
    stream.start()
    tail.start()
    try:
        yield
    finally:
        stream.stop()
        tail.stop()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m nemesis.pipeline", description=(__doc__ or "").split("\n\n")[1])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--orders-per-second", type=int, default=200)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--directory", type=Path, help="where the run's files go")
    chosen = parser.parse_args()
    seed = chosen.seed if chosen.seed is not None else random.SystemRandom().randrange(1 << 32)
    directory = Path(tempfile.mkdtemp(prefix="nemesis-pipeline-", dir=chosen.directory))
    print(f"pipeline: {chosen.kills} kills, seed {seed}; its files are in {directory}", flush=True)
    run = Run(chosen, seed, directory)
    try:
        problems = run.judged()
    except RunFailed as failure:
        problems = [str(failure)]
    for problem in problems[:PROBLEMS_SHOWN]:
        print(f"  {problem}")
    if len(problems) > PROBLEMS_SHOWN:
        print(f"  and {len(problems) - PROBLEMS_SHOWN} more")
    print(
        "  FAILED" if problems else "  passed: the output is what the input says, every record of it once", flush=True
    )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
