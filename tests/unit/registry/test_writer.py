"""The writer over a producer that fails."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from millbeck.client.schemas.log_records import KeyType, LogKey, LogRecord, encode_key
from millbeck.host import real_environment
from millbeck.kernel.errors import ProducerFenced
from millbeck.registry import writer
from millbeck.registry.reader import Reader
from millbeck.registry.writer import Writer


class Fenced:
    """A producer whose commit is refused, and whose records are not acknowledged before it is closed."""

    def __init__(self, settings: Any, *, environment: Any) -> None:
        self.settings = settings
        self.futures: list[asyncio.Future[Any]] = []

    def begin_transaction(self) -> None: ...

    async def enqueue(self, topic: str, value: Any, **more: Any) -> asyncio.Future[Any]:
        self.futures.append(asyncio.get_running_loop().create_future())
        return self.futures[-1]

    async def commit_transaction(self) -> None:
        raise ProducerFenced("another instance writes")

    async def close(self, timeout_s: float) -> None:
        for each in self.futures:
            each.set_exception(ProducerFenced("closed before the record was acknowledged"))
        self.futures.clear()


def test_a_refused_write_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "Producer", Fenced)
    reported: list[Any] = []

    async def write() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
        environment = real_environment()
        reader = Reader(environment, {}, "_schemas")
        made = Writer(environment, {}, "_schemas", reader, timeout_s=1.0)
        record = LogRecord(encode_key(LogKey(KeyType.MODE)), b"{}")
        with pytest.raises(ProducerFenced, match="another instance writes"):
            await made.write([record, record])
        await made.close()
        await asyncio.sleep(0)
        gc.collect()

    asyncio.run(write())
    assert reported == []
