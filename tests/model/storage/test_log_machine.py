"""The log against a list.

Goal: whatever is appended, rolled, flushed, cut, deleted, refused, killed or lost with the power, the log holds what
the list holds. After a power loss what survives is a prefix of what was written, no shorter than the last flush; after
a kill it is everything. Method: a stateful property on the simulated disk, which forgets what was not synced, tears
writes and fills up. The mutants at the end break one rule each, and the property must notice.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, cast

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from millbeck import compiled
from millbeck.kernel.errors import KafkaStorageError, OffsetOutOfRange
from millbeck.kernel.ids import TopicPartition
from millbeck.records import batch as batches
from millbeck.records import control
from millbeck.records.record import Record
from millbeck.simulation.environment.disk import SimDisk
from millbeck.simulation.environment.disk_faults import DiskCall
from millbeck.storage import rebuild, retention
from millbeck.storage.config import LogConfig
from millbeck.storage.directory import LogDirectory
from millbeck.storage.file_cache import FileCache
from millbeck.storage.flush import FlushJob
from millbeck.storage.index_cache import IndexCache
from millbeck.storage.log import Log
from millbeck.storage.producer_state import AppendOrigin
from millbeck.storage.recovery import Recovery
from millbeck.storage.segment import Segment
from millbeck.storage.staging import Staged
from tests.log_steps import apply_retention, check_indexes, truncate_to

KEY = TopicPartition("topic", 0)
TOPIC_ID = bytes(range(16))
CONFIG = LogConfig.of(
    internal_segment_bytes="1200", index_interval_bytes="150", retention_ms="-1", file_delete_delay_ms="0"
)
IDEMPOTENT = (1, 2)
TRANSACTIONAL = (11, 12)


class Written(NamedTuple):
    first_offset: int
    last_offset: int
    data: bytes
    timestamp: int


class Aborted(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int


class LogMachine(RuleBasedStateMachine):
    """The oracle is ``written``: every batch ever written and not truncated, by first offset."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[Written] = []
        self.ghosts: list[list[bytes]] = []
        """Refused batches whose bytes may still be on the platter."""
        self.log_start = 0
        self.flushed = 0
        self.leader_epoch = 0
        self.clock_ms = 1_000
        self.sequences: dict[int, int] = {}
        self.open: dict[int, int] = {}
        self.aborted: list[Aborted] = []
        self.may_flush = True
        """Whether somebody flushes when the log asks for it; not while a write is made to fail."""

    @initialize(seed=st.integers(0, 2**32))
    def start(self, seed: int) -> None:
        self.disk = SimDisk(random.Random(seed))
        self.directory = self.open_directory()
        self.log = self.directory.create_log(KEY, TOPIC_ID, CONFIG, now_ms=self.clock_ms)

    def open_directory(self) -> LogDirectory:
        files = self.disk.mount()
        directory = LogDirectory(
            files,
            "/data",
            cache=FileCache(files, 2),
            index_cache=IndexCache(256),
            jitter_below=lambda bound: 0,
            on_failure=print,
        )
        directory.on_flush_wanted = self.flush_if_allowed
        return directory

    def flush_if_allowed(self, log: Log) -> None:
        if self.may_flush:
            log.flush()
            self.flushed = log.flushed_offset

    @property
    def end(self) -> int:
        return self.log.end_offset

    def data_batch(self, producer_id: int, records: int, size: int) -> bytes:
        made = [Record(-1, self.clock_ms + index, b"k", bytes([index + 1]) * size, ()) for index in range(records)]
        if producer_id < 0:
            return batches.build(made)
        return batches.build(
            made,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=self.sequences.get(producer_id, 0),
            is_transactional=producer_id in TRANSACTIONAL,
        )

    def expect(self, batch: bytes, first_offset: int) -> Written:
        header = batches.read_header(batch)
        data = batches.prefix(first_offset, header.length, self.leader_epoch) + batch[16:]
        return Written(first_offset, first_offset + header.last_offset_delta, data, header.max_timestamp)

    @rule(
        producers=st.lists(st.sampled_from([-1, *IDEMPOTENT, *TRANSACTIONAL]), min_size=1, max_size=4),
        records=st.integers(1, 4),
        size=st.sampled_from([1, 20, 150]),
        fault=st.sampled_from(["none", "none", "none", "none", "error", "full"]),
    )
    def append(self, producers: list[int], records: int, size: int, fault: str) -> None:
        self.clock_ms += 10
        sequences, opened = dict(self.sequences), dict(self.open)
        staged: list[Staged] = []
        expected: list[Written] = []
        for producer_id in producers:
            batch = self.data_batch(producer_id, records, size)
            first_offset = self.end + sum(one.last_offset - one.first_offset + 1 for one in expected)
            staged.append(self.log.stage(batch, leader_epoch=self.leader_epoch, now_ms=self.clock_ms))
            expected.append(self.expect(batch, first_offset))
            if producer_id >= 0:
                self.sequences[producer_id] = self.sequences.get(producer_id, 0) + records
            if producer_id in TRANSACTIONAL:
                self.open.setdefault(producer_id, first_offset)
        assert [(one.first_offset, one.last_offset) for one in staged] == [one[:2] for one in expected]
        if not self.write(expected, fault):
            self.sequences, self.open = sequences, opened

    @rule(producer_id=st.sampled_from(TRANSACTIONAL), committed=st.booleans())
    def end_transaction(self, producer_id: int, committed: bool) -> None:
        self.clock_ms += 10
        marker = control.EndTransaction(committed=committed, coordinator_epoch=0)
        batch = control.marker_batch(marker, producer_id=producer_id, producer_epoch=0, timestamp=self.clock_ms)
        staged = self.log.stage(
            batch, leader_epoch=self.leader_epoch, now_ms=self.clock_ms, origin=AppendOrigin.COORDINATOR
        )
        assert self.write([self.expect(batch, self.end)], "none")
        first_offset = self.open.pop(producer_id, None)
        if first_offset is not None and not committed:
            self.aborted.append(Aborted(producer_id, first_offset, staged.first_offset))

    def write(self, expected: list[Written], fault: str) -> bool:
        """Write what is staged; whether it is in the log afterwards."""
        before = (self.log.end_offset, self.log.size_bytes)
        if fault != "none" and self.log.must_settle:
            # It would be refused before it meets the fault.
            self.flush_if_allowed(self.log)
        self.may_flush = fault == "none"
        if fault == "error":
            self.disk.fail_next(DiskCall.WRITE, path_part=".log")
        elif fault == "full":
            self.disk.faults.capacity_bytes = 0
        try:
            if fault == "none":
                self.log.write_staged()
            else:
                with pytest.raises(KafkaStorageError):
                    self.log.write_staged()
                assert (self.log.end_offset, self.log.size_bytes) == before
                assert self.log.active.handle.get().size() == self.log.active.size
                self.ghosts.append([one.data for one in expected])
                return False
        finally:
            self.disk.faults.capacity_bytes = 1 << 40
            self.may_flush = True
        self.ghosts = []
        self.written += expected
        return True

    @rule(index=st.integers(0, 4), producer_id=st.sampled_from(IDEMPOTENT))
    def repeat_a_batch(self, index: int, producer_id: int) -> None:
        entry = self.log.producers.producers.get(producer_id)
        if entry is None or len(entry.batches) <= index:
            return
        last_sequence, last_offset, delta, timestamp = entry.batches[index]
        original = next(one for one in self.written if one.last_offset == last_offset)
        staged = self.log.stage(original.data, leader_epoch=self.leader_epoch, now_ms=self.clock_ms)
        assert staged.is_duplicate
        assert (staged.first_offset, staged.last_offset, staged.append_time_ms) == (
            last_offset - delta,
            last_offset,
            timestamp,
        )
        assert last_sequence == batches.read_header(original.data).last_sequence

    @rule()
    def roll(self) -> None:
        self.log.roll(self.clock_ms)

    @rule(writes_between=st.booleans())
    def flush(self, writes_between: bool) -> None:
        target = self.end
        if self.log.must_settle:
            # The first job is for the cut alone.
            cut = self.log.flush_job()
            assert cut is not None
            self.log.finish_flush(cut, cut.run())
            assert not self.log.must_settle
        job = self.log.flush_job()
        if job is None:
            assert self.log.flushed_offset == self.end
            return
        if writes_between:
            self.append([-1], 1, 20, "none")
        self.log.finish_flush(job, job.run())
        assert self.log.flushed_offset >= target
        self.flushed = self.log.flushed_offset

    @rule()
    def checkpoint(self) -> None:
        self.directory.checkpoint_job()()

    @precondition(lambda self: self.end > self.log_start)
    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.log_start, self.end))
        self.log_start = self.log.delete_records(offset)
        assert self.log_start == offset

    @rule(size_bytes=st.integers(0, 3000))
    def apply_retention(self, size_bytes: int) -> None:
        self.log.update_config(CONFIG.replace(retention_bytes=size_bytes))
        for removal in apply_retention(self.log, self.clock_ms):
            removal.run()
        assert self.log.segments[0].base_offset <= self.log.flushed_offset
        self.flushed = max(self.flushed, self.log.flushed_offset)
        self.log.update_config(CONFIG)
        assert self.log.log_start_offset >= self.log_start
        self.log_start = self.log.log_start_offset

    @rule(size_bytes=st.integers(0, 3000), is_flushed=st.booleans())
    def detach_old_segments(self, size_bytes: int, is_flushed: bool) -> None:
        """The first steps of retention; anything may come before the last, `rename_detached`."""
        self.log.update_config(CONFIG.replace(retention_bytes=size_bytes))
        offset = self.log.retention_target(self.clock_ms, self.end)
        if is_flushed and retention.needs_flush_before(self.log, offset):
            self.log.flush()
            self.flushed = self.log.flushed_offset
        if retention.detach(self.log, offset):
            job = self.log.raising_job()
            if job is not None:
                job()
        self.log.update_config(CONFIG)
        self.log_start = self.log.log_start_offset

    @rule()
    def rename_detached(self) -> None:
        for removal in retention.rename_detached(self.log):
            removal.run()

    @precondition(lambda self: self.written)
    @rule(data=st.data(), is_mid_batch=st.booleans(), is_synced=st.booleans())
    def truncate(self, data: st.DataObject, is_mid_batch: bool, is_synced: bool) -> None:
        kept = data.draw(st.integers(0, len(self.written) - 1))
        target = self.written[kept]
        offset = target.last_offset if is_mid_batch else target.first_offset
        if offset < self.log.segments[0].base_offset:
            return
        if is_synced:
            removals = truncate_to(self.log, offset)
        else:
            self.may_flush = False
            while (job := self.log.lowering_job(offset)) is not None:
                job()
            removals = self.log.cut_to(offset)
            self.may_flush = True
        for removal in removals:
            removal.run()
        assert self.end == target.first_offset
        # Until the cut is synced, a power loss may bring back what was cut off.
        gone = [one.data for one in self.written[kept:]]
        self.forget_from(target.first_offset)
        self.ghosts = [] if is_synced else [gone]
        self.leader_epoch += 1
        self.log.assign_epoch(self.leader_epoch, self.end)

    def forget_from(self, end: int) -> None:
        self.written = [one for one in self.written if one.first_offset < end]
        self.log_start = min(self.log_start, end)
        self.flushed = min(self.flushed, end)
        self.ghosts = []
        self.derive_producers()

    def derive_producers(self) -> None:
        """What the batches say about the producers."""
        self.sequences, self.open, self.aborted = {}, {}, []
        for one in self.written:
            header = batches.read_header(one.data)
            if header.producer_id < 0:
                continue
            if header.is_control:
                marker = control.decode(batches.records_of(one.data)[0])
                assert isinstance(marker, control.EndTransaction)
                first_offset = self.open.pop(header.producer_id, None)
                if first_offset is not None and not marker.committed:
                    self.aborted.append(Aborted(header.producer_id, first_offset, one.first_offset))
                continue
            self.sequences[header.producer_id] = header.last_sequence + 1
            if header.is_transactional:
                self.open.setdefault(header.producer_id, one.first_offset)

    @rule()
    def restart_cleanly(self) -> None:
        assert self.directory.close(broker_epoch=7)
        self.disk.unmount(self.directory._files)  # type: ignore[arg-type]
        self.reopen()
        assert self.directory.had_clean_shutdown
        assert self.log.flushed_offset == self.end
        self.flushed = self.end
        self.check_everything_is_there()

    @rule()
    def kill(self) -> None:
        self.disk.unmount(self.directory._files)  # type: ignore[arg-type]
        self.reopen()
        # Recovery has synced what it found: nothing that was cut off comes back any more.
        self.ghosts = []
        self.check_everything_is_there()

    @rule()
    def lose_power(self) -> None:
        self.disk.power_loss()
        self.reopen()
        self.check_survivors()

    def reopen(self) -> None:
        self.directory = self.open_directory()
        found = dict(self.directory.partitions())
        if KEY in found:
            self.log = self.directory.open_log(KEY, TOPIC_ID, CONFIG, now_ms=self.clock_ms)
        else:
            self.log = self.directory.create_log(KEY, TOPIC_ID, CONFIG, now_ms=self.clock_ms)
        assert not self.log.is_offline, self.log.offline_reason

    def check_everything_is_there(self) -> None:
        assert self.end == (self.written[-1].last_offset + 1 if self.written else self.end)
        assert self.log.log_start_offset <= self.log_start
        self.log_start = self.log.log_start_offset
        self.check_batches()

    def check_survivors(self) -> None:
        """A prefix, no shorter than the last flush; a refused batch may stand right after everything else."""
        assert self.end >= self.flushed
        if self.log.log_start_offset > max(self.log_start, self.flushed):
            # Before its first flush a log may lose the name of its first file and keep that of a later one.
            assert self.flushed <= self.log_start
        last = self.written[-1].last_offset if self.written else self.log_start - 1
        extra = [data for first_offset, data in self.stored_batches() if first_offset > last]
        if extra:
            assert extra in [ghost[: len(extra)] for ghost in self.ghosts]
            for data in extra:
                header = batches.read_header(data)
                self.written.append(Written(header.base_offset, header.last_offset, data, header.max_timestamp))
        start_before = self.log_start
        self.forget_from(self.end)
        # What retention has removed may come back in part; nobody may rely on it.
        self.log_start = self.log.delete_records(min(max(start_before, self.log.log_start_offset), self.end))
        if self.flushed < self.end and not self.stored_batches():
            # Nothing of it was durable but its start, where the log has started over: perhaps amid a lost batch.
            self.written = []
            self.derive_producers()
        self.check_batches()

    def stored_batches(self) -> list[tuple[int, bytes]]:
        stored = []
        for segment in self.log.segments:
            for position, header in segment.headers():
                stored.append((header.base_offset, bytes(segment.read_bytes(header.size_bytes, position))))
        return stored

    def check_batches(self) -> None:
        stored = self.stored_batches()
        known = {one.first_offset: one.data for one in self.written}
        assert all(known.get(first_offset) == data for first_offset, data in stored)
        first = self.log.segments[0].base_offset
        visible = [one.first_offset for one in self.written if one.last_offset >= max(first, self.log_start)]
        there = [first_offset for first_offset, _ in stored]
        assert [offset for offset in there if offset in visible] == visible

    @rule(data=st.data(), size=st.sampled_from([0, 1, 100, 400, 10_000]), at_least_one=st.booleans())
    def read(self, data: st.DataObject, size: int, at_least_one: bool) -> None:
        offset = data.draw(st.integers(0, self.end + 1))
        boundaries = [one.last_offset + 1 for one in self.written] or [self.end]
        upto = data.draw(st.sampled_from([self.end, *boundaries[-6:]]))
        if not self.log_start <= offset <= self.end:
            with pytest.raises(OffsetOutOfRange):
                self.log.read(offset, size_bytes_max=size, upto_offset=upto)
            return
        found = self.log.read(offset, size_bytes_max=size, upto_offset=upto, at_least_one=at_least_one)
        fitting = [one for one in self.written if one.last_offset >= offset and one.last_offset < upto]
        if not fitting or (not at_least_one and len(fitting[0].data) > size):
            assert found is None
            return
        assert found is not None
        content = found.file.read(found.size, found.position)
        found.release()
        assert found.size <= max(size, len(fitting[0].data) if at_least_one else 0)
        whole = b"".join(one.data for one in fitting)
        assert content
        assert whole.startswith(content)
        last = [batch.header.last_offset for batch in batches.split(content)][-1]
        assert last < found.upper_offset <= upto

    @rule(data=st.data())
    def find_by_time(self, data: st.DataObject) -> None:
        timestamp = data.draw(st.integers(1_000, self.clock_ms + 10))
        expected = None
        for one in self.written:
            if one.last_offset < self.log_start or expected is not None:
                continue
            for record in batches.records_of(one.data):
                if record.timestamp >= timestamp and record.offset >= self.log_start:
                    expected = (record.timestamp, record.offset)
                    break
        found = self.log.offset_for_timestamp(timestamp)
        assert (found and found[:2]) == expected

    @invariant()
    def agrees_with_the_list(self) -> None:
        if not hasattr(self, "log"):
            return
        log = self.log
        if self.written:
            assert log.end_offset == self.written[-1].last_offset + 1
        assert log.log_start_offset == self.log_start
        assert log.flushed_offset <= log.end_offset
        first_open = min(self.open.values(), default=log.end_offset)
        assert log.last_stable_offset(log.end_offset) == first_open
        found = [Aborted(*entry[:3]) for entry in log.aborted_transactions(log.log_start_offset, log.end_offset)]
        assert found == [one for one in self.aborted if one.last_offset >= log.log_start_offset]
        for producer_id, sequence in self.sequences.items():
            entry = log.producers.producers[producer_id]
            assert entry.last_sequence == sequence - 1

    @invariant()
    def indexes_point_to_batches(self) -> None:
        if hasattr(self, "log"):
            check_indexes(self.log)

    @invariant()
    def files_stay_within_the_limit(self) -> None:
        if hasattr(self, "log"):
            assert self.log.environment.cache.open_count <= 2

    @invariant()
    def producers_follow_from_the_batches(self) -> None:
        """Rebuilding from the newest snapshot gives what is live, except that the window of batches may be shorter."""
        if not hasattr(self, "log"):
            return
        log = self.log
        rebuilt = rebuild.load_producers(
            log.segments,
            log.durability.snapshot_offsets,
            partial(log.durability.read_snapshot, log),
            log.end_offset,
            log.end_offset,
        )
        assert rebuilt.open_transactions == log.producers.open_transactions
        for producer_id, entry in rebuilt.producers.items():
            live = log.producers.producers[producer_id]
            # A snapshot keeps one timestamp per producer, which a marker may have set.
            traces = [trace[:3] for trace in entry.batches]
            assert traces == [trace[:3] for trace in live.batches[len(live.batches) - len(traces) :]]
            assert entry.transaction_first_offset == live.transaction_first_offset
            assert entry.coordinator_epoch == live.coordinator_epoch


