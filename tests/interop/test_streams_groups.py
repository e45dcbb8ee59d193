"""Kafka Streams with group.protocol=streams: exactly once through kills, and described as by Apache Kafka."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from bench.systems import SYSTEMS, Node
from bench.systems.apache_kafka import dump_log
from millbeck.client.admin.streams_groups import StreamsGroupDescription
from millbeck.coordinator.group.streams.records import DECLARED
from tests.interop.cluster import run_tool, until
from tests.interop.streams_application import PATIENCE_S, SETTINGS, Application, application

WORDS = [f"word-{number}" for number in range(40)]
STATEFUL = ("1", "2")
"""The subtopologies of the counts and of the join; the first one only divides lines into words."""
JOIN_WINDOW_MS = 10_000
STREAMS_TYPES = {number for number, _, _ in DECLARED}
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
MEMBER = re.compile(r"(?<![\w-])[\w-]{22}(?![\w-])")


class Results:
    """What readers of committed records see of a topic: key and value, as they came."""

    def __init__(self, app: Application, topic: str) -> None:
        self.seen: list[tuple[str, str]] = []
        settings = {"group.id": f"results-{topic}", "isolation.level": "read_committed", "enable.auto.commit": False}
        self._consumer = Consumer({"bootstrap.servers": app.node.bootstrap, **settings})
        self._consumer.assign([TopicPartition(f"{app.name}-{topic}", index, 0) for index in range(app.partitions)])

    def read_until(self, count: int) -> None:
        deadline_s = time.monotonic() + PATIENCE_S
        while len(self.seen) < count and time.monotonic() < deadline_s:
            self.read(0.2)
        assert len(self.seen) >= count, f"{len(self.seen)} results of {count} in {PATIENCE_S} s"

    def read(self, seconds: float) -> None:
        for message in self._consumer.consume(1000, seconds):
            assert not message.error(), message.error()
            self.seen.append(((message.key() or b"").decode(), (message.value() or b"").decode()))

    def close(self) -> None:
        self._consumer.close()


class Workload:
    """Lines to count, and orders with payments, some of them too late to be joined."""

    def __init__(self, app: Application) -> None:
        self._app = app
        self._dice = random.Random(7)
        self._start_ms = int(time.time() * 1000)
        self._number = 0
        self.counts: Counter[str] = Counter()
        self.pairs: Counter[tuple[str, str]] = Counter()

    def lines(self, count: int) -> None:
        lines = [" ".join(self._dice.choices(WORDS, k=5)) for _ in range(count)]
        self.counts.update(word for line in lines for word in line.split())
        self._app.produce("lines", [(None, line, self._start_ms) for line in lines])

    def orders(self, count: int) -> list[tuple[str, str, int]]:
        found = []
        for _ in range(count):
            self._number += 1
            found.append((f"key-{self._number}", f"order-{self._number}", self._start_ms + self._number * 10))
        self._app.produce("orders", [*found])
        return found

    def payments(self, orders: list[tuple[str, str, int]]) -> None:
        records: list[tuple[str | None, str, int]] = []
        for key, order, at_ms in orders:
            is_late = self._dice.random() < 0.2
            value = order.replace("order", "payment")
            records.append((key, value, at_ms + (30_000 if is_late else self._dice.randrange(JOIN_WINDOW_MS))))
            if not is_late:
                self.pairs[key, f"{order}+{value}"] += 1
        self._app.produce("payments", records)

    def check(self, counted: Results, joined: Results) -> None:
        """Every count from 1 on once and in order, every pair once, and nothing else."""
        by_word: dict[str, list[int]] = {}
        for word, count in counted.seen:
            by_word.setdefault(word, []).append(int(count))
        assert by_word == {word: list(range(1, count + 1)) for word, count in self.counts.items()}
        assert Counter(joined.seen) == self.pairs


def holders(group: StreamsGroupDescription, role: str) -> dict[tuple[str, int], str]:
    """The process of each stateful task that is active, or standby."""
    return {
        (name, index): member.process_id
        for member in group.members
        for name, partitions in getattr(member.assigned, role).items()
        for index in partitions
        if name in STATEFUL
    }


@pytest.mark.timeout(600)
def test_words_are_counted_and_streams_joined_exactly_once_by_three_instances(system: str, tmp_path: Path) -> None:
    settings = SETTINGS | {"group.streams.num.standby.replicas": "1"}
    with SYSTEMS[system](tmp_path / "node", overrides=settings) as node, application(node, tmp_path) as app:
        work = Workload(app)
        counted, joined = Results(app, "counted"), Results(app, "joined")
        work.lines(600)
        orders = work.orders(300)
        for number in range(3):
            app.start(number)
        before = app.until_stable(3, standbys=6)
        work.payments(orders[:150])
        counted.read_until(3000)
        joined.read_until(work.pairs.total())
        # Killed with some of its work neither committed nor aborted.
        work.lines(600)
        victim = app.process_id(0)
        app.kill(0)
        work.lines(300)
        work.payments(orders[150:])
        after = app.until_stable(2, standbys=6)
        lost = [task for task, process in holders(before, "active").items() if process == victim]
        standbys, actives = holders(before, "standby"), holders(after, "active")
        heirs = [task for task in lost if actives[task] == standbys[task]]
        assert lost
        # The assignor keeps the balance: of three tasks that lose their process one may have to go elsewhere.
        assert len(heirs) >= len(lost) - 1, (lost, standbys, actives)
        counted.read_until(work.counts.total())
        app.start(0)
        app.until_stable(3, standbys=6)
        assert app.process_id(0) == victim
        work.lines(300)
        work.payments(work.orders(100))
        counted.read_until(work.counts.total())
        joined.read_until(work.pairs.total())
        for _ in range(10):
            counted.read(0.2)
            joined.read(0.2)
        counted.close()
        joined.close()
        work.check(counted, joined)


def run(*arguments: str) -> str:
    done = run_tool("kafka-streams-groups", *arguments)
    return done.stdout + done.stderr


def shown(node: Node, text: str) -> list[str]:
    """The output without what differs from run to run: ids, ports, the order of rows and the width of columns."""
    text = MEMBER.sub("<member>", UUID.sub("<process>", text))
    text = re.sub(r"127\.0\.0\.1:\d+ \(\d+\)", "<coordinator>", text)
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    return sorted(line for line in lines if not line.startswith("SLF4J"))


VIEWS: tuple[tuple[str, ...], ...] = (
    ("--list",),
    ("--list", "--state"),
    ("--list", "--state", "stable,empty"),
    ("--describe", "--group", "app"),
    ("--describe", "--group", "app", "--verbose"),
    ("--describe", "--group", "app", "--members"),
    ("--describe", "--group", "app", "--members", "--verbose"),
    ("--describe", "--group", "app", "--state"),
    ("--describe", "--group", "app", "--state", "--verbose"),
    ("--describe", "--group", "nothing", "--state"),
    ("--describe", "--all-groups", "--state"),
)
REST: tuple[tuple[str, ...], ...] = (
    ("--describe", "--group", "app", "--state", "--verbose"),
    ("--describe", "--group", "app"),
    ("--reset-offsets", "--group", "app", "--input-topic", "app-lines", "--to-earliest", "--dry-run"),
    ("--reset-offsets", "--group", "app", "--input-topic", "app-lines", "--to-earliest", "--execute"),
    ("--delete", "--group", "app"),
    ("--list",),
)


def views_of(system: str, directory: Path) -> dict[str, list[str]]:
    """What the tool prints of one instance that has counted one word; then of the empty group."""
    found = {}
    with SYSTEMS[system](directory / "node", overrides=SETTINGS) as node, application(node, directory) as app:
        app.start(0)
        app.until_stable(1)
        app.produce("lines", [(None, "word", 1_000)])
        counted = Results(app, "counted")
        counted.read_until(1)
        counted.close()
        until(lambda: "LAG" in run("--bootstrap-server", node.bootstrap, *VIEWS[3]), "offsets")
        time.sleep(2)
        for view in VIEWS:
            found[" ".join(view)] = shown(node, run("--bootstrap-server", node.bootstrap, *view))
        app.stop()
        until(lambda: (group := app.described()) is not None and group.state == "Empty", "an empty group")
        for view in REST:
            found["empty: " + " ".join(view)] = shown(node, run("--bootstrap-server", node.bootstrap, *view))
    return found


@pytest.mark.timeout(600)
def test_kafka_streams_groups_prints_what_it_prints_against_apache_kafka(tmp_path: Path) -> None:
    theirs = views_of("apache-kafka", tmp_path / "theirs")
    ours = views_of("millbeck", tmp_path / "ours")
    for view, lines in theirs.items():
        assert ours[view] == lines, view


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("writer", "reader"), [("apache-kafka", "millbeck"), ("millbeck", "apache-kafka")])
def test_a_streams_group_is_taken_over_with_its_directory(writer: str, reader: str, tmp_path: Path) -> None:
    settings = SETTINGS | {"group.streams.num.standby.replicas": "1", "group.streams.session.timeout.ms": "45000"}
    settings["group.streams.max.session.timeout.ms"] = "60000"
    with SYSTEMS[writer](tmp_path / writer, overrides=settings) as node, application(node, tmp_path) as app:
        app.start(0)
        app.start(1)
        before = app.until_stable(2, standbys=6)
        # The members stay in the group: the node goes away before they can leave.
        node.stop()
    for log in sorted(node.data.glob("__consumer_offsets-0/*.log")):
        check_dumps(log)
    shutil.copytree(node.data, tmp_path / reader / "data")
    with SYSTEMS[reader](tmp_path / reader, overrides=settings, node_id=node.node_id) as heir:
        app.node = heir
        until(lambda: app.described() is not None, "a described group")
        after = app.described()
    assert after is not None
    assert sorted(after.members, key=lambda each: each.member_id) == sorted(
        before.members, key=lambda each: each.member_id
    )
    assert (after.epoch, after.assignment_epoch, after.state) == (before.epoch, before.assignment_epoch, "Stable")


def check_dumps(log: Path) -> None:
    """Kafka's tool and ours decode the same records of streams groups."""
    theirs = dump_log("--offsets-decoder", "--files", str(log))
    assert theirs.returncode == 0, theirs.stderr
    ours = subprocess.run(
        [sys.executable, "-m", "millbeck.cli.main", "dump-log", "--offsets-decoder", "--files", str(log)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ours.returncode == 0, ours.stderr
    records = [re.findall(r"^\| offset: .*$", each.stdout, re.MULTILINE) for each in (theirs, ours)]
    assert {int(kind) for kind in re.findall(r'key: \{"type":"(\d+)"', "\n".join(records[0]))} >= STREAMS_TYPES
    assert records[0] == records[1]
