"""From the log to images: whatever is committed is folded into the next image, in turns short enough for the loop.

A follower, and anybody who has just started, knows of batches only as bytes in the log; when the high watermark passes
them, they are read and folded here. A leader makes the image with the batch (`quorum`), and comes here for what was
committed before it began to decide. A snapshot, found at the start or fetched, stands for everything before it: the
image begins anew from it, and the delta leads there from what was published last.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import islice

from millbeck.kernel.environment import Environment
from millbeck.metadata.delta import Fold, MetadataDelta, advance
from millbeck.metadata.image import EMPTY, MetadataImage
from millbeck.metadata.records import MetadataRecord
from millbeck.server.drivers.image_difference import step_to
from millbeck.server.drivers.metadata_files import FoundSnapshot
from millbeck.server.drivers.metadata_loading import batches_from
from millbeck.server.turns import Turns
from millbeck.storage.log import Log

_PIECE_COUNT = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """The image of everything below ``end_offset``. ``size_bytes`` is what of it came from the log."""

    end_offset: int
    image: MetadataImage
    delta: MetadataDelta
    size_bytes: int


class MetadataReplay:
    def __init__(self, environment: Environment, log: Log) -> None:
        self._clock = environment.clock
        self._log = log
        self._snapshot: FoundSnapshot | None = None
        self.is_reading = asyncio.Lock()
        """Held while the log is read: nothing may take its place meanwhile."""

    def begin_with(self, snapshot: FoundSnapshot) -> None:
        """The next image begins with this snapshot."""
        self._snapshot = snapshot

    async def to(self, end_offset: int, *, image: MetadataImage, position: int) -> Replayed:
        """Advance from ``image``, which stands for everything below ``position``. Raises `MetadataFault`.

        When there is a snapshot to begin with, ``image`` is only what the delta leads away from.
        """
        async with self.is_reading:
            turns = Turns(self._clock)
            snapshot, self._snapshot = self._snapshot, None
            fold = Fold(image if snapshot is None else EMPTY)
            offset, epoch, timestamp_ms = image.offset, image.epoch, image.timestamp_ms
            size_bytes = 0
            if snapshot is not None:
                remaining = iter(snapshot.content.records)
                while piece := list(islice(remaining, _PIECE_COUNT)):
                    fold.add(piece)
                    await turns.give_way()
                position = snapshot.id.end_offset
                offset, epoch = position - 1, snapshot.id.epoch
                timestamp_ms = snapshot.content.last_contained_log_timestamp
            for batch in batches_from(self._log, position, end_offset):
                fold.add(batch.records)
                offset, epoch, timestamp_ms = batch.last_offset, batch.epoch, batch.timestamp_ms
                size_bytes += batch.size_bytes
                await turns.give_way()
            made, delta = fold.finish(offset=offset, epoch=epoch, timestamp_ms=timestamp_ms)
            if snapshot is not None and image is not EMPTY:
                made, delta = step_to(image, made)
            return Replayed(end_offset=max(position, end_offset), image=made, delta=delta, size_bytes=size_bytes)

    def tail(self, image: MetadataImage, position: int) -> tuple[MetadataImage, MetadataDelta, int]:
        """The image at the log's end, at once: for the few batches that a new leader finds not committed."""
        records: list[MetadataRecord] = []
        offset, epoch, timestamp_ms, size_bytes = position - 1, image.epoch, image.timestamp_ms, 0
        for batch in batches_from(self._log, position, self._log.end_offset):
            records += batch.records
            offset, epoch, timestamp_ms = batch.last_offset, batch.epoch, batch.timestamp_ms
            size_bytes += batch.size_bytes
        made, delta = advance(image, records, offset=offset, epoch=epoch, timestamp_ms=timestamp_ms)
        return made, delta, size_bytes
