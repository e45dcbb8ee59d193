"""A compacted log on a simulated disk: records in, a round of compaction, records out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from millbeck.records import batch as batches
from millbeck.records.compression import Codec
from millbeck.records.record import Record
from millbeck.storage.compaction import plan as plans
from millbeck.storage.compaction.compactor import compact
from millbeck.storage.compaction.job import CompactionJob, CompactionResult
from millbeck.storage.compaction.plan import CompactionPlan, LogToClean
from millbeck.storage.log import Log
from millbeck.storage.swap import Swap

Pair = tuple[bytes | None, bytes | None]


class CompactedWorld:
    """One compacted log; every `put` is one batch, `roll` ends a segment, `compact` does rounds until all is clean."""

    def __init__(self, world: Any) -> None:
        self.world = world
        self.checkpoint: int | None = None
        self.map_bytes_max = 1 << 20
        world.configure(cleanup_policy="compact", internal_segment_bytes="100000", delete_retention_ms="1000")
        self.sequences: dict[tuple[int, int], int] = {}

    @property
    def log(self) -> Log:
        log: Log = self.world.log
        return log

    @property
    def now_ms(self) -> int:
        now_ms: int = self.world.clock_ms
        return now_ms

    def put(
        self,
        *pairs: Pair,
        codec: Codec = Codec.NONE,
        producer_id: int = -1,
        epoch: int = 0,
        transactional: bool = False,
        append_timestamp: int | None = None,
    ) -> int:
        """Append a batch; returns its first offset."""
        records = [Record(-1, self.now_ms + index, key, value) for index, (key, value) in enumerate(pairs)]
        sequence = -1
        if producer_id >= 0:
            sequence = self.sequences.get((producer_id, epoch), 0)
            self.sequences[producer_id, epoch] = sequence + len(pairs)
        batch = batches.build(
            records,
            codec=codec,
            producer_id=producer_id,
            producer_epoch=epoch if producer_id >= 0 else -1,
            base_sequence=sequence,
            is_transactional=transactional,
            append_timestamp=append_timestamp,
        )
        first_offset: int = self.world.append(batch).first_offset
        return first_offset

    def roll(self) -> None:
        self.log.roll(self.now_ms)
        self.log.flush()

    def survey(self) -> LogToClean:
        return plans.survey(
            self.log, checkpoint=self.checkpoint, high_watermark=self.log.end_offset, now_ms=self.now_ms
        )

    def plan(self) -> CompactionPlan:
        plan = plans.prepare(self.log, self.survey(), now_ms=self.now_ms, map_bytes_max=self.map_bytes_max)
        assert plan is not None
        return plan

    def job(self) -> CompactionJob:
        plan = self.plan()
        plan.release()
        return plan.job

    def round(self) -> CompactionResult:
        """Plan, compact and swap once."""
        plan = self.plan()
        outcome = compact(plan.job, self.world.files)
        swap = Swap(plan, outcome)
        assert swap.run()
        plan.release()
        self.checkpoint = outcome.cleaned_offset
        self.world.run_all(swap.removals)
        return outcome

    def compact(self, *, roll: bool = True) -> list[CompactionResult]:
        """Rounds until nothing is dirty."""
        if roll:
            self.roll()
        outcomes = []
        while self.survey().dirty_bytes:
            outcomes.append(self.round())
            assert len(outcomes) < 100
        return outcomes

    def again(self) -> CompactionResult:
        """A round over everything, as if all were dirty."""
        self.checkpoint = None
        return self.round()

    def batches(self) -> Sequence[batches.Batch]:
        found: list[batches.Batch] = []
        for segment in self.log.segments:
            content = bytes(segment.read_bytes(segment.size, 0))
            for one in batches.split(content):
                batches.verify(one.data)
                found.append(one)
        return found

    def records(self) -> list[tuple[int, bytes | None, bytes | None]]:
        """Offset, key and value of all data records in the log's files."""
        return [
            (record.offset, record.key, record.value)
            for one in self.batches()
            if not one.header.is_control
            for record in batches.records_of(one.data)
        ]


@pytest.fixture
def table(world: Any) -> CompactedWorld:
    return CompactedWorld(world)
