"""Throttles of replication while partitions move: Kafka's settings on topics and brokers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import click

from millbeck.cli.topics.directory_moves import DIRECTORY_RATE
from millbeck.kernel.ids import TopicPartition

if TYPE_CHECKING:
    from millbeck.client.admin import Admin
    from millbeck.client.admin.results import ConfigChange, ConfigResource

RATES: Final = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
REPLICAS: Final = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")


async def set_throttles(
    admin: Admin,
    current: Mapping[TopicPartition, Sequence[int]],
    wanted: Mapping[TopicPartition, Sequence[int]],
    bytes_per_second: int,
) -> None:
    """Set throttles: on the current replicas as leaders, and on the added ones as followers."""
    from millbeck.client.admin.results import ConfigChange, ConfigResource, ResourceType

    changes: dict[ConfigResource, list[ConfigChange]] = {}
    brokers: dict[int, None] = {}
    by_topic: dict[str, tuple[list[str], list[str]]] = {}
    for partition, replicas in sorted(wanted.items()):
        leaders, followers = by_topic.setdefault(partition.topic, ([], []))
        before = current[partition]
        leaders += [f"{partition.partition}:{broker}" for broker in before]
        followers += [f"{partition.partition}:{broker}" for broker in replicas if broker not in before]
        brokers |= dict.fromkeys([*before, *replicas])
    for name, lists in by_topic.items():
        changes[ConfigResource(ResourceType.TOPIC, name)] = [
            ConfigChange(name=setting, value=",".join(texts)) for setting, texts in zip(REPLICAS, lists, strict=True)
        ]
    for broker in sorted(brokers):
        changes[ConfigResource(ResourceType.BROKER, str(broker))] = [
            ConfigChange(name=setting, value=str(bytes_per_second)) for setting in RATES
        ]
    await _change(admin, changes)


async def _change(admin: Admin, changes: Mapping[ConfigResource, Sequence[ConfigChange]]) -> None:
    """Alter settings. A broker that is down does not fail the command; its throttle is then not set."""
    from millbeck.client.admin.results import ResourceType

    outcomes = await admin.incremental_alter_configs(changes)
    alive = [str(node.node_id) for node in (await admin.describe_cluster()).nodes] if outcomes.failed else []
    for resource, error in outcomes.failed.items():
        if resource.type is not ResourceType.BROKER or resource.name in alive:
            raise error
        click.echo(f"broker {resource.name} is down, its throttle was not changed: {error}", err=True)


async def remove_throttles(admin: Admin, topics: Sequence[str]) -> None:
    """Remove the throttles of these topics, and of all brokers."""
    from millbeck.client.admin.results import ConfigChange, ConfigOperation, ConfigResource, ResourceType

    def gone(settings: Sequence[str]) -> list[ConfigChange]:
        return [ConfigChange(name=setting, operation=ConfigOperation.DELETE) for setting in settings]

    nodes = (await admin.describe_cluster(include_fenced_brokers=True)).nodes
    rates = (*RATES, DIRECTORY_RATE)
    changes = {ConfigResource(ResourceType.TOPIC, name): gone(REPLICAS) for name in topics}
    changes |= {ConfigResource(ResourceType.BROKER, str(node.node_id)): gone(rates) for node in nodes}
    await _change(admin, changes)


async def limit_directory_moves(admin: Admin, brokers: Sequence[int], bytes_per_second: int) -> None:
    """Set the throttle of moves between the log directories of these brokers."""
    from millbeck.client.admin.results import ConfigChange, ConfigResource, ResourceType

    changes = [ConfigChange(name=DIRECTORY_RATE, value=str(bytes_per_second))]
    await _change(admin, {ConfigResource(ResourceType.BROKER, str(broker)): changes for broker in brokers})
