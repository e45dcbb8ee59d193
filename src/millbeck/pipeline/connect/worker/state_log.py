"""The three state topics: followed from their first record, and written to.

What is written takes effect when it is read back, in the worker that wrote it as in all others.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from millbeck.client.admin import Admin
from millbeck.client.admin.results import ConfigResource, NewTopic, ResourceType
from millbeck.client.consumer import Consumer
from millbeck.client.producer import Producer
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError, InvalidConfig, InvalidReplicationFactor, TopicAlreadyExists
from millbeck.kernel.ids import TopicPartition

log = logging.getLogger(__name__)

OnRecord = Callable[[str, int, bytes | None, bytes | None], None]
"""Topic, offset, key and value of a record."""

_POLL_SECONDS: Final = 1.0
_RETRY_SECONDS: Final = 0.5
_START_SECONDS: Final = 60.0
_RECORDS_PER_POLL: Final = 1000
_READ_BACK_SECONDS: Final = 60.0


class StateLog:
    """``on_record`` gets every committed record of the topics, in the order of each partition."""

    def __init__(
        self, environment: Environment, settings: Mapping[str, str], topics: Sequence[str], on_record: OnRecord
    ) -> None:
        self._environment = environment
        self._settings = dict(settings)
        self._topics = list(dict.fromkeys(topics))
        self._on_record = on_record
        self._positions: dict[TopicPartition, int] = {}
        self._changed = asyncio.Event()
        self._following: asyncio.Task[None] | None = None
        self._ends = Consumer({**self._settings, "isolation.level": "read_uncommitted"}, environment=environment)
        self._producer = Producer({**self._settings, "acks": "all", "linger.ms": 0}, environment=environment)

    async def start(self) -> None:
        """Read the topics up to their ends. Raises `ApiError`."""
        async with asyncio.timeout(_START_SECONDS):
            for topic in self._topics:
                view = await self._ends.topic(topic)
                self._positions |= {TopicPartition(topic, number): 0 for number in view.partitions}
        self._following = asyncio.create_task(self._run())
        await self.read_to_end(_START_SECONDS)

    async def close(self) -> None:
        if self._following is not None:
            self._following.cancel()
            await asyncio.wait([self._following])
        await self._producer.close()
        await self._ends.close()

    async def read_to_end(self, timeout_s: float = _READ_BACK_SECONDS) -> None:
        """Wait until everything is read that is there now, open transactions included."""
        ends = await self._ends.end_offsets(list(self._positions))
        await self._wait_for(ends, timeout_s)

    async def append(self, topic: str, records: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Write records and wait until they are read back. Raises `ApiError`, `TimeoutError`."""
        futures = [await self._producer.enqueue(topic, value, key=key) for key, value in records]
        stored = await asyncio.gather(*futures)
        wanted: dict[TopicPartition, int] = {}
        for each in stored:
            partition = TopicPartition(topic, each.partition)
            wanted[partition] = max(wanted.get(partition, 0), each.offset + 1)
        await self._wait_for(wanted, _READ_BACK_SECONDS)

    async def _wait_for(self, wanted: Mapping[TopicPartition, int], timeout_s: float) -> None:
        async with asyncio.timeout(timeout_s):
            while any(self._positions[partition] < offset for partition, offset in wanted.items()):
                self._changed.clear()
                await self._changed.wait()

    async def _run(self) -> None:
        while True:
            try:
                await self._follow()
            except ApiError as error:
                log.warning("the state topics cannot be read: %s", error)
                await asyncio.sleep(_RETRY_SECONDS)

    async def _follow(self) -> None:
        settings = {**self._settings, "isolation.level": "read_committed", "auto.offset.reset": "earliest"}
        async with Consumer(settings, environment=self._environment) as consumer:
            consumer.assign(self._positions)
            for partition, position in self._positions.items():
                consumer.seek(partition, position)
            is_behind = True
            while True:
                found = await consumer.poll(
                    timeout_s=0.05 if is_behind else _POLL_SECONDS, max_records=_RECORDS_PER_POLL
                )
                for partition, records in found.items():
                    for record in records:
                        self._on_record(partition.topic, record.offset, record.key, record.value)
                is_behind = False
                for partition in self._positions:
                    self._positions[partition] = await consumer.position(partition)
                    lag = consumer.lag(partition)
                    is_behind = is_behind or lag is None or lag > 0
                self._changed.set()


async def ensure_topic(
    environment: Environment,
    settings: Mapping[str, str],
    name: str,
    *,
    partitions: int,
    replication_factor: int,
    is_single: bool = False,
) -> None:
    """Make a state topic if it is missing. Raises `InvalidConfig` for one that forgets its records."""
    async with Admin(dict(settings), environment=environment) as admin:
        known = (await admin.list_topics()).get(name)
        if known is None:
            await _create(admin, name, 1 if is_single else partitions, replication_factor)
            return
        if is_single and known.partition_count != 1:
            raise InvalidConfig(
                f"config.storage.topic: {name} has {known.partition_count} partitions, and must have one: name another"
            )
        resource = ConfigResource(ResourceType.TOPIC, name)
        policy = (await admin.describe_configs({resource: ["cleanup.policy"]}))[resource]["cleanup.policy"].value
        if policy != "compact":
            raise InvalidConfig(
                f"{name} has cleanup.policy={policy}, which loses connectors' state after a while: millbeck config set"
                f" topic {name} cleanup.policy=compact"
            )


async def _create(admin: Admin, name: str, partitions: int, replication_factor: int) -> None:
    for replicas in dict.fromkeys((replication_factor, 1)):
        new = NewTopic(
            name=name,
            partition_count=partitions,
            replication_factor=replicas,
            configs={"cleanup.policy": "compact"},
        )
        error = (await admin.create_topics([new])).failed.get(name)
        if error is None or isinstance(error, TopicAlreadyExists):
            return
        if not isinstance(error, InvalidReplicationFactor) or replicas == 1:
            raise error
        log.warning("%s is made with one replica, because there are fewer than %d brokers", name, replication_factor)
