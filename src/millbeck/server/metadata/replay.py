"""Replay committed records from the metadata log into images, in time slices short enough for the event loop.

A follower or a freshly started node has batches only as bytes in the log; when the high watermark passes them, they are
read and replayed here. A leader builds the image with each batch (`quorum_driver`), and uses this module for what was
committed before it became active. A snapshot, found at start or fetched, replaces everything before it: the image is
rebuilt from it, and the delta is computed from the last published image.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import islice

from millbeck.kernel.environment import Environment
from millbeck.metadata.batches import read_in_pieces
from millbeck.metadata.delta import IncrementalReplay, MetadataDelta, advance
from millbeck.metadata.image import EMPTY, MetadataImage
from millbeck.metadata.records import MetadataRecord
from millbeck.server.loop.tasks import TimeSlices
from millbeck.server.metadata.image_difference import step_to
from millbeck.server.metadata.loading import batches_from, views_from
from millbeck.server.metadata.metadata_files import SnapshotFile
from millbeck.storage.log import Log

_PIECE_COUNT = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """The image of everything below ``end_offset``; ``size_bytes`` is the size of the batches read from the log."""

    end_offset: int
    image: MetadataImage
    delta: MetadataDelta
    size_bytes: int


class MetadataReplay:
    def __init__(self, environment: Environment, log: Log) -> None:
        self._clock = environment.clock
        self._log = log
        self._snapshot: SnapshotFile | None = None
        self.is_reading = asyncio.Lock()
        """Held while the log is read: a fetched snapshot must not replace the log meanwhile."""

    def begin_with(self, snapshot: SnapshotFile) -> None:
        """Build the next image from this snapshot."""
        self._snapshot = snapshot

    async def to(self, end_offset: int, *, image: MetadataImage, position: int) -> Replayed:
        """Advance from ``image``, which covers all offsets below ``position``. Raises `MetadataFault`.

        With a pending snapshot, the new image is built from it, and ``image`` is only the base of the delta.
        """
        async with self.is_reading:
            turns = TimeSlices(self._clock)
            snapshot, self._snapshot = self._snapshot, None
            fold = IncrementalReplay(image if snapshot is None else EMPTY)
            offset, epoch, timestamp_ms = image.offset, image.epoch, image.timestamp_ms
            size_bytes = 0
            if snapshot is not None:
                remaining = iter(snapshot.content.records)
                while piece := list(islice(remaining, _PIECE_COUNT)):
                    fold.add(piece)
                    await turns.yield_to_loop()
                position = snapshot.id.end_offset
                offset, epoch = position - 1, snapshot.id.epoch
                timestamp_ms = snapshot.content.last_contained_log_timestamp
            for view in views_from(self._log, position, end_offset):
                batch, pieces = read_in_pieces(view, _PIECE_COUNT)
                for some in pieces:
                    fold.add(some)
                    await turns.yield_to_loop()
                offset, epoch, timestamp_ms = batch.last_offset, batch.epoch, batch.timestamp_ms
                size_bytes += batch.size_bytes
                await turns.yield_to_loop()
            made, delta = fold.finish(offset=offset, epoch=epoch, timestamp_ms=timestamp_ms)
            if snapshot is not None and image is not EMPTY:
                made, delta = step_to(image, made)
            return Replayed(end_offset=max(position, end_offset), image=made, delta=delta, size_bytes=size_bytes)

    def tail(self, image: MetadataImage, position: int) -> tuple[MetadataImage, MetadataDelta, int]:
        """The image at the log end, without yielding: for the few uncommitted batches that a new leader finds."""
        records: list[MetadataRecord] = []
        offset, epoch, timestamp_ms, size_bytes = position - 1, image.epoch, image.timestamp_ms, 0
        for batch in batches_from(self._log, position, self._log.end_offset):
            records += batch.records
            offset, epoch, timestamp_ms = batch.last_offset, batch.epoch, batch.timestamp_ms
            size_bytes += batch.size_bytes
        made, delta = advance(image, records, offset=offset, epoch=epoch, timestamp_ms=timestamp_ms)
        return made, delta, size_bytes
