"""A producer that sends each record once: unanswered records may have been written, and are never sent again.

With ``acks=0`` there is no response: a record counts as delivered when it was sent.
"""

from __future__ import annotations

import asyncio
import random

from millbeck.records import batch
from millbeck.records.record import Record
from millbeck.simulation.histories.history import History
from millbeck.simulation.workloads.produce_and_read import REPLY_SECONDS, RETRY_SECONDS, TOPIC, NodeAccess, Trouble
from millbeck.simulation.workloads.wire_client import WireClient
from millbeck.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

PAUSE_SECONDS_MAX = 0.05


async def send_each_once(cluster: NodeAccess, history: History, name: str, dice: random.Random, *, acks: int) -> None:
    """Send to partition 0 until the faults are over."""
    count = 0
    while not cluster.is_calm:
        client = await cluster.connect_to(0)
        try:
            while not cluster.is_calm:
                count += 1
                send = history.send(name, "0", f"{name}-{count}")
                data = batch.build([Record(-1, cluster.environment.clock.wall_ms(), None, send.value.encode())])
                base_offset = await _deliver(client, data, acks)
                if base_offset is not None:
                    send.acknowledged(base_offset if base_offset >= 0 else None)
                await asyncio.sleep(dice.random() * PAUSE_SECONDS_MAX)
        except Trouble:
            await asyncio.sleep(RETRY_SECONDS)
        finally:
            client.close()


async def _deliver(client: WireClient, data: bytes, acks: int) -> int | None:
    """Send one record; returns its offset, -1 if unknown, None if not acknowledged."""
    partition = TopicProduceData(name=TOPIC, partition_data=[PartitionProduceData(0, data)])
    request = ProduceRequest(acks=acks, timeout_ms=5000, topic_data=[partition])
    if acks == 0:
        if client.is_lost:
            raise ConnectionError("it is closed")
        client.send(request, 9, expects_reply=False)
        return -1
    (answer,) = (await client.ask(request, 9, timeout_s=REPLY_SECONDS)).responses[0].partition_responses
    if answer.error_code:
        raise ConnectionError(f"error {answer.error_code}")
    return int(answer.base_offset)
