"""The audit topic ``__millbeck_audit``: one record per line, in the partition of the node id modulo the partition
count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from millbeck.controller.auto_creation import InternalTopic
from millbeck.kernel.units import DAY_MS
from millbeck.records.builder import BatchBuilder
from millbeck.server.topic_writer import TopicWriter

if TYPE_CHECKING:
    from millbeck.server.broker import Broker

NAME: Final = "topic"
AUDIT_TOPIC: Final = "__millbeck_audit"
RETENTION_MS: Final = 90 * DAY_MS
"""The configuration of the topic when it is created here; it can be altered, or the topic can be created beforehand."""


class AuditTopic:
    name = NAME

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._topics = TopicWriter(broker, lambda: broker.peers, "audit")

    async def write(self, lines: Sequence[str]) -> int:
        """Write lines to the topic; raises `ApiError`. A line above the topic's ``max.message.bytes`` is left out: it
        would hold up all others."""
        broker = self._broker
        if broker.image.topics.named(AUDIT_TOPIC) is None:
            made = InternalTopic(partition_count=1, replication_factor=-1, options={"retention.ms": str(RETENTION_MS)})
            for error in (await broker.auto_create([AUDIT_TOPIC], {AUDIT_TOPIC: made})).values():
                raise error
        size_bytes_max = self._topics.config_of(AUDIT_TOPIC).max_message_bytes
        now_ms = broker.now_ms()
        key = b"%d" % broker.node_id
        empty, builder = BatchBuilder(), BatchBuilder()
        left_out = 0
        for line in lines:
            value = line.encode()
            if empty.size_with(now_ms, key, value, ()) > size_bytes_max:
                left_out += 1
                continue
            if builder.record_count and builder.size_with(now_ms, key, value, ()) > size_bytes_max:
                await self._topics.append(AUDIT_TOPIC, broker.node_id, builder.build())
                builder = BatchBuilder()
            builder.append(now_ms, key, value, ())
        if builder.record_count:
            await self._topics.append(AUDIT_TOPIC, broker.node_id, builder.build())
        return left_out
