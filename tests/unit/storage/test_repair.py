"""A stopped node's damaged log is cut, and nothing of it is thrown away."""

from __future__ import annotations

import random

import pytest

from millbeck.kernel.environment import OpenMode
from millbeck.kernel.ids import TopicPartition
from millbeck.records import batch as batches
from millbeck.records.record import Record
from millbeck.simulation.environment.disk import SimDisk
from millbeck.simulation.environment.inode import Inode
from millbeck.storage.config import LogConfig
from millbeck.storage.directory import LogDirectory
from millbeck.storage.file_cache import FileCache
from millbeck.storage.index_cache import IndexCache
from millbeck.storage.log import Log
from millbeck.storage.repair import RepairFailed, cut, find_damage

KEY, OTHER = TopicPartition("t", 0), TopicPartition("other", 0)
BATCHES = 12
PER_SEGMENT = 4
TOPIC_ID = bytes(range(16))


class Stopped:
    """A log of three segments with two records in each batch, in the directory of a node that is stopped."""

    def __init__(self, *, unflushed: int = 0) -> None:
        self.disk = SimDisk(random.Random(1))
        self.files = self.disk.mount()
        self.batch = batches.build([Record(-1, 0, None, b"x" * 40), Record(-1, 0, None, b"y" * 40)])
        self.config = LogConfig.of(internal_segment_bytes=str(PER_SEGMENT * len(self.batch)))
        directory = self.open()
        for key in (KEY, OTHER):
            log = directory.create_log(key, TOPIC_ID, self.config, now_ms=0)
            for _ in range(BATCHES):
                log.stage(self.batch, leader_epoch=1, now_ms=0)
                log.write_staged()
            log.flush()
        if unflushed:
            directory.checkpoint_job()()
            for _ in range(unflushed):
                directory.logs[KEY].stage(self.batch, leader_epoch=1, now_ms=0)
                directory.logs[KEY].write_staged()
            directory.abandon()
        else:
            assert directory.close(broker_epoch=5)

    def open(self) -> LogDirectory:
        return LogDirectory(
            self.files,
            "/data",
            cache=FileCache(self.files, 100),
            index_cache=IndexCache(),
            jitter_below=lambda _: 0,
            on_failure=lambda reason: None,
        )

    def opened(self, key: TopicPartition) -> Log:
        """As a node opens it when it starts."""
        return self.open().open_log(key, TOPIC_ID, self.config, now_ms=0)

    def path(self, number: int) -> str:
        """Of the segment with this batch."""
        return f"/data/t-0/{number // PER_SEGMENT * PER_SEGMENT * 2:020d}.log"

    def rot(self, number: int, byte: int = 70) -> None:
        """A bit of this batch goes bad: of its records, or of its header's first bytes."""
        inode = self.disk.find(self.path(number))
        assert isinstance(inode, Inode)
        inode.rot(8 * (number % PER_SEGMENT * len(self.batch) + byte))

    def content(self, path: str) -> bytes:
        inode = self.disk.find(path)
        assert isinstance(inode, Inode)
        return bytes(inode.content)


def test_a_sound_log_is_not_damaged_and_is_left_alone() -> None:
    stopped = Stopped()
    before = stopped.disk.find_directory("/data").entries.keys()
    assert find_damage(stopped.files, "/data", KEY) is None
    assert stopped.disk.find_directory("/data").entries.keys() == before


def test_what_goes_is_told_and_nothing_is_changed_by_asking() -> None:
    stopped = Stopped()
    stopped.rot(5)
    before = stopped.content(stopped.path(5))
    damage = find_damage(stopped.files, "/data", KEY)
    assert damage is not None
    size = len(stopped.batch)
    assert (damage.path, damage.position, damage.first_offset, damage.end_offset) == (stopped.path(5), size, 10, 24)
    assert (damage.record_count, damage.is_exact, damage.size_bytes) == (14, True, 7 * size)
    assert damage.later == (stopped.path(8),)
    assert damage.kept_in == ("/data/t-0/00000000000000000010.log.cut", f"{stopped.path(8)}.cut")
    assert stopped.content(stopped.path(5)) == before
    assert stopped.files.exists("/data/.kafka_cleanshutdown")
    assert find_damage(stopped.files, "/data", OTHER) is None


def test_records_behind_an_unreadable_header_cannot_all_be_counted() -> None:
    stopped = Stopped()
    stopped.rot(5, byte=16)  # The magic byte.
    damage = find_damage(stopped.files, "/data", KEY)
    assert damage is not None
    assert (damage.first_offset, damage.end_offset, damage.record_count, damage.is_exact) == (10, 24, 8, False)


