"""From the slices of a fetch to parts of its reply, without ever waiting for the disk on the loop.

Short replies are read straight into the reply: the read itself tells whether the data is in memory. Longer ones stay
file slices for sendfile (docs/adr/0006), after one byte in every stretch of them has been tried the same way. What is
cold has had its readahead started by the attempt: one more attempt a millisecond later, then a thread brings it in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from millbeck.kernel.environment import File, FileSlice, Part
from millbeck.kernel.errors import KafkaStorageError
from millbeck.server.broker import Broker

COPIED_BYTES_MAX: Final = 128 * 1024
TRIED_STEP_BYTES: Final = 128 * 1024
"""Linux reads ahead this much by default. A try costs under a microsecond."""
WARMING_STEP_BYTES: Final = 1024 * 1024
RETRY_MS: Final = 1

Loaded = Callable[[list[Sequence[Part]] | KafkaStorageError], None]
"""Gets the parts of each slice in order, or the error; the slices are then no longer the caller's."""


def load(broker: Broker, slices: Sequence[FileSlice], loaded: Loaded) -> None:
    """Turn slices into parts and call ``loaded``, at once when everything is warm. Takes over the slices' leases."""
    _attempt(broker, slices, loaded, may_retry=True)


def _attempt(broker: Broker, slices: Sequence[FileSlice], loaded: Loaded, *, may_retry: bool) -> None:
    total = sum(piece.size for piece in slices)
    try:
        parts = _copies(slices) if total <= COPIED_BYTES_MAX else _warm(slices)
    except OSError as error:
        _fail(slices, loaded, error)
        return
    if parts is not None:
        loaded(parts)
        return
    if may_retry and all(piece.file.reads_nowait for piece in slices):
        broker.deadlines.after(RETRY_MS, lambda: _attempt(broker, slices, loaded, may_retry=False))
        return
    broker.spawn(_with_thread(broker, slices, loaded))


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


async def _with_thread(broker: Broker, slices: Sequence[FileSlice], loaded: Loaded) -> None:
    total = sum(piece.size for piece in slices)
    try:
        if total <= COPIED_BYTES_MAX:
            copies: list[Sequence[Part]] = [
                (await broker.in_thread(_read_exactly, piece.file, piece.size, piece.position),) for piece in slices
            ]
            for piece in slices:
                piece.release()
            loaded(copies)
        else:
            for piece in slices:
                await broker.in_thread(_bring_in, piece.file, piece.size, piece.position)
            loaded([(piece,) for piece in slices])
    except OSError as error:
        _fail(slices, loaded, error)


def _read_exactly(file: File, size: int, position: int) -> bytes:
    copy = file.read(size, position)
    if len(copy) != size:
        raise OSError(f"{file.path} ends within a batch at {position + len(copy)}")
    return copy


def _bring_in(file: File, size: int, position: int) -> None:
    """Read a range so that the kernel has it in memory; what is read is dropped."""
    end = position + size
    while position < end:
        position += len(file.read(min(WARMING_STEP_BYTES, end - position), position)) or size


def _fail(slices: Sequence[FileSlice], loaded: Loaded, error: OSError) -> None:
    for piece in slices:
        piece.release()
    loaded(KafkaStorageError(str(error)))
