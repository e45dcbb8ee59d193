"""A log directory: its lock, its marker, its checkpoints, and the logs that come and go."""

from __future__ import annotations

import random
from typing import Any

import pytest

from millbeck.kernel.errors import KafkaStorageError
from millbeck.kernel.ids import TopicPartition
from millbeck.records import batch as batches
from millbeck.records.record import Record
from millbeck.simulation.environment.disk import SimDisk
from millbeck.simulation.environment.disk_faults import DiskCall
from millbeck.simulation.environment.files import SimFiles
from millbeck.simulation.environment.inode import Inode
from millbeck.storage import checkpoints
from millbeck.storage.atomic_file import read_file, write_file
from millbeck.storage.checkpoints import LOG_START_OFFSETS, RECOVERY_POINTS, read_offsets
from millbeck.storage.config import LogConfig
from millbeck.storage.directory import DirectoryLocked, LogDirectory
from millbeck.storage.file_cache import FileCache
from millbeck.storage.index_cache import IndexCache
from millbeck.storage.properties import MetaProperties, write_meta_properties
from millbeck.storage.segment import CorruptSegment

KEY = TopicPartition("topic", 0)
OTHER = TopicPartition("other", 3)


def test_only_one_process_uses_a_directory(world: Any) -> None:
    with pytest.raises(DirectoryLocked):
        world.open_directory()
    world.directory.close()
    assert world.open_directory().path == "/data"


def test_it_says_whose_it_is(world: Any) -> None:
    assert world.directory.meta is None
    meta = MetaProperties(cluster_id="c", node_id=1, directory_id=bytes(16))
    write_meta_properties(world.files, "/data", meta)
    world.directory.close()
    assert world.open_directory().meta == meta


def test_the_marker_of_a_clean_stop_is_kafkas_and_used_once(world: Any) -> None:
    assert not world.directory.had_clean_shutdown
    assert world.directory.close(broker_epoch=42)
    assert read_file(world.files, "/data/.kafka_cleanshutdown", 100) == b'{"version":0,"brokerEpoch":42}'
    world.disk.unmount(world.files)
    world.directory = world.open_directory()
    assert (world.directory.had_clean_shutdown, world.directory.previous_broker_epoch) == (True, 42)
    world.disk.power_loss(0.0)
    world.directory = world.open_directory()
    assert (world.directory.had_clean_shutdown, world.directory.previous_broker_epoch) == (False, -1)


def test_a_marker_without_an_epoch_is_still_a_marker(world: Any) -> None:
    world.directory.close()
    write_file(world.files, "/data/.kafka_cleanshutdown", b"", sync=True)
    world.directory = world.open_directory()
    assert (world.directory.had_clean_shutdown, world.directory.previous_broker_epoch) == (True, -1)


def test_there_is_no_marker_when_a_log_could_not_be_closed_cleanly(world: Any) -> None:
    world.append()
    world.directory.create_log(OTHER, bytes(16), world.config, now_ms=0)
    world.log.mark_offline("of a test")
    assert not world.directory.close()
    world.disk.unmount(world.files)
    assert not world.open_directory().had_clean_shutdown


def test_a_sync_that_fails_on_the_way_out_leaves_no_marker(world: Any) -> None:
    world.append()
    world.disk.fail_next(DiskCall.SYNC, path_part=".log")
    assert not world.directory.close()
    world.disk.unmount(world.files)
    assert not world.open_directory().had_clean_shutdown


def test_logs_are_listed_with_their_topics(world: Any) -> None:
    world.append()
    world.directory.create_log(OTHER, b"x" * 16, world.config, now_ms=0)
    for name in ("lost+found", "topic-1.0123-future"):
        world.files.make_directory(f"/data/{name}")
    assert world.directory.partitions() == [(OTHER, b"x" * 16), (KEY, bytes(range(16)))]


def test_a_topic_cannot_name_a_directory_elsewhere(world: Any) -> None:
    with pytest.raises(ValueError, match="not a valid directory name"):
        world.directory.create_log(TopicPartition("../x", 0), bytes(16), world.config, now_ms=0)


def test_a_deleted_log_is_renamed_and_removed_by_the_job(world: Any) -> None:
    world.configure(file_delete_delay_ms="777")
    world.append()
    found = world.log.read(0, size_bytes_max=1000, upto_offset=1)
    removal = world.directory.delete_log(KEY, b"u" * 16)
    assert removal.delay_ms == 777
    assert removal.path == f"/data/topic-0.{(b'u' * 16).hex()}-delete"
    assert world.directory.partitions() == []
    with pytest.raises(KafkaStorageError, match="deleted"):
        world.append()
    assert len(world.content(found)) == len(world.batch())
    removal.run()
    removal.run()
    assert not world.files.exists(removal.path)