FAST = settings(
    max_examples=150,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestLogMachine = LogMachine.TestCase
TestLogMachine.settings = FAST


def _skip_the_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Log, "cut_active", lambda self, size: None)


def _skip_directory_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    run = FlushJob.run

    def without_directories(self: FlushJob) -> object:
        self.directories.clear()
        return run(self)

    monkeypatch.setattr(FlushJob, "run", without_directories)


def _skip_file_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    run = FlushJob.run

    def without_files(self: FlushJob) -> object:
        self.syncs.clear()
        return run(self)

    monkeypatch.setattr(FlushJob, "run", without_files)


def _keep_what_follows_a_bad_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Recovery, "_drop_from", lambda self, index: None)


def _trust_the_tail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Recovery, "_check_offsets", lambda self, segment, header: None)
    monkeypatch.setattr(Recovery, "_continues", lambda self, offset, beyond: True)
    monkeypatch.setattr(Recovery, "_check_gap", lambda self, header, following: None)


def _do_not_settle(monkeypatch: pytest.MonkeyPatch) -> None:
    def forget(self: Log, size: int) -> None:
        self.must_settle = False

    monkeypatch.setattr(Log, "_check_settled", forget)


def _leave_the_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LogDirectory, "lowering_job", lambda self, log, offset: None)