@pytest.mark.parametrize("number", [0, 5, 8, 11])
def test_a_cut_keeps_every_byte_and_the_log_goes_on_from_there(number: int) -> None:
    stopped = Stopped()
    whole = b"".join(stopped.content(stopped.path(each)) for each in (0, 4, 8))
    stopped.rot(number)
    damaged = b"".join(stopped.content(stopped.path(each)) for each in (0, 4, 8))
    damage = find_damage(stopped.files, "/data", KEY)
    assert damage is not None
    assert cut(stopped.files, "/data", KEY, damage, now_ms=0) == 2 * number
    kept = b"".join(stopped.content(path) for path in damage.kept_in)
    assert whole[: number * len(stopped.batch)] + kept == damaged
    assert find_damage(stopped.files, "/data", KEY) is None
    log = stopped.opened(KEY)
    assert (log.log_start_offset, log.end_offset, log.is_offline) == (0, 2 * number, False)
    assert log.stage(stopped.batch, leader_epoch=2, now_ms=0).first_offset == 2 * number
    log.write_staged()
    assert b"".join(stopped.content(path) for path in damage.kept_in) == kept


def test_indexes_and_checkpoints_claim_nothing_of_what_went() -> None:
    stopped = Stopped()
    stopped.rot(5)
    damage = find_damage(stopped.files, "/data", KEY)
    assert damage is not None
    cut(stopped.files, "/data", KEY, damage, now_ms=0)
    names = stopped.files.names("/data/t-0")
    assert [name for name in names if name.startswith(f"{16:020d}")] == [f"{16:020d}.log.cut"]
    assert {f"{8:020d}.index", f"{8:020d}.timeindex", f"{10:020d}.snapshot"} <= set(names)
    checkpoint = stopped.content("/data/recovery-point-offset-checkpoint").decode()
    assert "t 0 8\n" in checkpoint
    assert "other 0 24\n" in checkpoint


def test_the_next_start_registers_as_after_a_crash() -> None:
    """Another replica that has what was cut must be elected, and a clean stop promises that nothing is missing."""
    stopped = Stopped()
    stopped.rot(5)
    damage = find_damage(stopped.files, "/data", KEY)
    assert damage is not None
    cut(stopped.files, "/data", KEY, damage, now_ms=0)
    directory = stopped.open()
    assert not directory.had_clean_shutdown
    assert directory.open_log(OTHER, TOPIC_ID, stopped.config, now_ms=0).end_offset == 24


def test_a_torn_end_is_left_to_the_next_start() -> None:
    stopped = Stopped(unflushed=3)
    inode = stopped.disk.find(stopped.path(12))
    assert isinstance(inode, Inode)
    inode.rot(8 * (len(stopped.batch) + 70))
    assert find_damage(stopped.files, "/data", KEY) is None
    assert stopped.opened(KEY).end_offset == 26


def test_what_an_earlier_repair_kept_is_not_overwritten() -> None:
    stopped = Stopped()
    stopped.rot(5)
    damage = find_damage(stopped.files, "/data", KEY)
    assert damage is not None
    stopped.files.open(damage.kept_in[0], mode=OpenMode.WRITE).close()
    with pytest.raises(RepairFailed, match="move it away first"):
        cut(stopped.files, "/data", KEY, damage, now_ms=0)
    assert stopped.files.exists("/data/.kafka_cleanshutdown")


def test_an_interrupted_repair_is_run_again() -> None:
    """Whatever step it stops at, no byte is lost and a second run finishes the work."""
    for count in range(1, 40):
        stopped = Stopped()
        stopped.rot(5)
        damaged = b"".join(stopped.content(stopped.path(each)) for each in (0, 4, 8))
        damage = find_damage(stopped.files, "/data", KEY)
        assert damage is not None
        stopping = StoppingFiles(stopped.files, count)
        try:
            cut(stopping, "/data", KEY, damage, now_ms=0)  # type: ignore[arg-type]
        except Interrupted:
            pass
        else:
            assert count > 10, "there are more steps than that"
            return
        again = find_damage(stopped.files, "/data", KEY)
        if again is not None:
            if stopped.files.exists(damage.kept_in[0]):
                stopped.files.unlink(damage.kept_in[0])  # What its message asks for.
            cut(stopped.files, "/data", KEY, again, now_ms=0)
        kept = b"".join(stopped.content(path) for path in damage.kept_in)
        assert damaged[: 5 * len(stopped.batch)] + kept == damaged
        assert stopped.opened(KEY).end_offset == 10
    raise AssertionError("the repair never came to its end")


class Interrupted(Exception):
    """The process ended."""


class StoppingFiles:
    """Files that end the process at a call that changes something."""

    def __init__(self, files: object, count: int) -> None:
        self._files = files
        self._left = count

    def __getattr__(self, name: str) -> object:
        if name in ("rename", "unlink", "open", "sync_directory"):
            self._left -= 1
            if self._left == 0:
                raise Interrupted(name)
        return getattr(self._files, name)
