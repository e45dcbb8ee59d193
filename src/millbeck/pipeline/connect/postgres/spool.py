"""Files for transactions that are too large for memory. They are no more than a copy: the slot has what they have."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from typing import Final

from millbeck.pipeline.connect.errors import InvalidValue, RetriableError
from millbeck.pipeline.connect.postgres.share import ENTRY_OVERHEAD, ChangeEntry, entry_size, entry_with

_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9._-]")
_BUFFER: Final = 1 << 20
_MESSAGE_MAX: Final = 1 << 30


class SpoolDirectory:
    """The files of one connector on this host."""

    def __init__(self, parent: str | None, connector: str) -> None:
        name = _NOT_IN_NAMES.sub("_", connector)[:100]
        self.path = os.path.join(parent or tempfile.gettempdir(), f"millbeck-postgres-{os.getuid()}-{name}")
        self._count = 0

    def clear(self) -> None:
        """Remove what an earlier worker has left."""
        shutil.rmtree(self.path, ignore_errors=True)

    def make(self) -> SpoolFile:
        os.makedirs(self.path, mode=0o700, exist_ok=True)
        self._count += 1
        return SpoolFile(os.path.join(self.path, f"{os.getpid()}-{self._count}"))


class SpoolFile:
    """The entries of one transaction."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.size = 0
        self._file = open(path, "wb", buffering=_BUFFER, opener=_private)  # noqa: SIM115

    def write(self, data: bytes) -> None:
        self._file.write(data)
        self.size += len(data)

    def finish(self) -> None:
        self._file.close()

    def discard(self) -> None:
        self._file.close()
        with_missing = os.path.exists(self.path)
        if with_missing:
            os.unlink(self.path)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def spooled_entries(path: str, size: int) -> Iterator[ChangeEntry]:
    """The entries of a file that is complete at this size, one after another. Raises `RetriableError` when it is not
    there: the worker then reads the transaction again.
    """
    try:
        file = open(path, "rb", buffering=_BUFFER)  # noqa: SIM115
    except OSError as error:
        raise RetriableError(
            f"millbeck.spool.directory: a task cannot read {path} ({error.strerror}): on a cluster, set it to a "
            "directory that all hosts share"
        ) from error
    with file:
        position = 0
        while position < size:
            head = file.read(ENTRY_OVERHEAD)
            if len(head) < ENTRY_OVERHEAD:
                raise RetriableError(f"{path} is shorter than it was written")
            length = entry_size(head)
            if length > _MESSAGE_MAX:
                raise InvalidValue(f"{path} has an entry of {length} bytes")
            message = file.read(length)
            if len(message) < length:
                raise RetriableError(f"{path} is shorter than it was written")
            position += ENTRY_OVERHEAD + length
            yield entry_with(head, message)
