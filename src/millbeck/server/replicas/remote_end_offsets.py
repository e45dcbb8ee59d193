"""Cached end offsets of partitions without a local replica, for the consumer lag of this broker's groups.

A caller gets the cached offsets at once. Missing or stale ones are requested from the partitions' leaders in the
background (ListOffsets), so that the next caller has them. Without callers no requests are sent.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

from millbeck.client.addresses import Address
from millbeck.client.connection import ConnectionSettings
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError
from millbeck.kernel.ids import TopicPartition
from millbeck.server.network.peer_security import connect_to_peer
from millbeck.wire.messages.log_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

ASK_AGAIN_SECONDS: Final = 5.0
ANSWER_SECONDS_MAX: Final = 10.0
A_CONSUMER: Final = -1
LATEST: Final = -1

log = logging.getLogger(__name__)


class RemoteEndOffsets:
    """The high watermarks as of the last responses."""

    def __init__(
        self,
        environment: Environment,
        *,
        address_of: Callable[[int], Address | None],
        connection_settings: Callable[[], ConnectionSettings],
        spawn: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        self._environment = environment
        self._address_of = address_of
        self._connection_settings = connection_settings
        self._spawn = spawn
        self._known: dict[TopicPartition, int] = {}
        self._requested_s: float | None = None
        self._is_asking = False

    def read(self, leaders: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """The cached end offsets of these partitions, each of which is led by another broker."""
        self._known = {name: offset for name, offset in self._known.items() if name in leaders}
        now_s = self._environment.clock.monotonic()
        is_due = self._requested_s is None or now_s - self._requested_s >= ASK_AGAIN_SECONDS
        if leaders and is_due and not self._is_asking:
            self._is_asking = True
            self._requested_s = now_s
            self._spawn(self._request_all(dict(leaders)))
        return self._known

    async def _request_all(self, leaders: Mapping[TopicPartition, int]) -> None:
        by_leader: dict[int, list[TopicPartition]] = {}
        for name, leader_id in leaders.items():
            by_leader.setdefault(leader_id, []).append(name)
        try:
            for leader_id, names in by_leader.items():
                try:
                    await self._request_offsets(leader_id, names)
                except ApiError as error:
                    log.info("could not get end offsets from broker %d: %s", leader_id, error)
        finally:
            self._is_asking = False

    async def _request_offsets(self, leader_id: int, names: list[TopicPartition]) -> None:
        address = self._address_of(leader_id)
        if address is None:
            return
        topics: dict[str, ListOffsetsTopic] = {}
        for name in names:
            topic = topics.setdefault(name.topic, ListOffsetsTopic(name.topic))
            topic.partitions.append(ListOffsetsPartition(name.partition, timestamp=LATEST))
        request = ListOffsetsRequest(replica_id=A_CONSUMER, topics=list(topics.values()))
        connection = await connect_to_peer(self._environment.network, address, self._connection_settings())
        try:
            answer = await connection.request(request, ListOffsetsResponse, timeout_s=ANSWER_SECONDS_MAX)
        finally:
            connection.close()
        for found in answer.topics:
            for each in found.partitions:
                if not each.error_code:
                    self._known[TopicPartition(found.name, each.partition_index)] = each.offset
