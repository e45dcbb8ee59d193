"""Changes of PostgreSQL by a worker on Spark, which is killed: each change is in the topic once."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from millbeck.client.sync import Consumer
from millbeck.kernel.ids import TopicPartition
from millbeck.testing import Broker, broker
from millbeck.testing.topics import create_topic
from tests.interop.connect.postgres_server import PostgresServer, bin_directory
from tests.interop.connect.postgres_writer import Writer
from tests.interop.connect.worker_process import WorkerProcess

pytestmark = [
    pytest.mark.skipif(bin_directory() is None, reason="no PostgreSQL: apt-get install postgresql"),
    pytest.mark.timeout(900),
]
TOPIC = "shop.public.items"
ROWS = 5000
KILLS = 5


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with PostgresServer() as found:
        yield found


@pytest.fixture
def log() -> Iterator[Broker]:
    with broker() as found:
        yield found


class TopicReader:
    """What is committed in the topic, read on and on."""

    def __init__(self, bootstrap: str) -> None:
        self._consumer = Consumer(
            {"bootstrap.servers": bootstrap, "isolation.level": "read_committed", "auto.offset.reset": "earliest"}
        )
        self._consumer.assign([TopicPartition(TOPIC, 0)])
        self.records: list[tuple[Any, Any]] = []

    def read(self) -> int:
        for record in self._consumer.poll(timeout_s=0.3).get(TopicPartition(TOPIC, 0), ()):
            key = json.loads(record.key or b"null")
            self.records.append((key, None if record.value is None else json.loads(record.value)))
        return len(self.records)

    def close(self) -> None:
        self._consumer.close()

    def folded(self) -> dict[int, str]:
        rows: dict[int, str] = {}
        for key, value in self.records:
            if value is None:
                rows.pop(key["id"], None)
            elif value["op"] != "d":
                rows[key["id"]] = value["after"]["note"]
        return rows

    def changes(self) -> list[Any]:
        return [value for _, value in self.records if value is not None and value["op"] in "cud"]


def test_kills_of_worker_and_database(server: PostgresServer, log: Broker, tmp_path: Path) -> None:
    chance = random.Random(17)
    writer = Writer(server, 33)
    writer.create(rows=ROWS)
    create_topic(log.bootstrap, TOPIC)
    worker = WorkerProcess(log.bootstrap, tmp_path)
    worker.start()
    settings = server.connector_settings(table_include_list="public.items", millbeck_snapshot_chunk_rows="4000")
    name = settings.pop("name")
    worker.ask(
        "PUT",
        f"/connectors/{name}/config",
        {
            **settings,
            "tasks.max": "2",
            "topic.creation.default.partitions": "1",
            "topic.creation.default.replication.factor": "1",
        },
    )
    kills: list[int] = []

    def kill_again_and_again() -> None:
        """Each time some records have come since the last kill, at any moment of what follows."""
        watcher = TopicReader(log.bootstrap)
        for _ in range(KILLS):
            seen, ends = watcher.read(), time.monotonic() + 60
            while watcher.read() == seen and time.monotonic() < ends:
                pass
            time.sleep(chance.uniform(0, 3))
            worker.kill()
            kills.append(watcher.read())
            worker.start()
        watcher.close()

    killer = threading.Thread(target=kill_again_and_again)
    killer.start()
    while killer.is_alive():
        writer.transaction(chance.choice((1, 3, 30, 300)))
        time.sleep(0.1)
    killer.join()
    assert len(kills) == KILLS
    reader = TopicReader(log.bootstrap)
    ends = time.monotonic() + 120
    while reader.folded() != writer.rows:
        reader.read()
        assert time.monotonic() < ends, (
            len(reader.records),
            worker.ask("GET", f"/connectors/{name}/status"),
            worker.log(),
        )
    quiet = time.monotonic() + 3
    while time.monotonic() < quiet:
        reader.read()
    assert reader.folded() == writer.rows
    found = reader.changes()
    places = {(value["source"]["lsn"], value["op"], json.dumps(value["after"])) for value in found}
    assert len(places) == len(found), "a change is there twice"
    order = [value["source"]["txId"] for value in found]
    assert len([1 for before, after in pairwise(order) if before != after]) == len(set(order)) - 1
    reads = [key["id"] for key, value in reader.records if value is not None and value["op"] == "r"]
    assert len(set(reads)) == len(reads)
    print(f"killed at {kills} records: {len(reads)} rows read, {len(found)} changes of {len(set(order))} transactions")
    reader.close()
    worker.stop()
    writer.close()
