"""A shadow follows a real log on a simulated disk: growth, cuts, reopening, rot."""

from __future__ import annotations

import random

from millbeck.kernel.ids import TopicPartition
from millbeck.records import batch
from millbeck.records.record import Record
from millbeck.simulation.environment.disk import SimDisk
from millbeck.simulation.observer.lineage import BatchTree
from millbeck.simulation.observer.shadow_log import ShadowLog
from millbeck.storage.config import LogConfig
from millbeck.storage.directory import LogDirectory
from millbeck.storage.file_cache import FileCache
from millbeck.storage.index_cache import IndexCache
from millbeck.storage.log import Log
from tests.log_steps import truncate_to

NOW_MS = 1_700_000_000_000


def make_log(disk: SimDisk) -> Log:
    files = disk.mount()
    files.make_directory("/data")
    directory = LogDirectory(
        files,
        "/data",
        cache=FileCache(files, 10),
        index_cache=IndexCache(),
        jitter_below=lambda bound: 0,
        on_failure=lambda reason: None,
    )
    config = LogConfig.of(internal_segment_bytes="200")
    return directory.create_log(TopicPartition("t", 0), b"\x01" * 16, config, now_ms=NOW_MS)


def append(log: Log, *values: bytes, epoch: int = 0) -> None:
    for value in values:
        log.stage(batch.build([Record(-1, NOW_MS, None, value)]), leader_epoch=epoch, now_ms=NOW_MS)
        log.write_staged()


def test_it_reads_what_is_appended_over_several_segments() -> None:
    disk = SimDisk(random.Random(1))
    log, shadow = make_log(disk), ShadowLog(disk, BatchTree("t-0"))
    assert shadow.begin(log) == []
    append(log, *[b"%d" % number for number in range(9)])
    assert len(log.segments) > 1
    assert [entry.base_offset for entry in shadow.grow(log)] == list(range(9))
    assert shadow.end_offset == 9
    append(log, b"later", epoch=2)
    (entry,) = shadow.grow(log)
    assert (entry.base_offset, entry.next_offset, entry.epoch) == (9, 10, 2)
    assert shadow.upto(10) == entry
    assert [each.base_offset for each in shadow.between(7, 9)] == [7, 8]


def test_a_cut_log_goes_on_elsewhere_and_parts_from_the_others() -> None:
    lineage = BatchTree("t-0")
    disks = [SimDisk(random.Random(number)) for number in range(2)]
    logs = [make_log(disk) for disk in disks]
    shadows = [ShadowLog(disk, lineage) for disk in disks]
    for log, shadow in zip(logs, shadows, strict=True):
        shadow.begin(log)
        append(log, b"a", b"b", b"c")
        shadow.grow(log)
    append(logs[0], b"mine", epoch=1)
    append(logs[1], b"theirs", epoch=2)
    mine, theirs = shadows[0].grow(logs[0]), shadows[1].grow(logs[1])
    assert shadows[0].common_end(shadows[1], shadows[0].entries) == 3
    assert mine[0].place != theirs[0].place
    for entry in shadows[1].entries:
        lineage.commit(entry)
    assert shadows[1].has_committed(4)
    assert not shadows[0].has_committed(4)
    assert shadows[0].has_committed(3)
    truncate_to(logs[0], 3)
    assert [entry.base_offset for entry in shadows[0].cut(logs[0].end_offset)] == [3]
    logs[0].flush()
    append(logs[0], b"theirs", epoch=2)
    shadows[0].grow(logs[0])
    assert shadows[0].has_committed(4)


def test_rot_is_seen_when_it_is_looked_for() -> None:
    disk = SimDisk(random.Random(1))
    log, shadow = make_log(disk), ShadowLog(disk, BatchTree("t-0"))
    shadow.begin(log)
    append(log, b"a", b"b")
    shadow.grow(log)
    assert shadow.is_whole(2)
    disk.rot(log.segments[0].log_path)
    assert not shadow.is_whole(2)


def test_a_log_that_begins_in_the_middle_of_a_file_is_read_on() -> None:
    """All that was known lies before the log's start, in a file that the log goes on in."""
    disk = SimDisk(random.Random(1))
    log, shadow = make_log(disk), ShadowLog(disk, BatchTree("t-0"))
    shadow.begin(log)
    append(log, b"a", b"b")
    shadow.grow(log)
    shadow.starts_at(2)
    append(log, b"c")
    assert [entry.base_offset for entry in shadow.grow(log)] == [2]


def test_rot_of_a_checked_bit_is_damage_and_leaves_the_shadow_its_way_through_the_log() -> None:
    for step in range(200):
        disk = SimDisk(random.Random(1))
        log, shadow = make_log(disk), ShadowLog(disk, BatchTree("t-0"))
        append(log, b"one", b"two", b"three")
        entries = shadow.begin(log)
        spot = shadow.checked_bit(step / 200)
        assert spot is not None
        disk.rot(*spot)
        assert not shadow.is_whole(3)
        assert shadow.begin(log) == entries
