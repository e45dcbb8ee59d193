"""Checks of how a node connects to other nodes: the listeners it uses, and the mechanisms by which it logs in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from millbeck.kernel.errors import InvalidConfig
from millbeck.server.config.sections.listeners import ListenerOptions
from millbeck.server.config.sections.sasl import SaslOptions

if TYPE_CHECKING:
    from millbeck.server.config.node_config import NodeConfig

_PROTOCOL: Final = ListenerOptions.security_inter_broker_protocol.name
_LISTENER: Final = ListenerOptions.inter_broker_listener_name.name
_AMONG_BROKERS: Final = SaslOptions.mechanism_inter_broker_protocol.name
_TO_CONTROLLERS: Final = SaslOptions.mechanism_controller_protocol.name


def check_peer_listeners(config: NodeConfig) -> None:
    """Raise `InvalidConfig` if this node could not connect to other nodes, or only less securely than configured."""
    if config.is_broker:
        _check_choice_of_listener(config)
    if not config.controller_names():
        # No other node can join this one.
        return
    name, protocol = config.controllers_protocol()
    if protocol.startswith("SASL"):
        mechanism = config.sasl_options.mechanism_controller_protocol
        if config.is_controller and mechanism.startswith("SCRAM"):
            raise InvalidConfig(
                f"{_TO_CONTROLLERS}: {mechanism} cannot be used between controllers: the credentials are in the "
                f"metadata log, which they read from each other only after they have logged in. Use PLAIN with "
                f"SASL_SSL, or map listener {name} to SSL with ssl.client.auth=required"
            )
        config.peer_sasl(name, mechanism)
        if config.is_controller:
            _check_enabled(config, name, mechanism, _TO_CONTROLLERS)
    if config.is_broker:
        name, protocol = config.brokers_protocol()
        if protocol.startswith("SASL"):
            mechanism = config.sasl_options.mechanism_inter_broker_protocol
            config.peer_sasl(name, mechanism)
            _check_enabled(config, name, mechanism, _AMONG_BROKERS)


def _check_choice_of_listener(config: NodeConfig) -> None:
    if _PROTOCOL not in config.texts:
        return
    if _LISTENER in config.texts:
        raise InvalidConfig(f"{_LISTENER}, {_PROTOCOL}: only one of them may be set")
    protocol = config.listener.security_inter_broker_protocol
    names = [address.name for address in config.client_addresses()]
    if protocol not in names:
        raise InvalidConfig(
            f"{_PROTOCOL}: no listener is called {protocol}: name the listener for connections between brokers with "
            f"{_LISTENER}, one of {', '.join(names)}"
        )


def _check_enabled(config: NodeConfig, listener: str, mechanism: str, setting: str) -> None:
    if mechanism not in config.sasl(listener).mechanisms:
        raise InvalidConfig(
            f"{setting}: {mechanism} must be one of sasl.enabled.mechanisms of listener {listener}, by which the other "
            "nodes log in"
        )
