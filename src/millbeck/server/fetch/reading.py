"""Load the log slices of a fetch into its reply, never waiting for the disk on the event loop.

Short slices are copied into the response; the read itself shows whether the data is in the page cache. Longer ones are
sent with sendfile (docs/adr/0006), after one byte in every `TRIED_STEP_BYTES` was read to check the page cache. Data
that is not in the page cache is read into the response on a thread, at most 4 MiB at a time; the client fetches the
rest, and for a while its reads go to a thread without a check (`cold_readers`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from millbeck.kernel.environment import File, FileSlice, Part
from millbeck.kernel.errors import KafkaStorageError

if TYPE_CHECKING:
    from millbeck.server.broker import Broker

COPIED_BYTES_MAX: Final = 128 * 1024
TRIED_STEP_BYTES: Final = 512 * 1024
"""The distance between the bytes that are read to check the page cache. A check costs one or two microseconds, and most
replies are warm (docs/adr/0006)."""
COLD_BYTES_MAX: Final = 4 * 1024 * 1024
"""Bytes from the disk that one reply may hold in memory, beyond its first slice."""

Loaded = Callable[[list[Sequence[Part]] | KafkaStorageError], None]
"""Callback with the parts of each slice in order, or the error; the slices are released or passed on. A slice without
parts was left out of this reply."""


def load(broker: Broker, slices: Sequence[FileSlice], loaded: Loaded) -> None:
    """Turn slices into response parts and call ``loaded``, at once if all data is in the page cache. Takes over the
    slices' leases."""
    readers = broker.cold_readers
    if readers and any(readers.expects(piece.file.path, piece.position) for piece in slices):
        broker.spawn(_read_on_thread(broker, slices, loaded))
        return
    total = sum(piece.size for piece in slices)
    try:
        parts = _copies(slices) if total <= COPIED_BYTES_MAX else _warm(slices)
    except OSError as error:
        _fail(slices, loaded, error)
        return
    if parts is None:
        broker.spawn(_read_on_thread(broker, slices, loaded))
    else:
        loaded(parts)


def _copies(slices: Sequence[FileSlice]) -> list[Sequence[Part]] | None:
    copies: list[Sequence[Part]] = []
    for piece in slices:
        copy = piece.file.read_nowait(piece.size, piece.position)
        if copy is None:
            return None
        if len(copy) != piece.size:
            raise OSError(f"{piece.file.path} ends within a batch at {piece.position + len(copy)}")
        copies.append((copy,))
    for piece in slices:
        piece.release()
    return copies


def _warm(slices: Sequence[FileSlice]) -> list[Sequence[Part]] | None:
    for piece in slices:
        last = piece.position + piece.size - 1
        for position in (*range(piece.position, last, TRIED_STEP_BYTES), last):
            if piece.file.read_nowait(1, position) is None:
                return None
    return [(piece,) for piece in slices]


async def _read_on_thread(broker: Broker, slices: Sequence[FileSlice], loaded: Loaded) -> None:
    """Read slices on a thread into the reply up to the limit; the rest are left out."""
    parts: list[Sequence[Part]] = []
    size = 0
    try:
        for piece in slices:
            if size and size + piece.size > COLD_BYTES_MAX:
                parts.append(())
                continue
            copy, disk_bytes, is_at_end = await broker.in_thread(_read_exactly, piece.file, piece.size, piece.position)
            end = piece.position + piece.size
            broker.cold_readers.moved(piece.file.path, piece.position, end, disk_bytes, is_at_end=is_at_end)
            parts.append((copy,))
            size += piece.size
    except OSError as error:
        _fail(slices, loaded, error)
        return
    for piece in slices:
        piece.release()
    loaded(parts)


def _read_exactly(file: File, size: int, position: int) -> tuple[bytes, int, bool]:
    """The bytes, how many of them came from the disk, and whether the file ends with them."""
    copy, disk_bytes = file.read_counted(size, position)
    if len(copy) != size:
        raise OSError(f"{file.path} ends within a batch at {position + len(copy)}")
    return copy, disk_bytes, file.size() <= position + size


def _fail(slices: Sequence[FileSlice], loaded: Loaded, error: OSError) -> None:
    for piece in slices:
        piece.release()
    loaded(KafkaStorageError(str(error)))
