"""``FileStreamSink``: a line for each record, each once.

A hidden file beside the file says up to where which partitions are in it, and how long it is with them. It is replaced
after the lines are on the disk. What is behind that length is of an attempt that did not end: the next one cuts
it off. Positions of the consumer group that are ahead of it (other software has written in between) count, and nothing
is cut off then.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, Final

from millbeck.kernel.ids import TopicPartition
from millbeck.pipeline.connect.connectors.declared import FILE_SINK, SettingProblem
from millbeck.pipeline.connect.connectors.interface import (
    Backlog,
    Plan,
    SinkConnector,
    SinkRecords,
    SinkShare,
    dealt_out,
)
from millbeck.pipeline.connect.errors import ConfigError, RetriableError
from millbeck.pipeline.connect.model.values import plain_text

_BUFFER_BYTES: Final = 1024 * 1024
_NOTE_BYTES_MAX: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Note:
    """What is in the file."""

    positions: Mapping[TopicPartition, int]
    length: int

    def stored(self) -> bytes:
        positions = [
            [partition.topic, partition.partition, offset] for partition, offset in sorted(self.positions.items())
        ]
        return json.dumps({"length": self.length, "positions": positions}).encode()

    @classmethod
    def read(cls, path: str) -> Note | None:
        try:
            with open(path, "rb") as file:
                found = json.loads(file.read(_NOTE_BYTES_MAX))
            positions = {
                TopicPartition(topic, int(number)): int(offset) for topic, number, offset in found["positions"]
            }
            return cls(positions, int(found["length"]))
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigError(f"file: {path} is not readable as a note of positions ({error}): remove it") from error

    def write(self, path: str) -> None:
        with open(f"{path}.new", "wb") as file:
            file.write(self.stored())
            file.flush()
            os.fsync(file.fileno())
        os.replace(f"{path}.new", path)
        directory = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def note_path(path: str) -> str:
    return os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.positions")


class FileSink(SinkConnector):
    declared = FILE_SINK

    def check(self) -> Iterable[SettingProblem]:
        path = self.values["file"]
        directory = os.path.dirname(path or "") or "."
        if path and not os.path.isdir(directory):
            yield SettingProblem("file", f"there is no directory {directory}: make it, or correct the name")
        elif path and os.path.isdir(path):
            yield SettingProblem("file", f"{path} is a directory: name a file")

    def start(self) -> None:
        if not self.values["file"]:
            raise ConfigError("file: name the file to write; tasks have no standard output")

    def positions(self, committed: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        with self._opened() as file:
            note = Note.read(self._note_path)
            if note is None:
                return committed
            if any(note.positions.get(partition, offset) < offset for partition, offset in committed.items()):
                # The group has gone on without this note: what is in the file stays.
                Note({**note.positions, **committed}, os.fstat(file.fileno()).st_size).write(self._note_path)
                return committed
            return {partition: note.positions.get(partition, offset) for partition, offset in committed.items()}

    def alter_positions(self, positions: Mapping[TopicPartition, int | None]) -> None:
        with self._opened() as file:
            note = Note.read(self._note_path)
            if note is not None:
                kept = {partition: offset for partition, offset in note.positions.items() if partition not in positions}
                length = min(note.length, os.fstat(file.fileno()).st_size)
                Note(kept, length).write(self._note_path)

    def plan(self, backlog: Mapping[TopicPartition, Backlog]) -> Plan[SinkShare]:
        # One task, whatever tasks.max is: it is one file.
        return dealt_out(backlog, 1)

    def write(self, share: SinkShare, records: SinkRecords) -> None:
        with self._opened() as file:
            note = Note.read(self._note_path)
            length = os.fstat(file.fileno()).st_size
            if note is not None:
                for partition, start, _ in share.ranges:
                    if note.positions.get(partition, start) != start:
                        raise RetriableError(
                            f"{self.values['file']} has {partition} up to {note.positions[partition]}, not {start}:"
                            " another attempt has written it"
                        )
                if length > note.length:
                    file.truncate(note.length)
                length = min(length, note.length)
            file.seek(length)
            known = {} if note is None else note.positions
            if note is None:
                Note({partition: start for partition, start, _ in share.ranges}, length).write(self._note_path)
            buffer = bytearray()
            for record in records:
                value = record.value
                buffer += (value if isinstance(value, str) else plain_text(value)).encode("utf-8", "replace")
                buffer += b"\n"
                if len(buffer) >= _BUFFER_BYTES:
                    file.write(buffer)
                    length += len(buffer)
                    buffer.clear()
            file.write(buffer)
            length += len(buffer)
            file.flush()
            os.fsync(file.fileno())
            Note({**known, **{partition: end for partition, _, end in share.ranges}}, length).write(self._note_path)

    @property
    def _note_path(self) -> str:
        return note_path(self.values["file"])

    @contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        """The file, locked: a task that is slow to die must not write while another one does."""
        path: str = self.values["file"]
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except (FileNotFoundError, PermissionError, IsADirectoryError) as error:
            raise ConfigError(f"file: {path} cannot be written: {error.strerror}") from error
        with open(descriptor, "r+b") as file:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise RetriableError(f"{path} is being written by another process") from error
            yield file
