"""Format the directories of a node, as ``kafka-storage format`` does; a node starts only on formatted directories."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from millbeck.controller.acls import record_of
from millbeck.kernel.environment import Environment, Files
from millbeck.kernel.ids import uuid_text
from millbeck.metadata.features import METADATA_VERSION, VOTERS_IN_LOG_FROM
from millbeck.metadata.records import UserScramCredentialRecord
from millbeck.server.config import NodeConfig
from millbeck.server.local.initial_quorum import InitialQuorum
from millbeck.server.metadata.metadata_files import write_bootstrap, write_initial_voters
from millbeck.server.metadata.quorum_config import is_alone
from millbeck.storage.properties import MetaProperties, read_meta_properties, write_meta_properties

if TYPE_CHECKING:
    from millbeck.security.acls import AccessControlEntry
    from millbeck.security.sasl.credential_text import CredentialText

METADATA_PARTITION: Final = "__cluster_metadata-0"

log = logging.getLogger(__name__)


class AlreadyFormatted(Exception):
    """A directory is already formatted, or belongs to another cluster or node."""


class NotFormatted(Exception):
    """A directory is not formatted, or belongs to another cluster or node."""


def format_directories(
    environment: Environment,
    config: NodeConfig,
    *,
    cluster_id: str | None = None,
    metadata_version: int | None = None,
    features: Mapping[str, int] | None = None,
    quorum: InitialQuorum | None = None,
    ignore_formatted: bool = False,
    users: Sequence[CredentialText] = (),
    acls: Sequence[AccessControlEntry] = (),
) -> str:
    """Format all directories of a node; returns the cluster id, a new one when none is given.

    ``metadata_version`` defaults to the newest supported one. With ``quorum`` the voters are in the metadata log from
    its first record on; the same holds for a single node without configured voters, if the metadata version supports
    that. Otherwise the voters are static. Raises `AlreadyFormatted` unless ``ignore_formatted``, in which case
    formatted directories are left as they are, but must belong to this node and cluster. ``users`` are SCRAM
    credentials, and ``acls`` ACLs, that exist from the cluster's start; as in Kafka, give the same ones to all
    controllers.
    """
    files = environment.files
    if metadata_version is None:
        metadata_version = config.supported_features[METADATA_VERSION].max_level
    if quorum is None and is_alone(config) and not config.voters and not config.quorum.bootstrap_servers:
        # Releases before voters in the log must be able to open directories formatted with their metadata versions.
        quorum = InitialQuorum(controllers=None) if metadata_version >= VOTERS_IN_LOG_FROM else None
    found = _read_all(files, config)
    ready = {directory: meta for directory, meta in found.items() if meta is not None}
    if ready and not ignore_formatted:
        raise AlreadyFormatted(f"{next(iter(ready))} is already formatted (use --ignore-formatted to accept that)")
    if (mismatch := owner_mismatch(ready, node_id=config.node.node_id, cluster_id=cluster_id)) is not None:
        raise AlreadyFormatted(mismatch)
    if cluster_id is None:
        cluster_id = next(iter(ready.values())).cluster_id if ready else uuid_text(environment.randomness.uuid())
    for directory, meta in found.items():
        if meta is not None:
            continue
        make_durable_directory(files, directory)
        directory_id = environment.randomness.uuid()
        if directory == config.metadata_directory:
            now_ms = environment.clock.wall_ms()
            write_bootstrap(
                files,
                directory,
                now_ms=now_ms,
                metadata_version=metadata_version,
                features=features or {},
                others=[
                    *(_user_record(environment, user) for user in users),
                    *(record_of(entry, environment.randomness.uuid()) for entry in acls),
                ],
            )
            if quorum is not None:
                directory_id = quorum.directory_of(config.node.node_id) or directory_id
                voters = quorum.voters(config, directory_id, environment.network.host_name)
                write_initial_voters(files, f"{directory}/{METADATA_PARTITION}", voters, now_ms=now_ms)
        # Written last: meta.properties marks the directory as formatted.
        meta = MetaProperties(cluster_id=cluster_id, node_id=config.node.node_id, directory_id=directory_id)
        write_meta_properties(files, directory, meta)
    return cluster_id


def _user_record(environment: Environment, user: CredentialText) -> UserScramCredentialRecord:
    from millbeck.security.sasl.credential_text import SALT_SIZE

    salt = environment.randomness.below(1 << (8 * SALT_SIZE)).to_bytes(SALT_SIZE, "big")
    credential = user.credential(salt)
    return UserScramCredentialRecord(
        name=user.name,
        mechanism=user.mechanism.number,
        salt=credential.salt,
        stored_key=credential.stored_key,
        server_key=credential.server_key,
        iterations=credential.iterations,
    )


def check_formatted(environment: Environment, config: NodeConfig) -> str:
    """Return the cluster id; raises `NotFormatted` when a directory belongs to another node, or two to different
    clusters."""
    read = _read_all(environment.files, config)
    found = {directory: meta for directory, meta in read.items() if meta is not None}
    for directory in read:
        if directory not in found and found:
            # Most likely its disk is not mounted: a directory formatted now would hide the data on it.
            raise NotFormatted(
                f"{directory} is not formatted, but {next(iter(found))} is: if its disk is not mounted, mount it; if "
                "it is new, run `millbeck storage format --ignore-formatted` with this configuration first"
            )
        if directory not in found:
            raise NotFormatted(
                f"{directory} is not formatted: run `millbeck storage format` with this configuration first"
            )
    if (mismatch := owner_mismatch(found, node_id=config.node.node_id)) is not None:
        raise NotFormatted(mismatch)
    return next(iter(found.values())).cluster_id


def owner_mismatch(found: Mapping[str, MetaProperties], *, node_id: int, cluster_id: str | None = None) -> str | None:
    """Describe a directory that belongs to another node, or to another cluster than ``cluster_id`` or the first
    directory; None if all match."""
    for directory, meta in found.items():
        if meta.node_id != node_id:
            return f"{directory} belongs to node {meta.node_id}, but node.id is {node_id}"
        if cluster_id is not None and meta.cluster_id != cluster_id:
            return f"{directory} belongs to cluster {meta.cluster_id}, but the cluster id given is {cluster_id}"
    first = next(iter(found), "")
    for directory, meta in found.items():
        if meta.cluster_id != found[first].cluster_id:
            return f"{directory} belongs to cluster {meta.cluster_id}, but {first} to cluster {found[first].cluster_id}"
    return None


def make_durable_directory(files: Files, path: str) -> None:
    """Create a directory and its parents, and sync each one's parent."""
    missing = []
    while path and not files.exists(path):
        missing.append(path)
        path = path.rpartition("/")[0]
    for each in reversed(missing):
        files.make_directory(each)
        files.sync_directory(each.rpartition("/")[0] or "/")


def _read_all(files: Files, config: NodeConfig) -> dict[str, MetaProperties | None]:
    """Read the meta.properties of each directory; an unreadable directory is skipped unless it holds the metadata log.

    The node runs without it (`storage.lost_directory`). Raises OSError and `MetaPropertiesError`.
    """
    found: dict[str, MetaProperties | None] = {}
    for directory in all_directories(config):
        try:
            found[directory] = read_meta_properties(files, directory)
        except OSError as error:
            if directory == config.metadata_directory:
                raise
            log.error("skipping log directory %s, which cannot be read: %s", directory, error)
    return found


def all_directories(config: NodeConfig) -> list[str]:
    """Every log directory and the metadata directory, each once."""
    return list(dict.fromkeys([*config.directories, config.metadata_directory]))
