"""The offset checkpoint files (text) of a log directory.

Format: a line with the version (0), a line with the number of entries, then one entry per line. Entries are ``topic
partition offset`` in the log directory's files and ``epoch start_offset`` in ``leader-epoch-checkpoint`` (see
`epoch_cache`). The files are replaced atomically, so a malformed one means corruption, not a crash.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from millbeck.kernel.environment import Files
from millbeck.kernel.ids import TopicPartition
from millbeck.storage.atomic_file import read_file, replace_file

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_START_OFFSETS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"

VERSION = 0
SIZE_BYTES_MAX = 256 * 1024 * 1024


class CheckpointError(Exception):
    """A malformed checkpoint file."""


def encode_lines(lines: Iterable[str]) -> bytes:
    entries = list(lines)
    return "\n".join([str(VERSION), str(len(entries)), *entries, ""]).encode("utf-8")


def decode_lines(content: bytes, fields: int) -> list[list[str]]:
    """The entries, each split into exactly ``fields`` words. Raises `CheckpointError`."""
    try:
        lines = content.decode("utf-8").split("\n")
        version, count = int(lines[0]), int(lines[1])
    except (ValueError, IndexError) as error:
        raise CheckpointError("version or count line is missing") from error
    if version != VERSION:
        raise CheckpointError(f"version {version} is not supported")
    entries = [line.split() for line in lines[2:] if line.strip()]
    if len(entries) != count:
        raise CheckpointError(f"the header says {count} entries, the file has {len(entries)}")
    for entry in entries:
        if len(entry) != fields:
            raise CheckpointError(f"malformed entry {' '.join(entry)!r}")
    return entries


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    return encode_lines(f"{key.topic} {key.partition} {offset}" for key, offset in offsets.items())


def decode_offsets(content: bytes) -> dict[TopicPartition, int]:
    offsets: dict[TopicPartition, int] = {}
    for topic, partition, offset in decode_lines(content, 3):
        try:
            key, value = TopicPartition(topic, int(partition)), int(offset)
        except ValueError as error:
            raise CheckpointError(f"malformed entry for {topic}") from error
        if value < 0 or key.partition < 0:
            raise CheckpointError(f"negative number in the entry for {key}")
        if key in offsets:
            raise CheckpointError(f"{key} is listed twice")
        offsets[key] = value
    return offsets


def read_offsets(files: Files, directory: str, name: str) -> dict[TopicPartition, int]:
    """The offsets in a checkpoint file; empty when it does not exist. Raises `CheckpointError` when it is corrupt."""
    content = read_file(files, f"{directory}/{name}", SIZE_BYTES_MAX)
    return {} if content is None else decode_offsets(content)


def write_offsets(files: Files, directory: str, name: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Replace a checkpoint file durably. It syncs, so it runs as a job."""
    replace_file(files, f"{directory}/{name}", encode_offsets(offsets))
