"""What a Python process of Spark keeps from task to task: clients of the log, and connectors' objects.

Spark uses its Python processes again: the next turn of a connector needs no new connection, neither to the log nor to
the other system.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from importlib import import_module
from typing import Any, Final, TypeVar

from millbeck.client.blocking import Blocking
from millbeck.client.cluster import Cluster
from millbeck.client.consumer.config import ConsumerConfig
from millbeck.client.producer.bulk import BatchProducer
from millbeck.client.producer.config import ProducerConfig
from millbeck.client.producer.shared_transaction import TransactionHandle
from millbeck.pipeline.connect.connectors.declared import connector_of, implementation_of
from millbeck.pipeline.connect.connectors.interface import Connector, ConnectorContext
from millbeck.pipeline.connect.errors import ConfigError
from millbeck.pipeline.connect.tasks.conversion import Conversion
from millbeck.pipeline.connect.tasks.log_writer import BATCH_BYTES, LogWriter
from millbeck.pipeline.connect.tasks.tolerance import ErrorPolicy
from millbeck.pipeline.connect.tasks.work import TaskSettings

T = TypeVar("T")

_CLIENTS_MAX: Final = 8
_CONNECTORS_MAX: Final = 32


class LogClient:
    """Connections to the log with one set of settings, for reading and writing."""

    def __init__(self, settings: TaskSettings) -> None:
        self.consumer = ConsumerConfig.parse(
            {"isolation.level": "read_committed", **settings.client, **_kept(settings.consumer)}
        )
        self.producer = ProducerConfig.parse({**settings.client, **settings.producer})
        self.blocking = Blocking()
        self.cluster = self.blocking.make(lambda environment: Cluster(environment, self.consumer, creates_topics=True))

    def run(self, question: Coroutine[Any, Any, T]) -> T:
        return self.blocking.run(question)

    def writer(self, ticket: TransactionHandle | None) -> LogWriter:
        """A writer for one share."""
        environment = self.blocking.environment

        async def make() -> BatchProducer:
            return BatchProducer(environment, self.producer, ticket=ticket, cluster=self.cluster)

        return LogWriter(
            self.run(make()),
            self.run,
            environment.clock.wall_ms,
            first_keyless=environment.randomness.below(1 << 16),
            batch_bytes=BATCH_BYTES,
        )


def _kept(consumer: Mapping[str, str]) -> dict[str, str]:
    """Settings of a consumer that mean something without a group."""
    return {name: text for name, text in consumer.items() if name not in ("group.id", "auto.offset.reset")}


class Prepared:
    """A connector's object, with everything that is made from its configuration."""

    def __init__(self, settings: TaskSettings) -> None:
        self.settings = settings
        self.policy = ErrorPolicy.of(settings.settings)
        self.conversion = Conversion(settings.settings, settings.converters)
        self.connector = made_connector(settings)


_clients: dict[tuple[tuple[str, str], ...], LogClient] = {}
_prepared: dict[str, Prepared] = {}


def client_of(settings: TaskSettings) -> LogClient:
    parts = (settings.client, settings.producer, settings.consumer)
    key = tuple(
        (str(number), f"{name}={text}") for number, part in enumerate(parts) for name, text in sorted(part.items())
    )
    found = _clients.pop(key, None)
    if found is None:
        while len(_clients) >= _CLIENTS_MAX:
            _clients.pop(next(iter(_clients))).blocking.close()
        found = LogClient(settings)
    _clients[key] = found
    return found


def prepared(settings: TaskSettings) -> Prepared:
    """The connector's object; it is made anew when the configuration has changed. Raises `ConfigError`."""
    found = _prepared.pop(settings.name, None)
    if found is None or found.settings != settings:
        if found is not None:
            found.connector.close()
        while len(_prepared) >= _CONNECTORS_MAX:
            _prepared.pop(next(iter(_prepared))).connector.close()
        found = Prepared(settings)
    _prepared[settings.name] = found
    return found


def made_connector(settings: TaskSettings, wake: Callable[[], None] | None = None) -> Connector:
    """An object of the connector's class. Raises `ConfigError`."""
    if ":" in settings.implementation:
        module, _, attribute = settings.implementation.partition(":")
        try:
            found: type[Connector] = getattr(import_module(module), attribute)
        except ImportError:
            # Says what has to be installed.
            found = implementation_of(connector_of(settings.class_name))
    else:
        raise ConfigError(f"connector.class: {settings.class_name} cannot run here: it has no implementation yet")
    context = ConnectorContext(
        name=settings.name,
        settings=settings.settings,
        tasks_max=settings.tasks_max,
        client_settings=settings.client,
        **({} if wake is None else {"wake": wake}),
    )
    return found(found.declared.config_def.parse(settings.settings), context)


def forget(name: str) -> None:
    """Close the connector's object after a failure: the next share gets a new one."""
    found = _prepared.pop(name, None)
    if found is not None:
        found.connector.close()
