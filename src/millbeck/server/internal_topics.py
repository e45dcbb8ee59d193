"""The node's own topics and how they are made on first use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from millbeck.controller.auto_creation import InternalTopic
from millbeck.kernel.names import CONSUMER_OFFSETS_TOPIC
from millbeck.server.config import NodeConfig

OFFSETS_TOPIC: Final = CONSUMER_OFFSETS_TOPIC


def internal_topics(config: NodeConfig) -> Mapping[str, InternalTopic]:
    offsets = config.offsets_topic
    return {
        OFFSETS_TOPIC: InternalTopic(
            partition_count=offsets.partition_count,
            replication_factor=offsets.replication_factor,
            options=offsets.topic_options(),
        )
    }