def test_a_flush_that_outlives_its_log_harms_nobody(world: Any) -> None:
    world.append_many(20)
    job = world.log.flush_job()
    deleted = world.log
    world.directory.delete_log(KEY, b"u" * 16)
    world._log = None
    other = world.directory.create_log(KEY, b"y" * 16, world.config, now_ms=0)
    deleted.finish_flush(job, job.run())
    assert world.directory.partitions() == [(KEY, b"y" * 16)]
    assert world.names() == ["00000000000000000000.log", "partition.metadata"]
    assert world.failures == []
    assert not other.is_offline


def test_a_flush_of_a_log_that_is_gone_is_no_failure(world: Any) -> None:
    world.append()
    job = world.log.flush_job()
    removal = world.directory.delete_log(KEY, b"u" * 16)
    removal.run()
    world.log.finish_flush(job, job.run())
    assert world.failures == []
    assert world.directory.offline_reason is None


def test_deleted_logs_that_were_not_removed_are_found_again(world: Any) -> None:
    world.append()
    removal = world.directory.delete_log(KEY, b"u" * 16)
    world.directory.close()
    world.disk.unmount(world.files)
    world.directory = world.open_directory()
    assert [(left.path, left.delay_ms) for left in world.directory.leftovers()] == [(removal.path, 0)]


def test_a_stray_log_is_kept_under_another_name(world: Any) -> None:
    world.append()
    path = world.directory.mark_as_stray(KEY, b"u" * 16)
    assert path.endswith("-stray")
    assert world.files.is_directory(path)
    assert world.directory.partitions() == []


def test_a_log_does_not_inherit_the_checkpoints_of_its_predecessor(world: Any) -> None:
    world.append_many(20)
    world.log.delete_records(15)
    world.log.flush()
    world.directory.checkpoint_job()()
    world.directory.delete_log(KEY, b"u" * 16)
    world._log = None
    world.append_many(2)
    log = world.kill_and_reopen()
    assert not log.is_offline
    assert (log.log_start_offset, log.end_offset) == (0, 2)


def test_a_new_log_is_durable_with_its_first_flush(world: Any) -> None:
    world.append()
    world.log.flush()
    world.disk.power_loss(0.0)
    world.directory = world.open_directory()
    assert world.directory.partitions() == [(KEY, bytes(range(16)))]


def test_checkpoints_say_what_is_true_of_every_log(world: Any) -> None:
    world.append_many(5)
    world.log.flush()
    world.append()
    world.log.delete_records(2)
    world.directory.create_log(OTHER, bytes(16), world.config, now_ms=0)
    world.directory.checkpoint_job()()
    assert read_file(world.files, "/data/recovery-point-offset-checkpoint", 100) == b"0\n2\ntopic 0 5\nother 3 0\n"
    assert read_file(world.files, "/data/log-start-offset-checkpoint", 100) == b"0\n1\ntopic 0 2\n"


def test_high_watermarks_are_kept(world: Any) -> None:
    assert world.directory.read_high_watermarks() == {}
    world.directory.write_high_watermarks({KEY: 7})
    assert world.directory.read_high_watermarks() == {KEY: 7}
    write_file(world.files, "/data/replication-offset-checkpoint", b"damage", sync=True)
    assert world.directory.read_high_watermarks() == {}


def test_with_damaged_checkpoints_every_log_is_verified(world: Any) -> None:
    world.append_many(3)
    world.directory.close()
    write_file(world.files, "/data/recovery-point-offset-checkpoint", b"damage", sync=True)
    log = world.kill_and_reopen()
    assert not world.directory.had_clean_shutdown
    assert (log.end_offset, log.flushed_offset) == (3, 0)


def test_a_failure_takes_every_log_of_the_directory_offline(world: Any) -> None:
    other = world.directory.create_log(OTHER, bytes(16), world.config, now_ms=0)
    world.append()
    world.disk.fail_next(DiskCall.SYNC, path_part="topic-0")
    with pytest.raises(KafkaStorageError):
        world.log.flush()
    assert other.is_offline
    with pytest.raises(KafkaStorageError, match="is offline"):
        world.directory.create_log(TopicPartition("third", 0), bytes(16), world.config, now_ms=0)
    with pytest.raises(KafkaStorageError):
        world.directory.checkpoint_job()
    assert len(world.failures) == 1


def test_leftover_temporary_files_are_removed(world: Any) -> None:
    write_file(world.files, "/data/recovery-point-offset-checkpoint.tmp", b"half", sync=True)
    world.directory.close()
    world.disk.unmount(world.files)
    world.directory = world.open_directory()
    assert not world.files.exists("/data/recovery-point-offset-checkpoint.tmp")


def test_checkpoints_keep_what_they_say_of_logs_that_are_still_to_be_opened(world: Any) -> None:
    world.append_many(6)
    world.log.flush()
    world.log.delete_records(4)
    world.directory.checkpoint_job()()
    world.disk.unmount(world.files)
    world.directory = world.open_directory()
    world.directory.create_log(OTHER, bytes(16), world.config, now_ms=world.clock_ms)
    world.directory.checkpoint_job()()
    assert read_offsets(world.files, "/data", RECOVERY_POINTS)[KEY] == 6
    assert read_offsets(world.files, "/data", LOG_START_OFFSETS)[KEY] == 4
    world.directory.all_opened()
    world.directory.checkpoint_job()()
    assert KEY not in read_offsets(world.files, "/data", RECOVERY_POINTS)
    assert KEY not in read_offsets(world.files, "/data", LOG_START_OFFSETS)


