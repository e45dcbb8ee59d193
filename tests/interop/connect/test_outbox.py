"""Orders and their events across systems: an outbox, its changes, a consumer that may see an event twice.

The application writes an order and its event in one transaction of its database; the connector and EventRouter bring
events to the log; the consumer books them in its own database, each once, whatever it is given again. All three are
killed again and again.
"""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from millbeck.pipeline.connect.model.record import SourceRecord
from tests.interop.connect.postgres_server import PostgresServer, bin_directory
from tests.interop.connect.source_runner import Log, SourceRunner

pytestmark = pytest.mark.skipif(bin_directory() is None, reason="no PostgreSQL: apt-get install postgresql")
TOPIC = "outbox.event.order"
ROUTER = {
    "transforms": "outbox",
    "transforms.outbox.type": "io.debezium.transforms.outbox.EventRouter",
    "table.include.list": "public.outbox",
    "publication.autocreate.mode": "filtered",
}


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with PostgresServer() as found:
        yield found


class Killed(Exception):
    """The program ends here, in the test's stead of SIGKILL."""


def place_order(db: psycopg.Connection[Any], number: int, amount: int, *, dies_at: int) -> None:
    """The application: the order, its event, commit. The event leaves the outbox at once; the log has it."""
    event = str(uuid.uuid4())
    steps = (
        ("insert into orders values (%s, %s)", (number, amount)),
        (
            "insert into outbox values (%s, 'order', %s, 'placed', %s)",
            (event, str(number), json.dumps({"amount": amount})),
        ),
        ("delete from outbox where id = %s", (event,)),
    )
    for place, (statement, values) in enumerate(steps):
        if place == dies_at:
            raise Killed
        db.execute(statement, values)
    db.commit()


class Consumer:
    """Books events and remembers their ids in one transaction; its position in the log comes after."""

    def __init__(self, db: psycopg.Connection[Any]) -> None:
        self._db = db
        self.position = 0

    def take(self, records: list[SourceRecord], *, dies_at: int | None) -> None:
        position = self.position
        for place, record in enumerate(records[position : position + 7]):
            (event,) = (header.value for header in record.headers if header.key == "id")
            is_new = self._db.execute("insert into seen values (%s) on conflict do nothing", (event,)).rowcount
            if is_new:
                amount = json.loads(record.value)["amount"]
                self._db.execute("update booked set orders = orders + 1, amount = amount + %s", (amount,))
            if place == dies_at:
                self._db.rollback()
                raise Killed
            self._db.commit()
            position += 1
        if dies_at is not None:
            raise Killed
        self.position = position


def test_no_order_is_missing_or_booked_twice(server: PostgresServer) -> None:
    chance = random.Random(5)
    settings = {**server.connector_settings(), **ROUTER}
    with server.connect(autocommit=False) as shop, server.connect(autocommit=False) as books:
        shop.execute("create table orders (id int primary key, amount int not null)")
        shop.execute(
            "create table outbox (id uuid primary key, aggregatetype text not null, aggregateid text not null, "
            "type text not null, payload jsonb)"
        )
        books.execute("create table seen (id uuid primary key); create table booked (orders int, amount bigint)")
        books.execute("insert into booked values (0, 0)")
        shop.commit()
        books.commit()
        log = Log()
        running = SourceRunner(settings, log)
        running.run_until(lambda: "lsn_commit" in (log.get({"server": "shop"}) or {}))
        consumer = Consumer(books)
        kills = 0
        for number in range(150):
            try:
                place_order(shop, number, chance.randrange(1, 100), dies_at=chance.randrange(8))
            except Killed:
                shop.rollback()
                kills += 1
            if chance.random() < 0.3:
                running.turn(loses=(0,) if chance.random() < 0.3 else ())
            if chance.random() < 0.1:
                running.stop()
                running = SourceRunner(settings, log)
                kills += 1
            try:
                consumer.take(log.records, dies_at=chance.randrange(7) if chance.random() < 0.3 else None)
            except Killed:
                kills += 1
        wanted = shop.execute("select count(*), sum(amount) from orders").fetchone()
        shop.commit()
        assert wanted is not None
        running.run_until(lambda: len(log.records) >= wanted[0])
        running.stop()
        while consumer.position < len(log.records):
            consumer.take(log.records, dies_at=None)
        booked = books.execute("select orders, amount from booked").fetchone()
        assert booked == wanted
        assert kills > 50
        assert {record.topic for record in log.records} == {TOPIC}
        assert len(log.records) == wanted[0]
        books.rollback()
