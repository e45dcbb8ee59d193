"""What crosses to another process comes back equal."""

from __future__ import annotations

import pickle

from millbeck.storage.compaction.job import CompactionResult, CompactionStats, NewSegment, UncleanableLog


def test_an_outcome_crosses() -> None:
    made = NewSegment(
        base_offset=3, source_count=2, size=10, max_timestamp=4, max_timestamp_offset=5, has_aborted=False
    )
    outcome = CompactionResult(segments=(made,), cleaned_offset=9, statistics=CompactionStats(bytes_read=7))
    assert pickle.loads(pickle.dumps(outcome)) == outcome


def test_what_cannot_be_compacted_says_where() -> None:
    error = UncleanableLog("/data/t-0/0.log", 17, "the checksum is wrong")
    assert str(error) == "/data/t-0/0.log cannot be compacted at position 17: the checksum is wrong"
