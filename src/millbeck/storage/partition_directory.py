"""The names of partition directories, and ``partition.metadata`` inside them.

``<topic>-<partition>`` holds a log. ``….<uuid>-delete`` is one that is being removed, ``-stray`` one whose topic the
metadata no longer has, ``-future`` one that is being moved between directories.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from millbeck.kernel.environment import Files
from millbeck.kernel.ids import ZERO_UUID, TopicPartition, Uuid, parse_uuid, uuid_text
from millbeck.storage.atomic_file import read_file

METADATA_FILE_NAME = "partition.metadata"
NAME_LENGTH_MAX = 255
_METADATA_SIZE_MAX = 4096
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_PARTITION = re.compile(r"[0-9]{1,10}", re.ASCII)


class DirectoryKind(Enum):
    LOG = ""
    DELETED = "-delete"
    STRAY = "-stray"
    FUTURE = "-future"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionDirectory:
    topic_partition: TopicPartition
    kind: DirectoryKind


def directory_name(topic_partition: TopicPartition) -> str:
    """The directory name of a log. Raises ValueError for a name that would be outside the log directory."""
    topic, partition = topic_partition
    if not _TOPIC.fullmatch(topic) or topic in (".", "..") or partition < 0:
        raise ValueError(f"{topic_partition!r} is not a valid directory name")
    return f"{topic}-{partition}"


def renamed(topic_partition: TopicPartition, kind: DirectoryKind, unique: Uuid) -> str:
    """A name for the directory of a deleted, stray or future log, shortened to the limit of file systems."""
    suffix = f"-{topic_partition.partition}.{unique.hex()}{kind.value}"
    return topic_partition.topic[: NAME_LENGTH_MAX - len(suffix)] + suffix


def parse_name(name: str) -> PartitionDirectory | None:
    """The topic partition and kind of a directory by its name; None when it is not a partition directory."""
    kind = next(
        (
            kind
            for kind in (DirectoryKind.DELETED, DirectoryKind.STRAY, DirectoryKind.FUTURE)
            if name.endswith(kind.value)
        ),
        DirectoryKind.LOG,
    )
    if kind is not DirectoryKind.LOG:
        name = name.removesuffix(kind.value).rpartition(".")[0]
    topic, dash, partition = name.rpartition("-")
    if not dash or not _TOPIC.fullmatch(topic) or topic in (".", "..") or not _PARTITION.fullmatch(partition):
        return None
    return PartitionDirectory(topic_partition=TopicPartition(topic, int(partition)), kind=kind)


def encode_metadata(topic_id: Uuid) -> bytes:
    return f"version: 0\ntopic_id: {uuid_text(topic_id)}".encode("ascii")


def read_metadata(files: Files, directory: str) -> Uuid:
    """The topic id; `ZERO_UUID` when the file is missing or corrupt (it is durable once the log was flushed)."""
    content = read_file(files, f"{directory}/{METADATA_FILE_NAME}", _METADATA_SIZE_MAX)
    if content is None:
        return ZERO_UUID
    values = dict(line.partition(":")[::2] for line in content.decode("utf-8", errors="replace").splitlines())
    try:
        return parse_uuid(values["topic_id"].strip()) if values["version"].strip() == "0" else ZERO_UUID
    except (KeyError, ValueError):
        return ZERO_UUID
