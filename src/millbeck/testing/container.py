"""A broker with the methods of testcontainers' ``KafkaContainer``, so that existing tests change one import.

It needs no Docker: the node is a child process of the test.
"""

from __future__ import annotations

from types import TracebackType
from typing import Final, Self

from millbeck.kernel.properties import settings_of_environment
from millbeck.testing.broker_process import Broker

HOST: Final = "127.0.0.1"


class KafkaContainer:
    """The broker; start it with ``with`` or `start`. The image is accepted and ignored, because there is only one
    broker."""

    def __init__(self, image: str = "", port: int = 9093) -> None:
        self.image = image
        self.port = port
        self._cluster_id: str | None = None
        self._environment: dict[str, str] = {}
        self._broker: Broker | None = None

    def with_kraft(self) -> Self:
        """Does nothing: the node is always its own KRaft controller."""
        return self

    def with_cluster_id(self, cluster_id: str) -> Self:
        self._cluster_id = cluster_id
        return self

    def with_env(self, key: str, value: str) -> Self:
        """Set a ``KAFKA_…`` variable as in Kafka's images: ``KAFKA_NUM_PARTITIONS`` is ``num.partitions``."""
        if any(name.endswith("listeners") for name in settings_of_environment({key: value})):
            raise ValueError(f"{key}: the node chooses its listeners; read its address with get_bootstrap_server()")
        self._environment[key] = value
        return self

    def start(self) -> Self:
        if self._broker is None:
            self._broker = Broker(settings_of_environment(self._environment), cluster_id=self._cluster_id)
            try:
                self._broker.start()
            except BaseException:
                self.stop()
                raise
        return self

    def stop(self, force: bool = True, delete_volume: bool = True) -> None:
        """Stop the node and remove its data."""
        broker, self._broker = self._broker, None
        if broker is not None:
            broker.close()

    def get_bootstrap_server(self) -> str:
        return self.broker.bootstrap

    def get_container_host_ip(self) -> str:
        return HOST

    def get_exposed_port(self, port: int) -> int:
        """The port of the node, whatever container port is requested."""
        return self.broker.port

    def get_logs(self) -> tuple[bytes, bytes]:
        """Standard output, which is empty, and standard error."""
        return b"", self.broker.output().encode()

    @property
    def broker(self) -> Broker:
        """The node, for operations that a container does not have: kill, pause and restart."""
        if self._broker is None:
            raise RuntimeError("the container is not running: call start() or use it in a with block")
        return self._broker

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()
