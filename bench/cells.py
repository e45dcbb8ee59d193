"""The settings that are measured: a cell is one record size, batch size, acks and codec."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

KILO, MEGA = 1024, 1_000_000
SMALL_BATCH, LARGE_BATCH = 16 * KILO, MEGA


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One setting of the producer; consuming reads what it wrote."""

    record_bytes: int
    batch_bytes: int
    acks: str
    codec: str

    @property
    def name(self) -> str:
        size = {100: "100 B", 1000: "1 KB", 10_000: "10 KB"}.get(self.record_bytes, f"{self.record_bytes} B")
        batch = "16 KB" if self.batch_bytes == SMALL_BATCH else "1 MB"
        return f"{size} / {batch} / acks={self.acks} / {self.codec}"


def _cell(record_bytes: int, batch_bytes: int, acks: str, codec: str) -> Cell:
    return Cell(record_bytes=record_bytes, batch_bytes=batch_bytes, acks=acks, codec=codec)


FULL_CELLS = tuple(
    itertools.starmap(
        _cell,
        itertools.product((100, 1000, 10_000), (SMALL_BATCH, LARGE_BATCH), ("1", "all"), ("none", "lz4")),
    )
)

# Both batch sizes, both acks, both codecs and every record size, in six.
CORE_CELLS = (
    _cell(100, SMALL_BATCH, "all", "none"),
    _cell(1000, SMALL_BATCH, "all", "none"),
    _cell(1000, SMALL_BATCH, "1", "lz4"),
    _cell(1000, LARGE_BATCH, "all", "none"),
    _cell(10_000, SMALL_BATCH, "1", "none"),
    _cell(10_000, LARGE_BATCH, "all", "lz4"),
)

# The ones that Kafka's own perf tools repeat in the full run.
PERF_TOOL_CELLS = CORE_CELLS
