"""The pytest plugin: fixtures that provide a real broker.

``kafka``           the bootstrap address of a node of this test session; every xdist worker has its own
``kafka_topic``     the name of a new topic, deleted after the test; configured by ``@pytest.mark.kafka_topic(...)``
``kafka_broker``    the node itself, to stop, kill or restart it, or for its metrics
``kafka_cluster``   three nodes of this test session, each of which can be stopped, killed, paused and restarted
``kafka_secure``    a node with TLS, logins and ACLs of this test session; needs the extra ``millbeck[security]``
``kafka_user``      a new user of that node, deleted after the test, with the configurations of its clients
``schema_registry_url``  the URL of a schema registry on that node; needs the extra ``millbeck[registry]``
``topology_driver`` runs a topology of a pipeline on lists of records, without a broker; needs ``millbeck[spark]``
``kafka_settings``  override it in a conftest.py (session scope) to start the nodes with other broker settings

It is loaded into every pytest run of an environment with this package, so everything is imported lazily.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millbeck.server.local.client_configs import ClientConfigs
    from millbeck.testing.broker_process import Broker
    from millbeck.testing.cluster_processes import Cluster
    from millbeck.testing.secure_broker import SecureBroker
    from millbeck.testing.topology_driver import TopologyTestDriver

TOPIC_NAME_MAX: Final = 200
"""The maximum length of a topic name in Kafka."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "kafka_topic(partitions=1, **configs): how the topic of the kafka_topic fixture is created"
    )


@pytest.fixture(scope="session")
def kafka_settings() -> Mapping[str, object]:
    """Broker settings of the session's nodes, by Kafka's names."""
    return {}


@pytest.fixture(scope="session")
def kafka_broker(kafka_settings: Mapping[str, object]) -> Iterator[Broker]:
    """The session's node."""
    from millbeck.testing.broker_process import broker

    with broker(kafka_settings) as running:
        yield running


@pytest.fixture(scope="session")
def kafka(kafka_broker: Broker) -> str:
    """The bootstrap address of the session's node."""
    return kafka_broker.bootstrap


@pytest.fixture(scope="session")
def schema_registry_url(kafka: str) -> Iterator[str]:
    """The URL of the session's schema registry, which keeps its schemas on the session's node."""
    from millbeck.testing.registry_process import registry

    with registry(kafka) as url:
        yield url


@pytest.fixture(scope="session")
def kafka_secure(kafka_settings: Mapping[str, object]) -> Iterator[SecureBroker]:
    """A node of the session with TLS, SASL and ACLs."""
    from millbeck.testing.broker_process import broker

    with broker(kafka_settings, secure=True) as running:
        yield running


@pytest.fixture
def kafka_user(kafka_secure: SecureBroker) -> Iterator[ClientConfigs]:
    """A user of that node for this test, with access to every topic, group and transactional id."""
    from uuid import uuid4

    from millbeck.kernel.errors import ApiError

    user = kafka_secure.create_user(f"user-{uuid4().hex[:8]}", may_use_everything=True)
    yield user
    try:
        kafka_secure.delete_user(user.user)
    except (ApiError, OSError):
        pass  # The test has deleted it, or stopped the node.


@pytest.fixture(scope="session")
def topology_spark() -> Iterator[SparkSession]:
    """The Spark session on which topologies run; override it to use another one."""
    from millbeck.pipeline.session import spark_session

    spark = spark_session("topologies", master="local[2]", settings={"spark.ui.enabled": "false"})
    yield spark
    spark.stop()


@pytest.fixture
def topology_driver(topology_spark: SparkSession) -> Iterator[Callable[..., TopologyTestDriver]]:
    """Makes a `TopologyTestDriver` of a function ``build(topology)`` and settings of the topology."""
    from millbeck.testing.topology_driver import TopologyTestDriver

    with ExitStack() as drivers:

        def make(build: Callable[..., None], **settings: object) -> TopologyTestDriver:
            return drivers.enter_context(TopologyTestDriver(topology_spark, build, **settings))

        yield make


@pytest.fixture(scope="session")
def kafka_cluster(kafka_settings: Mapping[str, object]) -> Iterator[Cluster]:
    """Three nodes of this test session. If a test stops some, the next one can start them by
    ``kafka_cluster.start()``."""
    from millbeck.testing.cluster_processes import cluster

    with cluster(kafka_settings) as running:
        yield running


@pytest.fixture
def kafka_topic(kafka_broker: Broker, request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a topic created for this test."""
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
