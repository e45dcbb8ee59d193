"""Changelogs of published stores: compacted topics of a store's changes, named as in Kafka Streams.

A changelog is an output like any other, so its records are in the same transaction as the rest of the batch. It is
created, compacted, when the topology starts; an existing topic of its name that is not compacted is refused, since it
would lose the values of keys that were not deleted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from millbeck.client.admin import Admin, AdminConfig
from millbeck.client.admin.results import ConfigResource, NewTopic, ResourceType
from millbeck.client.blocking import Blocking
from millbeck.client.errors import Disconnected, NoBrokerReachable, RequestTimeout
from millbeck.kernel.errors import ApiError, TopicAlreadyExists
from millbeck.pipeline.errors import BrokerUnreachable, PipelineError, TopologyError

POLICY: Final = "cleanup.policy"
COMPACT: Final = "compact"
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")


def changelog_of(application: str, store: str) -> str:
    """The changelog topic of a store. Raises `TopologyError` if its name is not a valid topic name."""
    name = f"{application}-{store}-changelog"
    if not _TOPIC.fullmatch(name):
        raise TopologyError(f"the store {store!r} cannot be published: {name!r} is not a valid topic name")
    return name


def make_changelogs(settings: Mapping[str, str], topics: Mapping[str, int]) -> None:
    """Create missing changelogs; ``topics`` maps them to partition counts, ``settings`` are client settings."""
    if not topics:
        return
    known = {option.name for option in AdminConfig.options}
    own = {name: value for name, value in settings.items() if name in known}
    with Blocking() as blocking:
        admin = blocking.make(lambda environment: Admin(own, environment=environment))
        try:
            for name, policy in blocking.run(_made(admin, topics)).items():
                _check(name, policy)
        except (NoBrokerReachable, Disconnected, RequestTimeout) as error:
            raise BrokerUnreachable(f"no broker answers at {settings['bootstrap.servers']}: {error}") from error
        except ApiError as error:
            raise PipelineError(f"the topics {', '.join(topics)} cannot be created: {error}") from error


async def _made(admin: Admin, topics: Mapping[str, int]) -> dict[str, str]:
    """Create the topics; returns the cleanup policies of those that already existed."""
    new = [
        NewTopic(name=name, partition_count=count, configs={POLICY: COMPACT}) for name, count in sorted(topics.items())
    ]
    there = []
    for name, error in (await admin.create_topics(new)).failed.items():
        if not isinstance(error, TopicAlreadyExists):
            raise error
        there.append(name)
    resources = {ConfigResource(ResourceType.TOPIC, name): [POLICY] for name in there}
    if not resources:
        return {}
    described = await admin.describe_configs(resources)
    return {resource.name: described[resource][POLICY].value or "" for resource in resources}


def _check(name: str, policy: str) -> None:
    if COMPACT not in [part.strip() for part in policy.split(",")]:
        raise TopologyError(
            f"the topic {name} exists and has {POLICY}={policy}, but a changelog needs {COMPACT}. Set it with: "
            "millbeck "
            f"config alter --topic {name} --add-config {POLICY}={COMPACT}, or delete the topic"
        )