def _forget_the_transaction_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Segment, "add_aborted", lambda self, entry: None)


def _keep_staged_after_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    discard = Log.discard_staged

    def keep_producers(self: Log) -> None:
        self.producer_state.commit()
        discard(self)

    monkeypatch.setattr(Log, "discard_staged", keep_producers)


MUTANTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "a failed write is not cut off": _skip_the_cut,
    "a flush does not sync the directory": _skip_directory_syncs,
    "a flush does not sync the files": _skip_file_syncs,
    "recovery keeps segments after a bad batch": _keep_what_follows_a_bad_batch,
    "aborted transactions are not indexed": _forget_the_transaction_index,
    "a refused batch stays in the producer state": _keep_staged_after_failure,
}


def _write_after_a_refused_write(seed: int) -> None:
    """The refused batches are as large as the next ones, so their bytes fit exactly where those stand."""
    machine = LogMachine()
    machine.start(seed)
    machine.append([-1], 1, 20, "none")
    machine.flush(False)
    machine.append([-1] * 4, 1, 20, "error")
    for _ in range(3):
        machine.append([-1], 1, 20, "none")
    machine.lose_power()


def _write_after_truncating(seed: int) -> None:
    """The checkpoint on disk knows more records than the log has after it was cut."""
    machine = LogMachine()
    machine.start(seed)
    machine.append([-1], 4, 20, "none")
    machine.append([-1], 4, 20, "none")
    machine.flush(False)
    machine.checkpoint()
    truncate_to(machine.log, 4)
    machine.forget_from(4)
    machine.append([-1], 1, 150, "none")
    machine.append([-1], 1, 150, "none")
    machine.lose_power()


