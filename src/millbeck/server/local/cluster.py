"""A cluster of nodes on one host: its directories made ready together, and where its controllers have listened.

The nodes keep their voters in the metadata log (``kraft.version`` 1), which names each with its address. A voter that
listens elsewhere after a restart tells the leader, but there is no leader while most of them are elsewhere: whoever
stands for election asks the voters where the log says they are. So the controllers stay where they were at first,
whatever ports the nodes get for their clients, and `FILE_NAME` beside the nodes' directories says where. Directories
without that file are of an earlier release, whose nodes name their voters in their settings (``kraft.version`` 0).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from millbeck.client.addresses import Address
from millbeck.kernel.environment import Environment, Files
from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.ids import uuid_text
from millbeck.kernel.properties import parse_properties
from millbeck.server.config import NodeConfig
from millbeck.server.config.addresses import WILDCARD_HOSTS
from millbeck.server.config.roles import parse_host_and_port
from millbeck.server.embedded import Place
from millbeck.server.formatting import format_directories, make_durable_directory
from millbeck.server.initial_quorum import InitialController, InitialQuorum
from millbeck.storage.atomic_file import read_file, replace_file
from millbeck.storage.properties import MetaProperties, read_meta_properties

FILE_NAME: Final = "controllers.properties"
_SETTING: Final = "controller.quorum.bootstrap.servers"
_SIZE_BYTES_MAX: Final = 64 * 1024


class ClusterMismatch(Exception):
    """What is in the directory is not the cluster that is asked for."""


def controllers_host(host: str) -> str:
    """Where controllers of one host find each other when the nodes listen on every interface."""
    if host in WILDCARD_HOSTS:
        return "::1" if ":" in host else "127.0.0.1"
    return host


def read_controllers(files: Files, directory: str) -> tuple[Address, ...] | None:
    """Where the controllers listened at first, in the order of their ids; None when nothing says so.

    Raises OSError, and `ClusterMismatch` when the file is damaged.
    """
    content = read_file(files, f"{directory}/{FILE_NAME}", _SIZE_BYTES_MAX)
    if content is None:
        return None
    try:
        text = parse_properties(content.decode("utf-8"))[_SETTING]
        return tuple(Address(*parse_host_and_port(each.strip(), _SETTING)) for each in text.split(","))
    except (InvalidConfig, KeyError, UnicodeDecodeError) as error:
        raise ClusterMismatch(f"{directory}/{FILE_NAME} does not say where the controllers are: {error}") from error


def settle_places(files: Files, directory: str, places: Sequence[Place], *, host: str) -> list[Place]:
    """The places with their controllers where they were before. Raises OSError, `ClusterMismatch`."""
    found = read_controllers(files, directory)
    if found is None:
        is_new = all(meta is None for meta in _metas(files, places))
        where = controllers_host(host)
        return [replace(place, controller_host=where if is_new else "", voters_in_log=is_new) for place in places]
    if len(found) != len(places):
        raise ClusterMismatch(f"{directory} holds a cluster of another size than {len(places)} nodes")
    for place in places:
        taken = next((each for each in found if each.port == place.port), None)
        if taken is not None:
            raise ClusterMismatch(
                f"port {place.port} is that of a controller of this cluster, which stays where it was ({FILE_NAME}): "
                "choose other ports"
            )
    return [
        replace(place, controller_host=address.host, controller_port=address.port, voters_in_log=True)
        for place, address in zip(places, found, strict=True)
    ]


def format_cluster(
    environment: Environment, directory: str, places: Sequence[Place], configs: Sequence[NodeConfig]
) -> str:
    """Make every directory ready for one cluster; its id. What is there must be of the same nodes.

    ``places`` are settled. Raises OSError, `ClusterMismatch` and `MetaPropertiesError`.
    """
    files = environment.files
    if read_meta_properties(files, directory) is not None:
        raise ClusterMismatch(f"{directory} is the directory of a node alone: use another")
    ready = [each for each in _metas(files, places) if each is not None]
    beyond = f"{directory}/node-{len(configs) + 1}"
    if (ready and len(ready) != len(configs)) or read_meta_properties(files, beyond) is not None:
        raise ClusterMismatch(f"{directory} holds a cluster of another size than {len(configs)} nodes")
    if ready:
        return ready[0].cluster_id
    cluster_id = uuid_text(environment.randomness.uuid())
    controllers = tuple(
        InitialController(
            node_id=place.node_id,
            host=place.controller_host,
            port=place.controller_port,
            directory_id=environment.randomness.uuid(),
        )
        for place in places
    )
    make_durable_directory(files, directory)
    addresses = ",".join(str(Address(each.host, each.port)) for each in controllers)
    replace_file(files, f"{directory}/{FILE_NAME}", f"{_SETTING}={addresses}\n".encode())
    for config in configs:
        format_directories(
            environment,
            config,
            cluster_id=cluster_id,
            quorum=InitialQuorum(controllers=controllers),
            ignore_formatted=True,
        )
    return cluster_id


def _metas(files: Files, places: Sequence[Place]) -> list[MetaProperties | None]:
    return [read_meta_properties(files, place.directory) for place in places]
