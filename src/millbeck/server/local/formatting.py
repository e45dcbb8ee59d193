"""Formatting: what a directory needs before a node can start on it, as ``kafka-storage format`` leaves it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from millbeck.kernel.environment import Environment, Files
from millbeck.kernel.ids import uuid_text
from millbeck.metadata.features import METADATA_VERSION, VOTERS_IN_LOG_FROM
from millbeck.server.config import NodeConfig
from millbeck.server.drivers.metadata_files import write_bootstrap, write_initial_voters
from millbeck.server.initial_quorum import InitialQuorum
from millbeck.server.quorum_config import is_alone
from millbeck.storage.properties import MetaProperties, read_meta_properties, write_meta_properties

METADATA_PARTITION: Final = "__cluster_metadata-0"

log = logging.getLogger(__name__)


class AlreadyFormatted(Exception):
    """A directory has a meta.properties already."""


class NotFormatted(Exception):
    """A directory has no meta.properties, or one of another cluster or node."""


def format_directories(
    environment: Environment,
    config: NodeConfig,
    *,
    cluster_id: str | None = None,
    metadata_version: int | None = None,
    features: Mapping[str, int] | None = None,
    quorum: InitialQuorum | None = None,
    ignore_formatted: bool = False,
) -> str:
    """Make every directory of a node ready; the cluster's id, a new one when none is given.

    ``metadata_version`` is the newest that the node knows when it is not given. With ``quorum`` the voters are kept in
    the metadata log from its beginning on, and so is a node that names no voter and is its own quorum, if the metadata
    version has that; without, the node's file names them. Raises `AlreadyFormatted` unless ``ignore_formatted``, in
    which case directories that are ready stay as they are.
    """
    files = environment.files
    if metadata_version is None:
        metadata_version = config.supported_features[METADATA_VERSION].max_level
    if quorum is None and is_alone(config) and not config.voters and not config.quorum.bootstrap_servers:
        # Releases that know no voters in the log must be able to go on with what belongs to them.
        quorum = InitialQuorum(controllers=None) if metadata_version >= VOTERS_IN_LOG_FROM else None
    found = _read_all(files, config)
    ready = {directory: meta for directory, meta in found.items() if meta is not None}
    if ready and not ignore_formatted:
        raise AlreadyFormatted(f"{next(iter(ready))} is already formatted (use --ignore-formatted to leave it so)")
    if cluster_id is None:
        cluster_id = next(iter(ready.values())).cluster_id if ready else uuid_text(environment.randomness.uuid())
    for directory, meta in found.items():
        if meta is not None:
            continue
        make_durable_directory(files, directory)
        directory_id = environment.randomness.uuid()
        if directory == config.metadata_directory:
            now_ms = environment.clock.wall_ms()
            write_bootstrap(files, directory, now_ms=now_ms, metadata_version=metadata_version, features=features or {})
            if quorum is not None:
                directory_id = quorum.directory_of(config.node.node_id) or directory_id
                voters = quorum.voters(config, directory_id, environment.network.host_name)
                write_initial_voters(files, f"{directory}/{METADATA_PARTITION}", voters, now_ms=now_ms)
        # Last, because it is what says that the directory is ready.
        meta = MetaProperties(cluster_id=cluster_id, node_id=config.node.node_id, directory_id=directory_id)
        write_meta_properties(files, directory, meta)
    return cluster_id


def check_formatted(environment: Environment, config: NodeConfig) -> str:
    """The cluster's id; raises `NotFormatted` when a directory is not this node's."""
    cluster_id: str | None = None
    for directory, meta in _read_all(environment.files, config).items():
        if meta is None:
            raise NotFormatted(
                f"{directory} is not formatted: run `millbeck storage format` with this configuration first"
            )
        if meta.node_id != config.node.node_id:
            raise NotFormatted(f"{directory} belongs to node {meta.node_id}, but node.id is {config.node.node_id}")
        if cluster_id is not None and meta.cluster_id != cluster_id:
            raise NotFormatted(f"{directory} belongs to cluster {meta.cluster_id}, the others to {cluster_id}")
        cluster_id = meta.cluster_id
    assert cluster_id is not None
    return cluster_id


def make_durable_directory(files: Files, path: str) -> None:
    """Create a directory and its parents, each of them synced into the one above."""
    missing = []
    while path and not files.exists(path):
        missing.append(path)
        path = path.rpartition("/")[0]
    for each in reversed(missing):
        files.make_directory(each)
        files.sync_directory(each.rpartition("/")[0] or "/")


def _read_all(files: Files, config: NodeConfig) -> dict[str, MetaProperties | None]:
    """What each directory says of itself; one that cannot be read is passed over, unless it has the metadata.

    The node does without it (`storage.lost_directory`). Raises OSError and `MetaPropertiesError`.
    """
    found: dict[str, MetaProperties | None] = {}
    for directory in _all_directories(config):
        try:
            found[directory] = read_meta_properties(files, directory)
        except OSError as error:
            if directory == config.metadata_directory:
                raise
            log.error("log directory %s cannot be read and is passed over: %s", directory, error)
    return found


def _all_directories(config: NodeConfig) -> list[str]:
    return list(dict.fromkeys([*config.directories, config.metadata_directory]))
