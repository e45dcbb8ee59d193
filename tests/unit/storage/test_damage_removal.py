"""A damaged log is made whole on a thread, with files of its own."""

from __future__ import annotations

import random

import pytest

from millbeck.kernel.ids import TopicPartition
from millbeck.records import batch as batches
from millbeck.records.record import Record
from millbeck.simulation.environment.disk import SimDisk
from millbeck.simulation.environment.inode import Inode
from millbeck.storage import loading
from millbeck.storage.config import LogConfig
from millbeck.storage.damage_removal import RepairResult
from millbeck.storage.directory import LogDirectory
from millbeck.storage.file_cache import FileCache
from millbeck.storage.index_cache import IndexCache
from millbeck.storage.log import Log
from millbeck.storage.segment import CorruptSegment

KEY = TopicPartition("t", 0)
BATCHES = 12
PER_SEGMENT = 4


class Damaged:
    """A log of three segments, and places in it that go bad."""

    def __init__(self) -> None:
        self.disk = SimDisk(random.Random(1))
        files = self.disk.mount()
        self.cache = FileCache(files, 100)
        self.directory = LogDirectory(
            files,
            "/data",
            cache=self.cache,
            index_cache=IndexCache(),
            jitter_below=lambda _: 0,
            on_failure=lambda reason: None,
        )
        batch = batches.build([Record(-1, 0, None, b"x" * 40)])
        self.batch_bytes = len(batch)
        config = LogConfig.of(internal_segment_bytes=str(PER_SEGMENT * len(batch)))
        self.log = self.directory.create_log(KEY, bytes(range(16)), config, now_ms=0)
        for _ in range(BATCHES):
            self.log.stage(batch, leader_epoch=1, now_ms=0)
            self.log.write_staged()
        self.log.flush()

    def rot(self, offset: int) -> CorruptSegment:
        index, position = divmod(offset, PER_SEGMENT)
        path = self.log.segments[index].log_path
        inode = self.disk.find(path)
        assert isinstance(inode, Inode)
        inode.rot(8 * (position * self.batch_bytes + 70))
        return CorruptSegment(path, position * self.batch_bytes, "a test")

    def repaired(self) -> RepairResult:
        log = self.log
        while (job := self.directory.lowering_job(log, log.damaged_offset)) is not None:
            job()
        return self.directory.repair_job(log, now_ms=0).run()


@pytest.fixture
def damaged() -> Damaged:
    return Damaged()


def test_what_comes_before_the_first_bad_batch_is_kept(damaged: Damaged) -> None:
    damaged.log.mark_corrupt(damaged.rot(6))
    assert damaged.repaired() == (6, -1)
    assert damaged.cache.open_count == 0, "the files that the loop uses are left alone"
    log = damaged.directory.finish_repair(damaged.log, RepairResult(6, -1), now_ms=0)
    assert (log.end_offset, log.flushed_offset, log.is_offline) == (6, 6, False)
    assert damaged.directory.logs == {KEY: log}
    assert (_offsets(log, 0), _offsets(log, 4)) == ([0, 1, 2, 3], [4, 5])


def test_it_is_opened_as_after_a_clean_stop(damaged: Damaged, monkeypatch: pytest.MonkeyPatch) -> None:
    damaged.log.mark_corrupt(damaged.rot(6))
    repaired = damaged.repaired()

    def read_everything(*_: object) -> Log:
        raise AssertionError("the loop would read the log")

    monkeypatch.setattr(loading._Loader, "_recover", read_everything)
    assert damaged.directory.finish_repair(damaged.log, repaired, now_ms=0).end_offset == 6


def test_damage_further_back_is_told_and_mended_in_turn(damaged: Damaged) -> None:
    """Only what is read is checked: a segment without its index is, by its headers."""
    log = damaged.log
    inode = damaged.disk.find(log.segments[0].log_path)
    assert isinstance(inode, Inode)
    inode.rot(8 * (damaged.batch_bytes + 16))
    damaged.disk.mount().unlink(log.segments[0].log_path.replace(".log", ".index"))
    log.mark_corrupt(damaged.rot(6))
    first = damaged.repaired()
    assert first.damaged_offset == 0
    assert damaged.directory.finish_repair(log, first, now_ms=0) is log
    second = damaged.repaired()
    assert second == (1, -1)
    repaired = damaged.directory.finish_repair(log, second, now_ms=0)
    assert (repaired.end_offset, damaged.directory.offline_count) == (1, 0)


def _offsets(log: Log, start: int) -> list[int]:
    """Of the segment that begins there."""
    piece = log.read(start, size_bytes_max=1 << 20, upto_offset=log.end_offset)
    assert piece is not None
    data = piece.file.read(piece.size, piece.position)
    piece.release()
    return [one.header.base_offset for one in batches.split(data, partial_tail=True)]
