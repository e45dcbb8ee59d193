"""What there is to read for sinks: the ends of all their partitions, asked for together."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from millbeck.client.admin import Admin
from millbeck.client.admin.results import GroupOffset, NewTopic
from millbeck.client.consumer import Consumer
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError, InvalidReplicationFactor, TopicAlreadyExists, UnknownTopicOrPartition
from millbeck.kernel.ids import TopicPartition

log = logging.getLogger(__name__)

READ_COMMITTED: Final = "read_committed"
_ISOLATIONS: Final = (READ_COMMITTED, "read_uncommitted")
_MISSING_SECONDS: Final = 1.0
_ASK_SECONDS: Final = 20.0


@dataclass(slots=True)
class Subscription:
    """The partitions of one sink; ``wants`` tells which topics it reads."""

    wants: Callable[[str], bool]
    isolation: str
    on_change: Callable[[], None]
    ends: dict[TopicPartition, int] = field(default_factory=dict)
    partitions: tuple[TopicPartition, ...] = ()
    has_ends: bool = False


class LogWatch:
    """Asks every ``interval_s`` for the ends of the partitions of all subscriptions, with one request a broker."""

    def __init__(
        self, environment: Environment, settings: Mapping[str, str], *, interval_s: float, refresh_s: float
    ) -> None:
        self.admin = Admin(dict(settings), environment=environment)
        self._consumers = {
            isolation: Consumer({**settings, "isolation.level": isolation}, environment=environment)
            for isolation in _ISOLATIONS
        }
        self._interval_s = interval_s
        self._refresh_s = refresh_s
        self._subscriptions: dict[str, Subscription] = {}
        self._refresh_due_s = 0.0
        self._is_needed = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._running = asyncio.create_task(self._run())

    async def close(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])
        await self.admin.close()
        for consumer in self._consumers.values():
            await consumer.close()

    def subscribe(self, name: str, subscription: Subscription) -> None:
        self._subscriptions[name] = subscription
        self._refresh_due_s = 0.0
        self._is_needed.set()

    def unsubscribe(self, name: str) -> None:
        self._subscriptions.pop(name, None)
        if not self._subscriptions:
            self._is_needed.clear()

    async def ensure_topic(self, name: str, replicas: int) -> None:
        """Make a topic of one partition if it is missing, with one replica if there are too few brokers."""
        if name in await self.admin.list_topics():
            return
        for count in dict.fromkeys((replicas, 1)):
            new = NewTopic(name=name, partition_count=1, replication_factor=count)
            error = (await self.admin.create_topics([new])).failed.get(name)
            if error is None or isinstance(error, TopicAlreadyExists):
                return
            if not isinstance(error, InvalidReplicationFactor) or count == 1:
                raise error
            log.warning("%s is made with one replica, because there are fewer than %d brokers", name, replicas)

    async def beginnings(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        return await self._consumers[READ_COMMITTED].beginning_offsets(partitions) if partitions else {}

    async def committed(self, group: str) -> dict[TopicPartition, int]:
        """The committed offsets of a group; waits for open transactions that hold some."""
        found = (await self.admin.list_group_offsets([group], require_stable=True))[group]
        return {partition: each.offset for partition, each in found.items()}

    async def commit(self, group: str, positions: Mapping[TopicPartition, int]) -> None:
        """Commit offsets of a group without members. Raises `ApiError`."""
        offsets = {partition: GroupOffset(offset=offset) for partition, offset in positions.items()}
        done = await self.admin.alter_group_offsets(group, offsets)
        for error in done.failed.values():
            raise error

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._is_needed.wait()
            try:
                async with asyncio.timeout(_ASK_SECONDS):
                    if loop.time() >= self._refresh_due_s:
                        await self._refresh(loop.time())
                    await self._ask()
            except UnknownTopicOrPartition:
                self._refresh_due_s = 0.0
            except (ApiError, TimeoutError) as error:
                log.debug("the ends of partitions are not known: %s", error)
            await asyncio.sleep(self._interval_s)

    async def _refresh(self, now_s: float) -> None:
        listed = await self.admin.list_topics()
        is_missing = False
        for subscription in list(self._subscriptions.values()):
            subscription.partitions = tuple(
                TopicPartition(name, number)
                for name, topic in sorted(listed.items())
                if not topic.is_internal and subscription.wants(name)
                for number in range(topic.partition_count)
            )
            is_missing = is_missing or not subscription.partitions
        self._refresh_due_s = now_s + (min(_MISSING_SECONDS, self._refresh_s) if is_missing else self._refresh_s)

    async def _ask(self) -> None:
        for isolation, consumer in self._consumers.items():
            subscriptions = [each for each in self._subscriptions.values() if each.isolation == isolation]
            wanted = {partition: None for each in subscriptions for partition in each.partitions}
            found = await consumer.end_offsets(list(wanted)) if wanted else {}
            for each in subscriptions:
                ends = {partition: found[partition] for partition in each.partitions if partition in found}
                if ends != each.ends or not each.has_ends:
                    each.ends = ends
                    each.has_ends = True
                    each.on_change()
