"""A cluster of nodes on one host: formats its directories, and stores the fixed addresses of its controllers.

The voters are in the metadata log (``kraft.version`` 1), each with its address. A voter whose address changed on a
restart updates it through the leader, but no leader can be elected while most addresses are stale: a candidate contacts
the voters at the addresses in the log. So controllers keep their first addresses, whatever ports the nodes get for
clients, and `FILE_NAME` beside the nodes' directories stores them. Directories without that file are of an earlier
release, which used static voters (``kraft.version`` 0).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from millbeck.client.addresses import Address
from millbeck.kernel.environment import Environment, Files
from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.ids import uuid_text
from millbeck.kernel.properties import parse_properties
from millbeck.server.config import NodeConfig
from millbeck.server.config.addresses import WILDCARD_HOSTS
from millbeck.server.config.roles import parse_host_and_port
from millbeck.server.local.embedded import NodePlacement
from millbeck.server.local.formatting import format_directories, make_durable_directory
from millbeck.server.local.initial_quorum import InitialController, InitialQuorum
from millbeck.storage.atomic_file import read_file, replace_file
from millbeck.storage.properties import MetaProperties, read_meta_properties

if TYPE_CHECKING:
    from millbeck.server.local.secured import SecuredCluster

FILE_NAME: Final = "controllers.properties"
_SETTING: Final = "controller.quorum.bootstrap.servers"
_SIZE_BYTES_MAX: Final = 64 * 1024


class ClusterMismatch(Exception):
    """The directory belongs to a cluster other than the requested one."""


def controllers_host(host: str) -> str:
    """The host by which controllers connect to each other; loopback when the nodes listen on every interface."""
    if host in WILDCARD_HOSTS:
        return "::1" if ":" in host else "127.0.0.1"
    return host


def read_controllers(files: Files, directory: str) -> tuple[Address, ...] | None:
    """The stored addresses of the controllers, in id order; None when there is no file.

    Raises OSError, and `ClusterMismatch` when the file is damaged.
    """
    content = read_file(files, f"{directory}/{FILE_NAME}", _SIZE_BYTES_MAX)
    if content is None:
        return None
    try:
        text = parse_properties(content.decode("utf-8"))[_SETTING]
        return tuple(Address(*parse_host_and_port(each.strip(), _SETTING)) for each in text.split(","))
    except (InvalidConfig, KeyError, UnicodeDecodeError) as error:
        raise ClusterMismatch(f"{directory}/{FILE_NAME} has no valid controller addresses: {error}") from error


def restore_layouts(files: Files, directory: str, places: Sequence[NodePlacement], *, host: str) -> list[NodePlacement]:
    """The placements with the stored controller addresses. Raises OSError, `ClusterMismatch`."""
    found = read_controllers(files, directory)
    if found is None:
        is_new = all(meta is None for meta in _metas(files, places))
        where = controllers_host(host)
        return [replace(place, controller_host=where if is_new else "", voters_in_log=is_new) for place in places]
    if len(found) != len(places):
        raise ClusterMismatch(f"{directory} holds a cluster of another size, not of {len(places)} nodes")
    for place in places:
        taken = next((each for each in found if each.port == place.port), None)
        if taken is not None:
            raise ClusterMismatch(
                f"port {place.port} is used by a controller of this cluster (its addresses are fixed, see "
                f"{FILE_NAME}): use another port"
            )
    return [
        replace(place, controller_host=address.host, controller_port=address.port, voters_in_log=True)
        for place, address in zip(places, found, strict=True)
    ]


def format_cluster(
    environment: Environment,
    directory: str,
    places: Sequence[NodePlacement],
    configs: Sequence[NodeConfig],
    secured: SecuredCluster | None = None,
) -> str:
    """Format the directories of all nodes for one cluster; returns its id. Formatted directories must be of the same
    nodes. A new cluster begins with the users and ACLs of ``secured``.

    ``places`` must have their final ports. Raises OSError, `ClusterMismatch` and `MetaPropertiesError`.
    """
    files = environment.files
    if read_meta_properties(files, directory) is not None:
        raise ClusterMismatch(f"{directory} is the directory of a single node: use another")
    ready = [each for each in _metas(files, places) if each is not None]
    beyond = f"{directory}/node-{len(configs) + 1}"
    if (ready and len(ready) != len(configs)) or read_meta_properties(files, beyond) is not None:
        raise ClusterMismatch(f"{directory} holds a cluster of another size, not of {len(configs)} nodes")
    if ready:
        for config, meta in zip(configs, ready, strict=True):
            if (meta.node_id, meta.cluster_id) != (config.node.node_id, ready[0].cluster_id):
                raise ClusterMismatch(
                    f"{directory}/node-{config.node.node_id} belongs to node {meta.node_id} of cluster "
                    f"{meta.cluster_id}, but {directory}/node-1 to cluster {ready[0].cluster_id}"
                )
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
            users=() if secured is None else secured.users,
            acls=() if secured is None else secured.acls,
        )
    return cluster_id


def _metas(files: Files, places: Sequence[NodePlacement]) -> list[MetaProperties | None]:
    return [read_meta_properties(files, place.directory) for place in places]
