"""A round of compaction, from sources to new segments."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import pytest

from millbeck.records.compression import Codec
from millbeck.storage.compaction.compactor import compact, discard
from millbeck.storage.compaction.job import CompactionCancelled, CompactionProgress, SourceRemoved, UncleanableLog
from tests.log_steps import truncate_to


def test_the_latest_record_of_each_key_stays_at_its_offset(table: Any) -> None:
    table.put((b"a", b"1"), (b"b", b"1"), (b"a", b"2"))
    table.put((b"c", b"1"))
    table.put((b"b", b"2"))
    table.compact()
    assert table.records() == [(2, b"a", b"2"), (3, b"c", b"1"), (4, b"b", b"2")]
    assert table.log.end_offset == 5


def test_the_active_segment_is_left_alone(table: Any) -> None:
    table.put((b"a", b"1"))
    table.roll()
    table.put((b"a", b"2"))
    table.compact(roll=False)
    assert table.records() == [(0, b"a", b"1"), (1, b"a", b"2")]


def test_segments_are_merged_as_far_as_they_fit(table: Any) -> None:
    for number in range(6):
        table.put((b"k%d" % number, b"v" * 100))
        table.roll()
    table.world.configure(cleanup_policy="compact", internal_segment_bytes="600")
    table.compact()
    assert len(table.log.segments) == 3
    assert [offset for offset, _, _ in table.records()] == list(range(6))


def test_keys_beyond_the_buffer_take_more_rounds(table: Any) -> None:
    for number in range(40):
        table.put((b"k%d" % (number % 10), b"%d" % number))
    table.map_bytes_max = 500
    outcomes = table.compact()
    assert len(outcomes) > 1
    assert [outcome.cleaned_offset for outcome in outcomes] == sorted({outcome.cleaned_offset for outcome in outcomes})
    assert [value for _, _, value in table.records()] == [b"%d" % number for number in range(30, 40)]


@pytest.mark.parametrize("codec", list(Codec))
def test_a_rewritten_batch_keeps_its_codec(table: Any, codec: Codec) -> None:
    table.put((b"a", b"1" * 50), (b"b", b"1" * 50), codec=codec)
    table.put((b"a", b"2"))
    table.compact()
    assert table.records() == [(1, b"b", b"1" * 50), (2, b"a", b"2")]
    assert table.batches()[0].header.codec is codec


def test_a_job_crosses_to_another_process_and_back(table: Any) -> None:
    table.put((b"a", b"1"), producer_id=3)
    table.put((b"a", b"2"))
    table.roll()
    job = pickle.loads(pickle.dumps(table.job()))
    outcome = pickle.loads(pickle.dumps(compact(job, table.world.files)))
    assert outcome.cleaned_offset == 2
    assert outcome.statistics.records_dropped == 1


def test_a_damaged_batch_is_told_of_and_nothing_is_left(table: Any) -> None:
    table.put((b"a", b"1"))
    table.put((b"a", b"2"))
    table.roll()
    table.world.overwrite("00000000000000000000.log", 65, b"\xff")
    with pytest.raises(UncleanableLog) as raised:
        compact(table.job(), table.world.files)
    assert raised.value.position == 0
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)
    assert table.world.names(".cleaned") == []


def test_a_source_that_is_gone_is_no_damage(table: Any) -> None:
    table.put((b"a", b"1"))
    table.roll()
    job = table.job()
    table.world.files.unlink(job.sources[0].path)
    with pytest.raises(SourceRemoved):
        compact(job, table.world.files)


def test_a_source_that_was_cut_is_no_damage(table: Any) -> None:
    table.put((b"a", b"1"))
    table.roll()
    job = table.job()
    truncate_to(table.log, 0)
    with pytest.raises(SourceRemoved):
        compact(job, table.world.files)


def test_leases_outlive_the_names_of_sources(table: Any) -> None:
    table.put((b"a", b"1"), (b"a", b"2"))
    table.roll()
    plan = table.plan()
    table.world.files.unlink(plan.job.sources[0].path)
    outcome = compact(plan.job, table.world.files, open_source=plan.open_source)
    plan.release()
    assert outcome.statistics.records_dropped == 1


def test_the_throttle_hears_of_every_byte_and_may_end_the_work(table: Any) -> None:
    table.put((b"a", b"1"))
    table.put((b"b", b"1"))
    table.roll()
    job = table.job()
    heard: list[int] = []
    outcome = compact(job, table.world.files, heard.append)
    assert sum(heard) == 2 * job.sources[0].size + outcome.segments[0].size

    def refuse(size: int) -> None:
        raise CompactionCancelled

    with pytest.raises(CompactionCancelled):
        compact(job, table.world.files, refuse)
    assert table.world.names(".cleaned") == []


def test_progress_rises_to_its_total(table: Any) -> None:
    for _ in range(3):
        table.put((b"a", b"1"))
        table.roll()
    seen: list[CompactionProgress] = []
    compact(table.job(), table.world.files, on_progress=seen.append)
    done = [progress.bytes_done for progress in seen]
    assert done == sorted(done)
    assert len(done) > 2
    assert seen[-1].bytes_done == seen[-1].bytes_total


def test_progress_is_told_of_in_the_middle_of_a_segment(table: Any) -> None:
    for number in range(20):
        table.put((b"%d" % number, b"v" * 500))
    table.roll()
    seen: list[CompactionProgress] = []
    compact(replace(table.job(), read_bytes=600), table.world.files, on_progress=seen.append)
    assert len({progress.bytes_done for progress in seen}) > 20


def test_a_source_without_an_index_is_compacted_by_itself(table: Any) -> None:
    for number in range(3):
        table.put((b"%d" % number, b"v"))
        table.roll()
    job = table.job()
    table.world.files.unlink(job.sources[1].path.replace(".log", ".index"))
    assert [made.source_count for made in compact(job, table.world.files).segments] == [1, 1, 1]


def test_discard_removes_what_a_round_has_made(table: Any) -> None:
    table.put((b"a", b"1"))
    table.roll()
    outcome = compact(table.job(), table.world.files)
    assert table.world.names(".cleaned")
    discard(table.world.files, table.world.path, [made.base_offset for made in outcome.segments])
    discard(table.world.files, table.world.path, [made.base_offset for made in outcome.segments])
    assert table.world.names(".cleaned") == []


def test_what_an_interrupted_round_has_left_is_gone_before_anything_is_written(table: Any) -> None:
    table.put((b"a", b"1"))
    table.roll()
    table.world.write_file("00000000000000000000.txnindex.cleaned", b"stale")
    table.world.write_file("00000000000000000077.log.cleaned", b"stale")
    compact(table.job(), table.world.files)
    assert table.world.names(".cleaned") == [
        "00000000000000000000.index.cleaned",
        "00000000000000000000.log.cleaned",
        "00000000000000000000.timeindex.cleaned",
    ]
