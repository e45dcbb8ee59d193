"""A node as these tests use it: topics made and deleted, records put in and read back without Spark."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from millbeck.client.admin import Admin
from millbeck.client.admin.results import NewTopic
from millbeck.client.blocking import Blocking
from millbeck.client.consumer import Consumer
from millbeck.client.producer import Producer
from millbeck.kernel.ids import TopicPartition
from millbeck.records.record import Record

if TYPE_CHECKING:
    from millbeck.testing.broker_process import Broker


class LiveLog:
    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.bootstrap = broker.bootstrap
        self.blocking = Blocking()
        servers = {"bootstrap.servers": broker.bootstrap}
        self.admin = self.blocking.make(lambda environment: Admin(servers, environment=environment))
        self.producer = self.blocking.make(lambda environment: Producer(servers, environment=environment))

    def close(self) -> None:
        self.blocking.close()

    def create(self, name: str, partitions: int = 1, **settings: str) -> None:
        # Records have made-up times, which are long ago for the log's retention.
        configs = {"retention.ms": "-1"} | {setting.replace("_", "."): value for setting, value in settings.items()}
        new = NewTopic(name=name, partition_count=partitions, configs=configs)
        self.blocking.run(self.admin.create_topics([new]))[name]

    def delete(self, name: str) -> None:
        self.blocking.run(self.admin.delete_topics([name]))[name]

    def delete_records(self, topic: str, before: int) -> None:
        self.blocking.run(self.admin.delete_records({TopicPartition(topic, 0): before}))

    def put(self, topic: str, records: Iterable[dict[str, Any]]) -> None:
        async def put() -> None:
            for record in records:
                await self.producer.enqueue(topic, **record)
            await self.producer.flush()

        self.blocking.run(put())

    def values(self, topic: str, isolation: str = "read_committed") -> list[bytes]:
        """The values of a topic without null values; `read` gives those, too."""
        values = [record.value for _, record in self.read(topic, isolation)]
        assert None not in values, "a null value: compare what read() gives"
        return [value for value in values if value is not None]

    def read(self, topic: str, isolation: str = "read_committed") -> list[tuple[int, Record]]:
        """Every record and its partition, in order within each."""

        async def read() -> list[tuple[int, Record]]:
            settings = {"bootstrap.servers": self.bootstrap, "isolation.level": isolation}
            async with Consumer(settings, environment=self.blocking.environment) as consumer:
                view = await consumer.topic(topic)
                partitions = [TopicPartition(topic, number) for number in view.partitions]
                ends = await consumer.end_offsets(partitions)
                consumer.assign(partitions)
                consumer.seek_to_beginning()
                found: list[tuple[int, Record]] = []
                while any([await consumer.position(each) < ends[each] for each in partitions]):
                    for partition, records in (await consumer.poll(timeout_s=0.2, max_records=5000)).items():
                        found += [(partition.partition, record) for record in records]
                return sorted(found, key=lambda entry: (entry[0], entry[1].offset))

        return self.blocking.run(read())

    def committed(self, group: str, topic: str) -> dict[int, int]:
        async def committed() -> dict[int, int]:
            settings = {"bootstrap.servers": self.bootstrap, "group.id": group}
            async with Consumer(settings, environment=self.blocking.environment) as consumer:
                view = await consumer.topic(topic)
                found = await consumer.committed([TopicPartition(topic, number) for number in view.partitions])
                return {partition.partition: entry.offset for partition, entry in found.items() if entry is not None}

        return self.blocking.run(committed())
