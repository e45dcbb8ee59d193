"""Reads topics from their beginning, continuing at its position, for the demo's table and its recount."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from millbeck.client.blocking import Blocking
    from millbeck.client.consumer import Consumer
    from millbeck.records.record import Record


class TopicReader:
    """Each `read` returns the records since the previous call, up to the current end of the topic."""

    def __init__(self, blocking: Blocking, bootstrap: str, topic: str) -> None:
        self._blocking = blocking
        self._settings = {"bootstrap.servers": bootstrap, "isolation.level": "read_committed"}
        self._topic = topic
        self._consumer: Consumer | None = None

    def read(self) -> list[Record]:
        from millbeck.client.consumer import Consumer

        if self._consumer is None:
            self._consumer = self._blocking.make(lambda environment: Consumer(self._settings, environment=environment))
        return self._blocking.run(self._read(self._consumer))

    async def _read(self, consumer: Consumer) -> list[Record]:
        from millbeck.kernel.ids import TopicPartition

        if not consumer.assignment:
            view = await consumer.topic(self._topic)
            consumer.assign(TopicPartition(self._topic, number) for number in view.partitions)
            consumer.seek_to_beginning()
        partitions = consumer.assignment
        ends = await consumer.end_offsets(partitions)
        found: list[Record] = []
        while any([await consumer.position(each) < ends[each] for each in partitions]):
            for records in (await consumer.poll(timeout_s=0.2, max_records=5000)).values():
                found += records
        return found