# Logs that move in, and logs that are mended.

TOPIC_ID = bytes(range(16))
CONFIG = LogConfig.of()


def open_directory(files: SimFiles) -> LogDirectory:
    return LogDirectory(
        files,
        "/data",
        cache=FileCache(files, 100),
        index_cache=IndexCache(),
        jitter_below=lambda _: 0,
        on_failure=lambda reason: None,
    )


def one_batch() -> bytes:
    return batches.build([Record(-1, 0, None, b"x" * 40)])


def test_a_future_log_becomes_the_log_and_keeps_its_open_files() -> None:
    disk = SimDisk(random.Random(1))
    files = disk.mount()
    directory = open_directory(files)
    future = directory.create_future_log(KEY, TOPIC_ID, CONFIG, now_ms=0, start_offset=3, unique=bytes(range(16)))
    assert "-future" in future.directory
    assert directory.logs == {}
    future.stage(one_batch(), leader_epoch=1, now_ms=0)
    future.write_staged()
    future.flush()
    directory.replace_current_with_future(future)
    assert (directory.logs, directory.futures) == ({KEY: future}, {})
    future.stage(one_batch(), leader_epoch=1, now_ms=0)
    future.write_staged()
    future.flush()
    directory.close()
    again = open_directory(disk.mount())
    log = again.open_log(KEY, TOPIC_ID, CONFIG, now_ms=0)
    assert (log.log_start_offset, log.end_offset) == (3, 5)


def test_a_future_log_that_is_dropped_or_left_is_removed() -> None:
    disk = SimDisk(random.Random(1))
    directory = open_directory(disk.mount())
    arguments: dict[str, Any] = {"now_ms": 0, "start_offset": 0}
    dropped = directory.create_future_log(KEY, TOPIC_ID, CONFIG, unique=bytes(16), **arguments)
    directory.delete_future_log(dropped).run()
    assert directory.futures == {}
    directory.create_future_log(KEY, TOPIC_ID, CONFIG, unique=bytes(range(16)), **arguments)
    directory.close()
    again = open_directory(disk.mount())
    assert again.partitions() == []
    assert [key for key, _ in again.interrupted_moves()] == [KEY]
    (leftover,) = again.leftovers()
    leftover.run()
    assert again.interrupted_moves() == []
    assert not any(name.endswith("-future") for name in disk.find_directory("/data").entries)


def test_a_damaged_log_is_cut_before_its_first_bad_batch() -> None:
    disk = SimDisk(random.Random(1))
    directory = open_directory(disk.mount())
    log = directory.create_log(KEY, TOPIC_ID, CONFIG, now_ms=0)
    for _ in range(5):
        log.stage(one_batch(), leader_epoch=1, now_ms=0)
        log.write_staged()
    log.flush()
    size = log.size_bytes // 5
    inode = disk.find(log.active.log_path)
    assert isinstance(inode, Inode)
    inode.rot(8 * (3 * size + 70))
    log.mark_corrupt(CorruptSegment(log.active.log_path, 3 * size, "a test"))
    assert (log.damaged_offset, directory.offline_count) == (0, 1)
    while (job := directory.lowering_job(log, log.damaged_offset)) is not None:
        job()
    repaired = directory.finish_repair(log, directory.repair_job(log, now_ms=0).run(), now_ms=0)
    assert (repaired.end_offset, repaired.is_offline, repaired.damaged_offset) == (3, False, -1)
    assert (directory.logs, directory.offline_count) == ({KEY: repaired}, 0)


def test_logs_that_are_cut_together_do_not_wait_for_each_other_for_ever() -> None:
    files = SimDisk(random.Random(1)).mount()
    directory = open_directory(files)
    keys = [TopicPartition("t", index) for index in range(3)]
    logs = [directory.create_log(key, TOPIC_ID, CONFIG, now_ms=0) for key in keys]
    for log in logs:
        for _ in range(5):
            log.stage(one_batch(), leader_epoch=1, now_ms=0)
            log.write_staged()
        log.flush()
    directory.checkpoint_job()()
    jobs = [directory.lowering_job(log, 3) for log in logs]
    for job in jobs:
        assert job is not None
        job()
        # The others' jobs are still on their way, and what everybody asks for now claims no more either.
        directory.checkpoint_job()()
    assert [directory.lowering_job(log, 3) for log in logs] == [None, None, None]
    for log in logs:
        log.cut_to(3)
        log.flush()
    directory.checkpoint_job()()
    assert checkpoints.read_offsets(files, "/data", checkpoints.RECOVERY_POINTS) == dict.fromkeys(keys, 3)
