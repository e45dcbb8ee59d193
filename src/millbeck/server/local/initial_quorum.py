"""The initial voters of a new cluster's metadata log, from the flags of ``kafka-storage format``."""

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
    """The initial voters. ``controllers`` is None for this node alone (``--standalone``), and empty for a node that
    joins an existing quorum."""

    controllers: tuple[InitialController, ...] | None

    def directory_of(self, node_id: int) -> Uuid | None:
        """The directory id of this node's metadata directory as given to the other nodes."""
        return next((each.directory_id for each in self.controllers or () if each.node_id == node_id), None)

    def voters(self, config: NodeConfig, directory_id: Uuid, host_name: Callable[[], str]) -> Voters:
        """The voter set as a record of the metadata log; raises `InvalidConfig` when the node's settings do not fit."""
        if self.controllers is None:
            return Voters(voters=(_this_node(config, directory_id, host_name),))
        if not config.controller_names():
            raise InvalidConfig("controller.listener.names: must be set, voters are contacted by these listeners")
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
    """This node as the only voter. Its controller address may be unknown or missing: no other node contacts it before
    it becomes the leader, and then it writes its address to the log itself (`raft.leading`).
    """
    is_settled = config.controller_addresses() and all(address.port for address in config.controller_addresses())
    addresses = initial_addresses(config, host_name)[:1] if is_settled else ()
    return Voter(
        node_id=config.node.node_id,
        directory_id=directory_id,
        endpoints=tuple(VoterEndpoint(name=name, host=host, port=port) for name, host, port in addresses),
        kraft_version_max=KRAFT_VERSION_MAX,
    )


def initial_addresses(config: NodeConfig, host_name: Callable[[], str]) -> tuple[tuple[str, str, int], ...]:
    """The addresses of a controller that may not run yet, as listener, host and port; the one that other nodes use is
    the first.

    ``host_name`` provides this host's name where a listener binds every interface. Nodes connect by the first of
    ``controller.listener.names``. Raises `InvalidConfig`.
    """
    advertised, names = config.advertised(), config.controller_names()
    found = []
    for address in sorted(config.controller_addresses(), key=lambda each: names.index(each.name)):
        host, port = advertised.get(address.name, (address.host, address.port))
        if host in WILDCARD_HOSTS:
            host = host_name()
        if not port:
            raise InvalidConfig(f"listeners: {address.name} needs a fixed port, not 0")
        found.append((address.name, host, port))
    return tuple(found)


def parse_initial_controllers(text: str) -> tuple[InitialController, ...]:
    """Parse ``1@host:9093:directory,2@...``; raises ValueError."""
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
            raise ValueError(f"--initial-controllers: node {number} is listed twice")
        directory_id = parse_uuid(directory)
        if is_reserved(directory_id):
            raise ValueError(
                f"--initial-controllers: {directory} is not a valid directory id: create one with random-uuid"
            )
        controllers[int(number)] = InitialController(
            node_id=int(number), host=host, port=port, directory_id=directory_id
        )
    return tuple(controllers.values())


def check_quorum_flags(config: NodeConfig, flags: Sequence[str], controllers: Sequence[InitialController]) -> None:
    """Check the quorum flags as Kafka does; raises ValueError."""
    if len(flags) > 1:
        raise ValueError(f"{' and '.join(flags)} are mutually exclusive")
    if not flags:
        if config.is_controller and config.quorum.bootstrap_servers and not config.voters:
            # Without a flag this node would become a quorum by itself, whatever the bootstrap servers are.
            raise ValueError(
                "controller.quorum.bootstrap.servers is set and controller.quorum.voters is not: choose one of "
                "--standalone, --initial-controllers and --no-initial-controllers"
            )
        return
    if config.voters:
        raise ValueError(f"{flags[0]} requires voters in the metadata log, but controller.quorum.voters is set")
    if not config.is_controller:
        raise ValueError(f"{flags[0]} requires the role controller in process.roles")
    if controllers and not any(each.node_id == config.node.node_id for each in controllers):
        raise ValueError(f"--initial-controllers: node.id={config.node.node_id} is not listed")
