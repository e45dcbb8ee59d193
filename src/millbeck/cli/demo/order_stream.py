"""The thread of the demo that writes orders in real time."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

from millbeck.pipeline.demo.orders import SPEED, customers, orders

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millbeck.client.producer import Producer
    from millbeck.pipeline.demo.orders import Event

SEED: Final = 7


class OrderStream:
    """Writes the customers, and then orders every second until it is stopped; ``error`` is set after a failure."""

    def __init__(self, bootstrap: str, *, begin_ms: int, per_second: int) -> None:
        self._bootstrap = bootstrap
        self._begin_ms = begin_ms
        self._per_second = per_second
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name="orders", daemon=True)
        self.record_count = 0
        self.written_ms = begin_ms
        """The event time up to which all orders are in the log."""
        self.error: Exception | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop after the orders of this second, and wait until they are acknowledged."""
        self._ends.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        import asyncio

        try:
            asyncio.run(self._write())
        except Exception as error:
            self.error = error

    async def _write(self) -> None:
        import asyncio

        from millbeck.client.producer import Producer

        async with Producer({"bootstrap.servers": self._bootstrap}) as producer:
            await send(producer, customers(self._begin_ms))
            for second, made in enumerate(orders(SEED, self._begin_ms, per_second=self._per_second), 1):
                if self._ends.is_set():
                    return
                began_s = time.monotonic()
                await send(producer, made)
                self.record_count += len(made)
                self.written_ms = self._begin_ms + second * SPEED * 1000
                while not self._ends.is_set() and (left_s := 1 - (time.monotonic() - began_s)) > 0:
                    await asyncio.sleep(min(left_s, 0.1))


async def send(producer: Producer, events: Sequence[Event]) -> None:
    """Send the events and wait for all acknowledgements."""
    sent = [
        await producer.enqueue(event.topic, event.value, key=event.key, timestamp=event.timestamp_ms)
        for event in events
    ]
    for future in sent:
        await future
