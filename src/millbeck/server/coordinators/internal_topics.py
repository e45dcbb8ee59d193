"""The internal topics, and their configuration when they are created on first use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from millbeck.controller.auto_creation import InternalTopic
from millbeck.kernel.names import CONSUMER_OFFSETS_TOPIC, SHARE_GROUP_STATE_TOPIC, TRANSACTION_STATE_TOPIC
from millbeck.server.config import NodeConfig

OFFSETS_TOPIC: Final = CONSUMER_OFFSETS_TOPIC


def internal_topics(config: NodeConfig) -> Mapping[str, InternalTopic]:
    offsets, transactions, share = config.offsets_topic, config.transaction_topic, config.share_coordinator
    return {
        OFFSETS_TOPIC: InternalTopic(
            partition_count=offsets.partition_count,
            replication_factor=offsets.replication_factor,
            options=offsets.topic_options(),
        ),
        TRANSACTION_STATE_TOPIC: InternalTopic(
            partition_count=transactions.partition_count,
            replication_factor=transactions.replication_factor,
            options={
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "min.insync.replicas": str(transactions.min_insync_replicas),
                "segment.bytes": str(transactions.segment_bytes),
                "unclean.leader.election.enable": "false",
            },
        ),
        SHARE_GROUP_STATE_TOPIC: InternalTopic(
            partition_count=share.partition_count,
            replication_factor=share.replication_factor,
            # Obsolete records are deleted by the coordinator, never by age.
            options={
                "cleanup.policy": "delete",
                "compression.type": "producer",
                "min.insync.replicas": str(share.min_insync_replicas),
                "retention.ms": "-1",
                "segment.bytes": str(share.segment_bytes),
            },
        ),
    }
