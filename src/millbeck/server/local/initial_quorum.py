"""The voters that a new cluster's metadata log begins with, as ``kafka-storage format`` is told of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.ids import Uuid, parse_uuid
from millbeck.metadata.image.directories import is_reserved
from millbeck.records.control import Voter, VoterEndpoint, Voters
from millbeck.server.config import NodeConfig
from millbeck.server.config.addresses import WILDCARD_HOSTS
from millbeck.server.config.roles import parse_host_and_port

KRAFT_VERSION_MAX = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class InitialController:
    """One entry of ``--initial-controllers``: ``id@host:port:directory``."""

    node_id: int
    host: str
    port: int
    directory_id: Uuid


@dataclass(frozen=True, slots=True, kw_only=True)
class InitialQuorum:
    """``controllers`` None is this node alone; none at all is a node that joins a quorum that is there already."""

    controllers: tuple[InitialController, ...] | None

    def directory_of(self, node_id: int) -> Uuid | None:
        """The id that the others know this node's metadata directory by."""
        return next((each.directory_id for each in self.controllers or () if each.node_id == node_id), None)

    def voters(self, config: NodeConfig, directory_id: Uuid, host_name: Callable[[], str]) -> Voters:
        """As the metadata log has them; raises `InvalidConfig` where the node's file does not fit."""
        if self.controllers is None:
            return Voters(voters=(_this_node(config, directory_id, host_name),))
        if not config.controller_names():
            raise InvalidConfig(
                "controller.listener.names: voters are reached by one of these listeners, and none is set"
            )
        name = config.controller_names()[0]
        return Voters(
            voters=tuple(
                Voter(
                    node_id=each.node_id,
                    directory_id=each.directory_id,
                    endpoints=(VoterEndpoint(name=name, host=each.host, port=each.port),),
                    kraft_version_max=KRAFT_VERSION_MAX,
                )
                for each in sorted(self.controllers, key=lambda each: each.node_id)
            )
        )


def _this_node(config: NodeConfig, directory_id: Uuid, host_name: Callable[[], str]) -> Voter:
    """A node alone. Where it listens for other controllers need not be known yet, or be anywhere: nobody is to reach it
    before it leads, and then it tells the log itself (`raft.leading`).
    """
    is_settled = config.controller_addresses() and all(address.port for address in config.controller_addresses())
    addresses = told_addresses(config, host_name)[:1] if is_settled else ()
    return Voter(
        node_id=config.node.node_id,
        directory_id=directory_id,
        endpoints=tuple(VoterEndpoint(name=name, host=host, port=port) for name, host, port in addresses),
        kraft_version_max=KRAFT_VERSION_MAX,
    )


def told_addresses(config: NodeConfig, host_name: Callable[[], str]) -> tuple[tuple[str, str, int], ...]:
    """Where others are told to find a controller that may not run yet: listener, host and port, the first one first.

    ``host_name`` is asked for this host's own where it listens on every interface. The first of
    ``controller.listener.names`` is the one by which nodes reach it. Raises `InvalidConfig`.
    """
    advertised, names = config.advertised(), config.controller_names()
    found = []
    for address in sorted(config.controller_addresses(), key=lambda each: names.index(each.name)):
        host, port = advertised.get(address.name, (address.host, address.port))
        if host in WILDCARD_HOSTS:
            host = host_name()
        if not port:
            raise InvalidConfig(f"listeners: {address.name} needs a port that others can be told of")
        found.append((address.name, host, port))
    return tuple(found)


def parse_initial_controllers(text: str) -> tuple[InitialController, ...]:
    """``1@host:9093:directory,2@...``; raises ValueError."""
    controllers: dict[int, InitialController] = {}
    for entry in text.split(","):
        number, at, rest = entry.strip().partition("@")
        address, _, directory = rest.rpartition(":")
        if not at or not number.isdigit():
            raise ValueError(f"--initial-controllers: {entry!r} is not id@host:port:directory-id")
        try:
            host, port = parse_host_and_port(address, "--initial-controllers")
        except InvalidConfig as error:
            raise ValueError(error.message) from error
        if int(number) in controllers:
            raise ValueError(f"--initial-controllers: node {number} comes twice")
        directory_id = parse_uuid(directory)
        if is_reserved(directory_id):
            raise ValueError(f"--initial-controllers: {directory} is no directory's id, make one with random-uuid")
        controllers[int(number)] = InitialController(
            node_id=int(number), host=host, port=port, directory_id=directory_id
        )
    return tuple(controllers.values())


def check_quorum_flags(config: NodeConfig, flags: Sequence[str], controllers: Sequence[InitialController]) -> None:
    """What Kafka asks of the flags; raises ValueError."""
    if len(flags) > 1:
        raise ValueError(f"{' and '.join(flags)} exclude each other")
    if not flags:
        if config.is_controller and config.quorum.bootstrap_servers and not config.voters:
            # It would be a quorum of its own, whoever else is named.
            raise ValueError(
                "controller.quorum.bootstrap.servers is set and controller.quorum.voters is not: choose one of "
                "--standalone, --initial-controllers and --no-initial-controllers"
            )
        return
    if config.voters:
        raise ValueError(f"{flags[0]} is for voters that are kept in the metadata log; controller.quorum.voters is set")
    if not config.is_controller:
        raise ValueError(f"{flags[0]} is for nodes with the role controller, and process.roles has it not")
    if controllers and not any(each.node_id == config.node.node_id for each in controllers):
        raise ValueError(f"--initial-controllers: node.id={config.node.node_id} is not one of them")
