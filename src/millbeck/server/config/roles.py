"""Checks of a node's roles against its voters and listeners.

Kafka requires all of these settings. Here a node with both roles and no other voters is a single-node cluster that
needs none of them; those it sets must still be consistent. All checks raise `InvalidConfig`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from millbeck.kernel.errors import InvalidConfig
from millbeck.server.config.addresses import ListenerAddress
from millbeck.server.config.sections.listeners import ListenerOptions
from millbeck.server.config.sections.metadata_log import QuorumOptions
from millbeck.server.config.sections.node import NodeOptions

BROKER: Final = "broker"
CONTROLLER: Final = "controller"
PORT_MAX: Final = 65535


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumVoter:
    """One entry of ``controller.quorum.voters``."""

    node_id: int
    host: str
    port: int


def parse_host_and_port(text: str, setting: str) -> tuple[str, int]:
    """Parse ``host:port``; an IPv6 host may be in brackets."""
    host, _, port = text.strip().rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) <= PORT_MAX:
        raise InvalidConfig(f"{setting}: {text!r} is not host:port")
    return host.strip("[]"), int(port)


def parse_voters(entries: Sequence[str]) -> tuple[QuorumVoter, ...]:
    """Parse the static voters; returns them sorted by id."""
    voters: dict[int, QuorumVoter] = {}
    for entry in entries:
        number, _, address = entry.partition("@")
        host, port = parse_host_and_port(address, "controller.quorum.voters")
        if int(number) in voters:
            raise InvalidConfig(f"controller.quorum.voters: node {number} is listed twice")
        voters[int(number)] = QuorumVoter(node_id=int(number), host=host, port=port)
    return tuple(voters[number] for number in sorted(voters))


def check_roles(
    node: NodeOptions,
    listener: ListenerOptions,
    quorum: QuorumOptions,
    addresses: Sequence[ListenerAddress],
    controller_names: Sequence[str],
) -> None:
    """Raise for settings that do not fit the node's roles."""
    is_broker, is_controller = BROKER in node.process_roles, CONTROLLER in node.process_roles
    voters = parse_voters(quorum.voters)
    for text in quorum.bootstrap_servers:
        parse_host_and_port(text, "controller.quorum.bootstrap.servers")
    _check_voters(node.node_id, voters, quorum.bootstrap_servers, is_broker=is_broker, is_controller=is_controller)
    names = [address.name for address in addresses]
    for_clients = [name for name in names if name not in controller_names]
    if is_broker and not is_controller:
        _check_broker_alone(names, controller_names)
    if is_controller and not is_broker and (not controller_names or for_clients):
        raise InvalidConfig(
            "listeners: a node with process.roles=controller may have controller listeners only, and "
            f"{for_clients[0] if for_clients else 'none'} is not in controller.listener.names"
        )
    others = any(voter.node_id != node.node_id for voter in voters)
    if is_controller and others and not any(name in controller_names for name in names):
        raise InvalidConfig(
            "controller.listener.names: must name one of listeners, by which the other voters connect to this node"
        )
    if is_broker and not for_clients:
        raise InvalidConfig("listeners: no listener for clients, all of them are in controller.listener.names")
    among_brokers = listener.inter_broker_listener_name
    if is_broker and among_brokers is not None and among_brokers.upper() in controller_names:
        raise InvalidConfig(f"inter.broker.listener.name: {among_brokers} is one of controller.listener.names")


def _check_voters(
    node_id: int,
    voters: Sequence[QuorumVoter],
    bootstrap_servers: Sequence[str],
    *,
    is_broker: bool,
    is_controller: bool,
) -> None:
    is_voter = any(voter.node_id == node_id for voter in voters)
    shown = ",".join(str(voter.node_id) for voter in voters)
    if voters and is_controller and not is_voter:
        raise InvalidConfig(
            f"controller.quorum.voters: node.id={node_id} has the role controller but is not among the voters {shown}"
        )
    if is_voter and not is_controller:
        raise InvalidConfig(
            f"controller.quorum.voters: node.id={node_id} has only the role broker but is among the voters {shown}"
        )
    if is_broker and not is_controller and not voters and not bootstrap_servers:
        raise InvalidConfig(
            "controller.quorum.bootstrap.servers: a node with process.roles=broker requires it or "
            "controller.quorum.voters"
        )


def _check_broker_alone(names: Sequence[str], controller_names: Sequence[str]) -> None:
    if not controller_names:
        raise InvalidConfig(
            "controller.listener.names: a node with process.roles=broker requires the name of the controllers' listener"
        )
    both = [name for name in controller_names if name in names]
    if both:
        raise InvalidConfig(
            f"controller.listener.names: {both[0]} is also in listeners, but a node with process.roles=broker must "
            "not have a controller listener"
        )
