"""A Kafka Streams application with group.protocol=streams, as processes that are started, killed and asked things.

It counts words and joins orders with payments of the same key within ten seconds (`java/StreamsGroup.java`).
"""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench.systems import Node
from millbeck.client.admin import Admin
from millbeck.client.admin.streams_groups import StreamsGroupDescription
from millbeck.kernel.errors import ApiError
from tests.interop.cluster import _LIGHT, until
from tools import peers

SOURCE = Path(__file__).parent / "java" / "StreamsGroup.java"
TOPICS = ("lines", "counted", "orders", "payments", "joined")
PATIENCE_S = 120.0
SETTINGS = {
    "group.streams.min.session.timeout.ms": "1000",
    "group.streams.session.timeout.ms": "6000",
    "group.streams.min.heartbeat.interval.ms": "100",
    "group.streams.heartbeat.interval.ms": "1000",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
"""Sessions short enough for a test; and one file to dump."""


class Application:
    def __init__(self, node: Node, directory: Path, *, name: str = "app", partitions: int = 3) -> None:
        self.node = node
        self.directory = directory
        self.name = name
        self.partitions = partitions
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        admin = AdminClient({"bootstrap.servers": node.bootstrap})
        topics = [NewTopic(f"{name}-{topic}", partitions, 1) for topic in TOPICS]
        for future in admin.create_topics(topics).values():
            future.result(30)

    # Instances

    def start(self, number: int, *, threads: int = 1) -> None:
        command = ["java", *_LIGHT, "-Xmx384m", "-cp", f"{peers.peer_path('kafka-streams')}/*", str(SOURCE)]
        arguments = [self.node.bootstrap, self.name, str(self._state(number)), f"host-{number}:9000", str(threads)]
        with self._said(number).open("ab") as out:
            self._processes[number] = subprocess.Popen(
                [*command, *arguments], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT
            )

    def kill(self, number: int) -> None:
        process = self._processes.pop(number)
        assert process.poll() is None, self.said(number)[-3000:]
        process.kill()
        process.wait(30)

    def stop(self) -> None:
        for number in list(self._processes):
            self.kill(number)

    def said(self, number: int) -> str:
        return self._said(number).read_text()

    def process_id(self, number: int) -> str:
        """The id that an instance keeps in its state directory."""
        path = self._state(number) / self.name / "kafka-streams-process-metadata"
        process_id: str = json.loads(path.read_text())["processId"]
        return process_id

    def _state(self, number: int) -> Path:
        return self.directory / f"state-{number}"

    def _said(self, number: int) -> Path:
        return self.directory / f"said-{number}"

    # The group

    def described(self) -> StreamsGroupDescription | None:
        async def ask() -> StreamsGroupDescription:
            async with Admin({"bootstrap.servers": self.node.bootstrap}) as admin:
                return (await admin.describe_streams_groups([self.name])).all()[self.name]

        try:
            return asyncio.run(ask())
        except ApiError:
            return None

    def until_stable(self, members: int, standbys: int = 0) -> StreamsGroupDescription:
        """Wait until the group has so many members, and they have all tasks."""
        last: list[StreamsGroupDescription] = []

        def is_stable() -> bool:
            assert all(process.poll() is None for process in self._processes.values()), self._said
            found = self.described()
            if found is None or found.state != "Stable" or len(found.members) != members:
                return False
            last[:] = [found]
            copies = sum(len(tasks) for each in found.members for tasks in each.assigned.standby.values())
            return copies >= standbys

        until(is_stable, f"a stable group of {members}", PATIENCE_S)
        return last[0]

    # Records

    def produce(self, topic: str, records: list[tuple[str | None, str, int]]) -> None:
        """Produce records of key, value and timestamp; those without key to one partition after the other."""
        producer = Producer({"bootstrap.servers": self.node.bootstrap})
        for number, (key, value, timestamp_ms) in enumerate(records):
            # -1: by the key.
            partition = number % self.partitions if key is None else -1
            producer.produce(f"{self.name}-{topic}", value, key, partition, timestamp=timestamp_ms)
        assert producer.flush(60) == 0


@contextmanager
def application(node: Node, directory: Path, *, partitions: int = 3) -> Iterator[Application]:
    """The application's topics; at the end its instances are killed with everything that they have under way."""
    found = Application(node, directory, partitions=partitions)
    try:
        yield found
    finally:
        found.stop()
