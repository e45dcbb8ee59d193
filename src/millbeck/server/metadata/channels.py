"""The channels of this node to the active controller: one for each kind of request that must not wait for others."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from millbeck.server.metadata.controller_channel import ATTEMPT_SECONDS_MAX, ControllerChannel
from millbeck.server.network.peer_security import NO_SECURITY, PeerSecurity

if TYPE_CHECKING:
    from millbeck.client.connection import ConnectionSettings
    from millbeck.server.broker import Broker

IN_FLIGHT_MAX: Final = 64


class ControllerChannels:
    def __init__(self, broker: Broker, *, is_controller: bool, security: PeerSecurity = NO_SECURITY) -> None:
        self._broker = broker
        self._is_controller = is_controller
        self._security = security
        self.membership = self._channel("heartbeat")
        """Registration and heartbeats, which must arrive before the broker session times out."""
        self.forwarding = self._channel("forwarding", patience_s=ATTEMPT_SECONDS_MAX)
        """Forwarded client requests, which may wait for a commit; client timeouts do not close the connection."""
        self.partitions = self._channel("alter-partition")
        """ISR changes (AlterPartition), which produce requests with acks=all wait for."""
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

    def _channel(self, purpose: str, *, patience_s: float = 0.0) -> ControllerChannel:
        broker = self._broker
        return ControllerChannel(
            broker.environment,
            broker.quorum,
            local=broker.inner_requests if self._is_controller else None,
            settings=partial(self._settings, purpose, patience_s),
        )

    def _settings(self, purpose: str, patience_s: float) -> ConnectionSettings:
        from millbeck.client.connection import ConnectionSettings

        return ConnectionSettings(
            client_id=f"{self._broker.node_id}-{purpose}",
            in_flight_max=IN_FLIGHT_MAX,
            patience_s=patience_s,
            connect_timeout_s=max(self._broker.config.quorum.request_timeout_ms, 1) / 1000,
            tls=self._security.tls,
            sasl=self._security.sasl,
        )

    def close(self) -> None:
        for channel in self.all:
            channel.close()
