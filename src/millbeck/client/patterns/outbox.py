"""Publish the rows of an outbox table: changes and their records are one transaction of the database.

A program that changes its database and sends a record loses one of the two if it stops in between. Instead it inserts
the record as a row of a table in the same transaction as the change; a relay reads the rows and sends them:

    outbox = SqlOutbox(lambda: sqlite3.connect("shop.db"))
    await OutboxRelay(producer, outbox).run()

Rows are sent in the order of their ids, and deleted when all of them are acknowledged: at least once, since the relay
may stop in between. A copy has the same header ``outbox.id``, by which readers drop what they know. Only one relay may
run; with a ``transactional.id`` on the producer a second relay fences off the first.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any, Final, NamedTuple, Protocol

from millbeck.client.producer import Producer
from millbeck.kernel.errors import ApiError
from millbeck.records.record import Header

log = logging.getLogger(__name__)

ID: Final = "outbox.id"

SCHEMA: Final = """
CREATE TABLE outbox (
    id      INTEGER PRIMARY KEY,
    topic   VARCHAR(249) NOT NULL,
    key     BLOB,
    value   BLOB
)
"""
"""The table in SQLite's words; PostgreSQL has ``BIGSERIAL`` and ``BYTEA`` instead of INTEGER and BLOB."""


class OutboxRow(NamedTuple):
    id: int
    topic: str
    key: bytes | None
    value: bytes | None


class Outbox(Protocol):
    """An outbox table, or anything that can list rows and delete them."""

    async def rows(self, limit: int) -> Sequence[OutboxRow]:
        """Up to ``limit`` committed rows, those with the smallest ids, in order."""

    async def delete(self, rows: Sequence[OutboxRow]) -> None:
        """Delete rows that were sent."""


class SqlOutbox:
    """An outbox table behind a DB-API 2.0 connection, used on a thread."""

    def __init__(self, connect: Callable[[], Any], *, table: str = "outbox", placeholder: str = "?") -> None:
        """``connect`` opens a connection; ``placeholder`` is that of its driver: ``%s`` for PostgreSQL and MySQL."""
        if not table.replace(".", "_").isidentifier():
            raise ValueError(f"{table!r} is not the name of a table")
        self._connect = connect
        self._select = f"SELECT id, topic, key, value FROM {table} ORDER BY id LIMIT {placeholder}"
        self._delete = f"DELETE FROM {table} WHERE id = {placeholder}"

    async def rows(self, limit: int) -> Sequence[OutboxRow]:
        return await asyncio.to_thread(self._rows, limit)

    def _rows(self, limit: int) -> list[OutboxRow]:
        with closing(self._connect()) as connection, closing(connection.cursor()) as cursor:
            cursor.execute(self._select, (limit,))
            return [
                OutboxRow(number, topic, None if key is None else bytes(key), None if value is None else bytes(value))
                for number, topic, key, value in cursor.fetchall()
            ]

    async def delete(self, rows: Sequence[OutboxRow]) -> None:
        await asyncio.to_thread(self._delete_all, [(row.id,) for row in rows])

    def _delete_all(self, ids: list[tuple[int]]) -> None:
        with closing(self._connect()) as connection, closing(connection.cursor()) as cursor:
            cursor.executemany(self._delete, ids)
            connection.commit()


class OutboxRelay:
    """Sends the rows of an outbox, in order."""

    def __init__(
        self,
        producer: Producer[bytes, bytes],
        outbox: Outbox,
        *,
        interval_s: float = 0.5,
        batch_max: int = 500,
        retry_s: float = 5.0,
    ) -> None:
        """``interval_s`` is the time between two looks at an empty outbox, ``retry_s`` that after an error of the
        outbox or a retriable one of the producer."""
        self._producer = producer
        self._outbox = outbox
        self._interval_s = interval_s
        self._batch_max = batch_max
        self._retry_s = retry_s

    async def run(self) -> None:
        """Send until the task is cancelled; raises errors of the producer that a retry does not help."""
        while True:
            try:
                count = await self.relay_once()
            except ApiError as error:
                if not error.retriable:
                    raise
                log.warning("rows of the outbox could not be sent: %s", error)
                await asyncio.sleep(self._retry_s)
            except Exception as error:
                log.warning("the outbox could not be read: %s", error)
                await asyncio.sleep(self._retry_s)
            else:
                if count < self._batch_max:
                    await asyncio.sleep(self._interval_s)

    async def relay_once(self) -> int:
        """Send the rows that are there now, and delete them; returns how many."""
        rows = await self._outbox.rows(self._batch_max)
        if not rows:
            return 0
        if self._producer.config.transactional_id is None:
            await self._send(rows)
        else:
            async with self._producer.transaction():
                await self._send(rows)
        await self._outbox.delete(rows)
        return len(rows)

    async def _send(self, rows: Sequence[OutboxRow]) -> None:
        futures = []
        for row in rows:
            headers: list[Header] = [(ID, str(row.id).encode())]
            future = await self._producer.enqueue(row.topic, row.value, key=row.key, headers=headers)
            # Its error is raised below; if another one comes first, this one need not be logged.
            future.add_done_callback(lambda done: done.cancelled() or done.exception())
            futures.append(future)
        await self._producer.flush()
        for future in futures:
            future.result()
