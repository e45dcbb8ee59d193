"""Requests to create auto-created and internal topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from millbeck.wire.messages.topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalTopic:
    """The settings with which an internal topic is created."""

    partition_count: int
    replication_factor: int
    options: Mapping[str, str] = field(default_factory=dict)


def auto_creation_request(names: Iterable[str], internal: Mapping[str, InternalTopic]) -> CreateTopicsRequest:
    """A request for `Controller.create_topics`; topics that are not ``internal`` get the server's defaults."""
    topics = []
    for name in names:
        own = internal.get(name)
        if own is None:
            topics.append(CreatableTopic(name=name, num_partitions=-1, replication_factor=-1))
            continue
        configs = [CreatableTopicConfig(name=key, value=value) for key, value in own.options.items()]
        topics.append(
            CreatableTopic(
                name=name,
                num_partitions=own.partition_count,
                replication_factor=own.replication_factor,
                configs=configs,
            )
        )
    return CreateTopicsRequest(topics=topics)
