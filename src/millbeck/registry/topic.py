"""The topic ``_schemas``: creation, and checks of its configuration."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from millbeck.client.admin import Admin
from millbeck.client.admin.results import ConfigResource, NewTopic, ResourceType
from millbeck.client.config import Value
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import (
    ApiError,
    InvalidConfig,
    InvalidReplicationFactor,
    TopicAlreadyExists,
    UnknownTopicOrPartition,
)

log = logging.getLogger(__name__)

POLICY: Final = "cleanup.policy"
COMPACT: Final = "compact"
_RETRY_SECONDS: Final = 0.2
_BROKERS_START_SECONDS: Final = 2.0
"""The time to wait for starting brokers before the topic is created with fewer replicas than configured."""
_DURABLE_REPLICAS: Final = 3


async def ensure_topic(
    environment: Environment, settings: Mapping[str, Value], topic: str, *, replication_factor: int, timeout_s: float
) -> None:
    """Create the topic if it is missing; raises `InvalidConfig` with the remedy if its configuration is unsuitable."""
    loop = asyncio.get_running_loop()
    fallback_s = loop.time() + _BROKERS_START_SECONDS
    async with Admin(settings, environment=environment) as admin, asyncio.timeout(timeout_s):
        while True:
            try:
                await _check(admin, topic)
                return
            except UnknownTopicOrPartition:
                if not await _create(admin, topic, replication_factor) and loop.time() > fallback_s:
                    log.warning(
                        "%s is created with one replica, because there are fewer than %d brokers",
                        topic,
                        replication_factor,
                    )
                    await _create(admin, topic, 1)
            except InvalidConfig:
                raise
            except ApiError as error:
                if not error.retriable:
                    raise
                log.info("waiting for %s: %s", topic, error)
            await asyncio.sleep(_RETRY_SECONDS)


async def _create(admin: Admin, topic: str, replication_factor: int) -> bool:
    """Create the topic; returns False if there are too few brokers for the replicas."""
    configs = {POLICY: COMPACT}
    if replication_factor >= _DURABLE_REPLICAS:
        configs["min.insync.replicas"] = str(_DURABLE_REPLICAS - 1)
    new = NewTopic(name=topic, partition_count=1, replication_factor=replication_factor, configs=configs)
    error = (await admin.create_topics([new])).failed.get(topic)
    if isinstance(error, InvalidReplicationFactor) and replication_factor > 1:
        return False
    if error is not None and not isinstance(error, TopicAlreadyExists) and not error.retriable:
        raise error
    return True


async def _check(admin: Admin, topic: str) -> None:
    found = (await admin.describe_topics([topic]))[topic]
    if len(found.partitions) != 1:
        raise InvalidConfig(
            f"{topic} has {len(found.partitions)} partitions and must have one, since schemas are numbered in the "
            "order of their records: name another topic by kafkastore.topic"
        )
    resource = ConfigResource(ResourceType.TOPIC, topic)
    policy = (await admin.describe_configs({resource: [POLICY]}))[resource][POLICY].value
    if policy != COMPACT:
        raise InvalidConfig(
            f"{topic} has {POLICY}={policy}, which deletes schemas after a while: "
            f"millbeck config alter --topic {topic} --add-config {POLICY}={COMPACT}"
        )
