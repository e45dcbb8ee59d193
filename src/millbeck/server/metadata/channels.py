"""A node's channels to the active controller: one for each kind of request that must not wait for the others."""

from __future__ import annotations

import ssl
from functools import partial
from typing import TYPE_CHECKING, Final

from millbeck.server.broker import Broker
from millbeck.server.controller_channel import ControllerChannel

if TYPE_CHECKING:
    from millbeck.client.connection import ConnectionSettings

IN_FLIGHT_MAX: Final = 64


class Channels:
    def __init__(self, broker: Broker, *, is_controller: bool, tls: ssl.SSLContext | None = None) -> None:
        self._broker = broker
        self._is_controller = is_controller
        self._tls = tls
        self.membership = self._channel("heartbeat")
        """Registration and heartbeats, which must be heard in time."""
        self.forwarding = self._channel("forwarding")
        """What clients ask, which may wait for a commit."""
        self.partitions = self._channel("alter-partition")
        """Changes of in-sync replicas, which acknowledged writes wait for."""
        self.directories = self._channel("directory-assignments")
        self.producer_ids = self._channel("producer-ids")
        self.controllers = self._channel("controller-registration")

    @property
    def all(self) -> tuple[ControllerChannel, ...]:
        return (
            self.membership,
            self.forwarding,
            self.partitions,
            self.directories,
            self.producer_ids,
            self.controllers,
        )

    def _channel(self, purpose: str) -> ControllerChannel:
        broker = self._broker
        return ControllerChannel(
            broker.environment,
            broker.quorum,
            local=broker.inner_requests if self._is_controller else None,
            broker=broker,
            settings=partial(self._settings, purpose),
        )

    def _settings(self, purpose: str) -> ConnectionSettings:
        from millbeck.client.connection import ConnectionSettings

        return ConnectionSettings(
            client_id=f"{self._broker.node_id}-{purpose}",
            in_flight_max=IN_FLIGHT_MAX,
            connect_timeout_s=max(self._broker.config.quorum.request_timeout_ms, 1) / 1000,
            tls=self._tls,
        )

    def close(self) -> None:
        for channel in self.all:
            channel.close()
