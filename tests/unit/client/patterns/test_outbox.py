"""`OutboxRelay`: rows are sent in order, deleted only when acknowledged, and never lost."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from millbeck.client import Producer
from millbeck.client.patterns import OutboxRelay, SqlOutbox
from millbeck.client.patterns.outbox import SCHEMA, OutboxRow
from millbeck.kernel.errors import NotEnoughReplicas, TopicAuthorizationFailed
from millbeck.wire.messages.produce import ProduceRequest
from tests.unit.client.fake_cluster import FakeCluster, produce_error, simulate


class ListOutbox:
    def __init__(self, rows: Sequence[OutboxRow]) -> None:
        self.held = list(rows)
        self.failures = 0

    async def rows(self, limit: int) -> Sequence[OutboxRow]:
        if self.failures:
            self.failures -= 1
            raise OSError("the database is away")
        return self.held[:limit]

    async def delete(self, rows: Sequence[OutboxRow]) -> None:
        self.held = [row for row in self.held if row not in rows]


def rows(count: int) -> list[OutboxRow]:
    return [OutboxRow(number, "a", b"k", b"%d" % number) for number in range(count)]


def producer_of(cluster: FakeCluster, **changed: Any) -> Producer[bytes, bytes]:
    return Producer({"bootstrap.servers": cluster.bootstrap}, environment=cluster.environment, **changed)


async def run_for(relay: OutboxRelay, seconds: float) -> None:
    task = asyncio.create_task(relay.run())
    await asyncio.sleep(seconds)
    task.cancel()
    await asyncio.wait({task})


def test_rows_are_sent_in_order_and_deleted_whatever_fails_for_a_while() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        outbox = ListOutbox(rows(25))
        outbox.failures = 2
        async with producer_of(cluster) as producer:
            relay = OutboxRelay(producer, outbox, batch_max=10, retry_s=1)
            task = asyncio.create_task(run_for(relay, 30))
            await asyncio.sleep(20)
            outbox.held.append(OutboxRow(99, "a", None, None))
            await task
        assert log.values == [*(b"%d" % number for number in range(25)), None]
        assert outbox.held == []

    simulate(scenario)


def test_rows_that_are_not_acknowledged_stay() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        outbox = ListOutbox(rows(3))
        cluster.on(ProduceRequest, produce_error(NotEnoughReplicas.code))
        async with producer_of(cluster, delivery_timeout_ms=3000, request_timeout_ms=1000) as producer:
            task = asyncio.create_task(run_for(OutboxRelay(producer, outbox, retry_s=1), 60))
            await asyncio.sleep(10)
            assert len(outbox.held) == 3
            cluster.on(ProduceRequest, None)
            await task
            assert outbox.held == []
            assert log.values[-3:] == [b"0", b"1", b"2"]
            outbox.held = rows(1)
            cluster.on(ProduceRequest, produce_error(TopicAuthorizationFailed.code))
            with pytest.raises(TopicAuthorizationFailed):
                await OutboxRelay(producer, outbox).run()

    simulate(scenario)


def test_a_table_behind_a_database_connection(tmp_path: Path) -> None:
    def connect() -> sqlite3.Connection:
        return sqlite3.connect(tmp_path / "shop.db")

    with connect() as connection:
        connection.execute(SCHEMA)
        for number in range(5):
            connection.execute("INSERT INTO outbox (topic, key, value) VALUES (?, ?, ?)", ("a", b"k", b"%d" % number))
        connection.execute("INSERT INTO outbox (topic) VALUES ('a')")
    connection.close()

    async def scenario() -> None:
        outbox = SqlOutbox(connect)
        first = await outbox.rows(4)
        assert [(row.topic, row.key, row.value) for row in first] == [("a", b"k", b"%d" % n) for n in range(4)]
        await outbox.delete(first)
        left = await outbox.rows(10)
        assert [(row.key, row.value) for row in left] == [(b"k", b"4"), (None, None)]

    asyncio.run(scenario())
    with pytest.raises(ValueError, match="name of a table"):
        SqlOutbox(connect, table="outbox; DROP TABLE orders")
