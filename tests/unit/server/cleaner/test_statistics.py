"""What the metrics say of runs."""

from __future__ import annotations

from dataclasses import replace

from millbeck.kernel.ids import TopicPartition
from millbeck.server.cleaner.statistics import CleanerStatistics
from millbeck.storage.compaction.job import CompactionStats
from millbeck.storage.compaction.plan import LogToClean

SURVEY = LogToClean(
    topic_partition=TopicPartition("t", 0),
    first_dirty_offset=0,
    first_uncleanable_offset=10,
    clean_bytes=60,
    dirty_bytes=40,
    uncleanable_bytes=5,
    compaction_delay_ms=2500,
    dirty_ratio_min=0.5,
    was_reset=False,
)


def test_nothing_was_done_yet() -> None:
    statistics = CleanerStatistics()
    assert statistics.recopy_percent() == 0
    assert statistics.seconds_max() == 0
    assert statistics.buffer_utilization_max() == 0
    assert statistics.compaction_delay_seconds_max() == 0
    statistics.looked([], 5)
    assert (statistics.dirtiest_ratio, statistics.looked_at_ms) == (0.0, 5)


def test_the_last_run_of_each_thread_counts() -> None:
    statistics = CleanerStatistics()
    quiet = replace(SURVEY, compaction_delay_ms=0)
    statistics.ran(0, 90.0, SURVEY, CompactionStats(bytes_read=1, bytes_written=1, map_utilization=0.9))
    statistics.ran(
        0, 3.0, quiet, CompactionStats(bytes_mapped=50, bytes_read=300, bytes_written=30, map_utilization=0.2)
    )
    statistics.ran(1, 7.5, SURVEY, CompactionStats(bytes_read=100, bytes_written=70, map_utilization=0.1))
    assert statistics.recopy_percent() == 25
    assert statistics.seconds_max() == 7.5
    assert statistics.buffer_utilization_max() == 0.2
    assert statistics.compaction_delay_seconds_max() == 2.5
    assert (statistics.run_count, statistics.bytes_read, statistics.bytes_written) == (3, 451, 101)


def test_the_dirtiest_of_the_last_look_counts() -> None:
    statistics = CleanerStatistics()
    statistics.looked([SURVEY, replace(SURVEY, dirty_bytes=0)], 1)
    assert statistics.dirtiest_ratio == 0.4
    statistics.looked([replace(SURVEY, dirty_bytes=0)], 2)
    assert statistics.dirtiest_ratio == 0.0
