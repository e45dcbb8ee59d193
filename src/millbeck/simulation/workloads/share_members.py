"""Members of a share group that accept, release, reject and forget their records, and sometimes crash."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from typing import Final, NamedTuple

from millbeck.client.share import AcknowledgeType, AcquiredRecord, ShareConsumer
from millbeck.client.share.session import Place
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError
from millbeck.kernel.ids import TopicPartition
from millbeck.simulation.histories.share_history import ShareHistory
from millbeck.wire.messages.share_fetch import ShareFetchPartitionResult

POLL_SECONDS: Final = 0.5


class ShareMemberBehaviour(NamedTuple):
    """The probabilities of what a member does with a record, or after a poll."""

    release: float = 0.1
    reject: float = 0.05
    forget: float = 0.05
    die: float = 0.02
    leave: float = 0.02
    work_s: float = 0.2


class WatchedConsumer(ShareConsumer):
    """Records in the history when the fetch of each delivery was sent."""

    def __init__(self, environment: Environment, settings: Mapping[str, str], history: ShareHistory) -> None:
        super().__init__(settings, on_acknowledged=self._acknowledged, environment=environment)
        self._history = history
        self._asked_s: dict[int, float] = {}

    async def _fetch(self, node_id: int, wanted: dict[Place, str]) -> None:
        self._asked_s[node_id] = asyncio.get_running_loop().time()
        await super()._fetch(node_id, wanted)

    def _read(self, node_id: int, place: Place, name: str, result: ShareFetchPartitionResult) -> None:
        before = len(self._ready)
        super()._read(node_id, place, name, result)
        for delivery in list(self._ready)[before:]:
            self._history.delivered(
                delivery.partition,
                delivery.record.offset,
                fetched_s=self._asked_s[node_id],
                delivery_count=delivery.delivery_count,
            )

    def acknowledge(self, delivery: AcquiredRecord, kind: AcknowledgeType = AcknowledgeType.ACCEPT) -> None:
        self._history.acknowledged(delivery.partition, delivery.record.offset, kind)
        super().acknowledge(delivery, kind)

    def _acknowledged(
        self, partition: TopicPartition, offsets: Mapping[int, AcknowledgeType], error: ApiError | None
    ) -> None:
        if error is None:
            now_s = asyncio.get_running_loop().time()
            for offset, kind in offsets.items():
                self._history.confirmed(self.member_id, partition, offset, kind, now_s)


class SimShareMember:
    def __init__(
        self,
        environment: Environment,
        history: ShareHistory,
        dice: random.Random,
        settings: Mapping[str, str],
        topic: str,
        behaviour: ShareMemberBehaviour,
    ) -> None:
        self._dice = dice
        self._behaviour = behaviour
        self._topic = topic
        self.is_calm = False
        """From now on the member accepts every record and does not leave."""
        self._consumer = WatchedConsumer(environment, settings, history)

    async def live(self) -> None:
        """Run until the member leaves or dies."""
        consumer, dice, behaviour = self._consumer, self._dice, self._behaviour
        try:
            consumer.subscribe([self._topic])
            while True:
                for delivery in await consumer.poll(timeout_s=POLL_SECONDS):
                    self._acknowledge(delivery)
                await asyncio.sleep(dice.random() * behaviour.work_s)
                if self.is_calm:
                    await self._commit()
                    continue
                if dice.random() < 0.5:
                    await self._commit()
                if dice.random() < behaviour.die:
                    return
                if dice.random() < behaviour.leave:
                    await consumer.close()
                    return
        finally:
            # Without a word, unless it has said goodbye.
            await consumer.cluster.close()

    async def _commit(self) -> None:
        try:
            await self._consumer.commit()
        except TimeoutError:
            return

    def _acknowledge(self, delivery: AcquiredRecord) -> None:
        roll = 1.0 if self.is_calm else self._dice.random()
        for chance, kind in (
            (self._behaviour.release, AcknowledgeType.RELEASE),
            (self._behaviour.reject, AcknowledgeType.REJECT),
            (self._behaviour.forget, None),
        ):
            if roll < chance:
                if kind is not None:
                    self._consumer.acknowledge(delivery, kind)
                return
            roll -= chance
        self._consumer.acknowledge(delivery)
