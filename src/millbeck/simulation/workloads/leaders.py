"""Connections of workloads to several nodes: to any of them for metadata, to the leader for a partition."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import cast

from millbeck.kernel.environment import Environment
from millbeck.simulation.workloads.produce_and_read import REPLY_SECONDS, RETRY_SECONDS, TOPIC, NodeAccess, Trouble
from millbeck.simulation.workloads.wire_client import WireClient
from millbeck.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

CONNECT_SECONDS = 2.0


class MultiNodeCluster(NodeAccess):
    """Connections to a cluster; ``addresses`` are those of the brokers' listeners, which are tried in random order."""

    def __init__(self, environment: Environment, addresses: Sequence[tuple[str, int]], dice: random.Random) -> None:
        super().__init__(environment, *addresses[0])
        self._addresses = list(addresses)
        self._dice = dice
        self._epochs: dict[int, int] = {}
        """The newest known leader epoch: a response with an older one comes from a node that lags behind."""

    async def connect(self) -> WireClient:
        """Connect to any broker, retrying until it succeeds."""
        while True:
            client = await self._try(*self._dice.choice(self._addresses))
            if client is not None:
                return client
            await asyncio.sleep(RETRY_SECONDS)

    async def connect_to(self, partition: int) -> WireClient:
        while True:
            address = await self._leader_of(partition)
            client = None if address is None else await self._try(*address)
            if client is not None:
                return client
            await asyncio.sleep(RETRY_SECONDS)

    async def _try(self, host: str, port: int) -> WireClient | None:
        try:
            connecting = self.environment.network.connect(WireClient, host=host, port=port)
            _, client = await asyncio.wait_for(connecting, CONNECT_SECONDS)
        except Trouble:
            return None
        return cast(WireClient, client)

    async def _leader_of(self, partition: int) -> tuple[str, int] | None:
        client = await self.connect()
        try:
            request = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)], allow_auto_topic_creation=False)
            answer = await client.ask(request, 9, timeout_s=REPLY_SECONDS)
        except Trouble:
            return None
        finally:
            client.close()
        for each in answer.topics[0].partitions:
            if each.partition_index == partition and each.leader_epoch >= self._epochs.get(partition, -1):
                self._epochs[partition] = each.leader_epoch
                brokers = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
                return brokers.get(each.leader_id)
        return None
