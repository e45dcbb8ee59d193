"""The pytest plugin: fixtures that give a test a real broker.

``kafka``           the bootstrap address of a node of this test session's own; every xdist worker has another
``kafka_topic``     the name of a new topic, gone after the test; ``@pytest.mark.kafka_topic(partitions=3)`` shapes it
``kafka_broker``    the node itself, to stop, kill or restart it, or for its metrics
``kafka_settings``  override it in a conftest.py (session scope) to start the node with other broker settings

It is loaded into every pytest run of an environment that has the package, so everything is imported when it is used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from millbeck.testing.broker_process import Broker

TOPIC_NAME_MAX: Final = 200
"""Kafka allows 249 characters."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "kafka_topic(partitions=1, **configs): how the topic of the kafka_topic fixture is created"
    )


@pytest.fixture(scope="session")
def kafka_settings() -> Mapping[str, object]:
    """Broker settings of the session's node, by Kafka's names."""
    return {}


@pytest.fixture(scope="session")
def kafka_broker(kafka_settings: Mapping[str, object]) -> Iterator[Broker]:
    """The session's node."""
    from millbeck.testing.broker_process import broker

    with broker(kafka_settings) as running:
        yield running


@pytest.fixture(scope="session")
def kafka(kafka_broker: Broker) -> str:
    """Bootstrap address of the session's node."""
    return kafka_broker.bootstrap


@pytest.fixture
def kafka_topic(kafka_broker: Broker, request: pytest.FixtureRequest) -> Iterator[str]:
    """Name of a topic of this test's own."""
    from uuid import uuid4

    from millbeck.kernel.errors import ApiError
    from millbeck.testing.topics import create_topic, delete_topic

    marker = request.node.get_closest_marker("kafka_topic")
    wanted = {} if marker is None else dict(marker.kwargs)
    partitions = int(wanted.pop("partitions", 1))
    configs = {name.replace("_", "."): str(value) for name, value in wanted.items()}
    readable = re.sub(r"[^a-zA-Z0-9._-]+", "-", request.node.name)[:TOPIC_NAME_MAX].strip("-")
    name = f"{readable}-{uuid4().hex[:8]}"
    create_topic(kafka_broker.bootstrap, name, partitions=partitions, configs=configs)
    yield name
    try:
        delete_topic(kafka_broker.bootstrap, name)
    except (ApiError, OSError):
        pass  # The test has deleted it, or stopped the node.
