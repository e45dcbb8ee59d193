"""The audit file: lines are appended on a thread. At its maximum size it is rotated: it becomes ``.1``, and ``.1``
becomes ``.2``.

The file is opened for each write, so that tools such as logrotate can move it without a signal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from millbeck.kernel.environment import Environment, Files, OpenMode

NAME: Final = "file"


class AuditFile:
    name = NAME

    def __init__(self, environment: Environment, path: str, *, size_bytes_max: int, file_count: int) -> None:
        self._environment = environment
        self._path = path
        self._size_bytes_max = size_bytes_max
        self._file_count = file_count

    async def write(self, lines: Sequence[str]) -> int:
        """Write lines; raises OSError."""
        data = "".join(f"{line}\n" for line in lines).encode()
        await self._environment.threads.run(
            append, self._environment.files, self._path, data, self._size_bytes_max, self._file_count
        )
        return 0


def append(files: Files, path: str, data: bytes, size_bytes_max: int, file_count: int) -> None:
    """Append lines to a file, which is rotated first if it would exceed its size. Only its owner can read it.

    What a full disk took of them is removed again, because they are written anew. A line that an earlier process could
    not complete is ended first.
    """
    if files.exists(path) and files.size(path) + len(data) > size_bytes_max:
        _rotate(files, path, file_count)
    file = files.open(path, OpenMode.WRITE_PRIVATE)
    try:
        end = file.size()
        buffers = [b"\n", data] if end and file.read(1, end - 1) != b"\n" else [data]
        try:
            file.write(buffers, end)
        except OSError:
            file.truncate(end)
            raise
    finally:
        file.close()


def _rotate(files: Files, path: str, file_count: int) -> None:
    names = [path, *(f"{path}.{number}" for number in range(1, file_count))]
    if files.exists(names[-1]):
        files.unlink(names[-1])
    for older, newer in zip(reversed(names[1:]), reversed(names[:-1]), strict=True):
        if files.exists(newer):
            files.rename(newer, older)
