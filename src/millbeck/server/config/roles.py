"""What a node's roles ask of its other settings: who votes, which listeners are whose, how brokers find each other.

Kafka wants every one of these settings. Here a node that has both roles and names no other voter is alone: it needs
none of them, and what it does say must still make sense. All checks raise `InvalidConfig`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from millbeck.kernel.errors import InvalidConfig
from millbeck.server.config.sections.listeners import ListenerOptions
from millbeck.server.config.sections.metadata_log import QuorumOptions
from millbeck.server.config.sections.node import NodeOptions
from millbeck.server.listener import ListenerAddress

BROKER: Final = "broker"
CONTROLLER: Final = "controller"
PORT_MAX: Final = 65535


@dataclass(frozen=True, slots=True, kw_only=True)
class Voter:
    """One entry of ``controller.quorum.voters``."""

    node_id: int
    host: str
    port: int


def parse_host_and_port(text: str, setting: str) -> tuple[str, int]:
    """``host:port``; an IPv6 host may stand in brackets."""
    host, _, port = text.strip().rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) <= PORT_MAX:
        raise InvalidConfig(f"{setting}: {text!r} is not host:port")
    return host.strip("[]"), int(port)


def parse_voters(entries: Sequence[str]) -> tuple[Voter, ...]:
    """The static voters, in order of their ids."""
    voters: dict[int, Voter] = {}
    for entry in entries:
        number, _, address = entry.partition("@")
        host, port = parse_host_and_port(address, "controller.quorum.voters")
        if int(number) in voters:
            raise InvalidConfig(f"controller.quorum.voters: node {number} comes twice")
        voters[int(number)] = Voter(node_id=int(number), host=host, port=port)
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
            "listeners: a node with process.roles=controller listens for controllers only, and "
            f"{for_clients[0] if for_clients else 'none'} is not in controller.listener.names"
        )
    others = any(voter.node_id != node.node_id for voter in voters)
    if is_controller and others and not any(name in controller_names for name in names):
        raise InvalidConfig("controller.listener.names: the other voters need one of listeners to reach this one")
    if is_broker and not for_clients:
        raise InvalidConfig("listeners: none is left for clients, all of them are in controller.listener.names")
    among_brokers = listener.inter_broker_listener_name
    if is_broker and among_brokers is not None and among_brokers.upper() in controller_names:
        raise InvalidConfig(f"inter.broker.listener.name: {among_brokers} is one of controller.listener.names")


def _check_voters(
    node_id: int,
    voters: Sequence[Voter],
    bootstrap_servers: Sequence[str],
    *,
    is_broker: bool,
    is_controller: bool,
) -> None:
    is_voter = any(voter.node_id == node_id for voter in voters)
    shown = ",".join(str(voter.node_id) for voter in voters)
    if voters and is_controller and not is_voter:
        raise InvalidConfig(
            f"controller.quorum.voters: node.id={node_id} has the role controller and is not among the voters {shown}"
        )
    if is_voter and not is_controller:
        raise InvalidConfig(
            f"controller.quorum.voters: node.id={node_id} has the role broker alone and is among the voters {shown}"
        )
    if is_broker and not is_controller and not voters and not bootstrap_servers:
        raise InvalidConfig(
            "controller.quorum.bootstrap.servers: a node with process.roles=broker needs it, or "
            "controller.quorum.voters, to find its controllers"
        )


def _check_broker_alone(names: Sequence[str], controller_names: Sequence[str]) -> None:
    if not controller_names:
        raise InvalidConfig(
            "controller.listener.names: a node with process.roles=broker needs the name of its controllers' listener"
        )
    both = [name for name in controller_names if name in names]
    if both:
        raise InvalidConfig(
            f"controller.listener.names: {both[0]} is also in listeners, and a node with process.roles=broker does not "
            "listen for controllers"
        )