def _lose_the_end_of_a_sealed_segment(seed: int) -> None:
    """Its last writes may be lost at a batch boundary while the next segment's survive."""
    machine = LogMachine()
    machine.start(seed)
    machine.append([-1], 1, 20, "none")
    machine.flush(False)
    for _ in range(3):
        machine.append([-1], 1, 20, "none")
    machine.roll()
    machine.append([-1], 1, 20, "none")
    machine.lose_power()


SCENARIOS: dict[str, tuple[Callable[[int], None], Callable[[pytest.MonkeyPatch], None]]] = {
    "a failed write is not settled before the next": (_write_after_a_refused_write, _do_not_settle),
    "truncation leaves the checkpoints": (_write_after_truncating, _leave_the_checkpoints),
    "recovery ignores the order of offsets": (_lose_the_end_of_a_sealed_segment, _trust_the_tail),
}


@pytest.mark.skipif(compiled.in_use(), reason="a compiled class keeps its methods")
@pytest.mark.parametrize(("scenario", "mutate"), SCENARIOS.values(), ids=SCENARIOS.keys())
def test_a_scenario_holds_and_notices_its_mutant(
    scenario: Callable[[int], None],
    mutate: Callable[[pytest.MonkeyPatch], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def run_seeds() -> None:
        for seed in range(150):
            scenario(seed)

    run_seeds()
    mutate(monkeypatch)
    with pytest.raises(AssertionError):
        run_seeds()


@pytest.mark.skipif(compiled.in_use(), reason="a compiled class keeps its methods")
@pytest.mark.parametrize("mutate", MUTANTS.values(), ids=MUTANTS.keys())
def test_the_property_notices(mutate: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    mutate(monkeypatch)
    hunting = settings(FAST, max_examples=2_000, phases=[Phase.generate], derandomize=True, database=None)
    with pytest.raises(Exception):  # noqa: B017
        run_state_machine_as_test(LogMachine, settings=hunting)


class Drawn:
    """Stands in for what hypothesis would draw."""

    def __init__(self, value: int) -> None:
        self._value = value

    def draw(self, strategy: object) -> int:
        return self._value


def check_after_each(machine: LogMachine, steps: list[Callable[[], object]]) -> None:
    for step in steps:
        step()
        machine.agrees_with_the_list()
        machine.indexes_point_to_batches()
        machine.producers_follow_from_the_batches()


def test_a_log_that_comes_to_its_old_end_after_a_cut_is_closed_with_all_it_has() -> None:
    machine = LogMachine()
    machine.start(seed=0)
    check_after_each(
        machine,
        [
            lambda: machine.end_transaction(producer_id=11, committed=False),
            machine.roll,
            lambda: machine.flush(writes_between=True),
            machine.restart_cleanly,
            lambda: machine.truncate(data=cast(st.DataObject, Drawn(1)), is_mid_batch=False, is_synced=False),
            lambda: machine.flush(writes_between=True),
            machine.restart_cleanly,
        ],
    )
    assert machine.end == 2


def test_indexes_that_are_older_than_the_recovery_are_not_found_by_the_next_one() -> None:
    machine = LogMachine()
    machine.start(seed=0)
    check_after_each(
        machine,
        [
            machine.restart_cleanly,
            machine.kill,
            lambda: machine.end_transaction(producer_id=11, committed=False),
            lambda: machine.flush(writes_between=False),
            machine.checkpoint,
            machine.roll,
            machine.kill,
        ],
    )
    assert machine.end == 1
