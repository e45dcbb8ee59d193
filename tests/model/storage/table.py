"""A compacted log and all that was ever written to it, for properties that compare the two.

`Table.check` is what must hold at any time (K1 to K4 of the invariants): a reader from the beginning ends with the map
of the uncompacted log, each record stands at its offset as it was written, tombstones stay for their time, markers
while their data does, and what may not be compacted is untouched.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import NamedTuple

from millbeck.kernel.ids import TopicPartition
from millbeck.records import batch as batches
from millbeck.records import control
from millbeck.records.compression import Codec
from millbeck.records.record import Record
from millbeck.simulation.environment.disk import SimDisk
from millbeck.storage.compaction import plan as plans
from millbeck.storage.compaction.compactor import compact
from millbeck.storage.config import LogConfig
from millbeck.storage.directory import LogDirectory
from millbeck.storage.file_cache import FileCache
from millbeck.storage.index_cache import IndexCache
from millbeck.storage.log import Log
from millbeck.storage.producer_state import AppendOrigin
from millbeck.storage.swap import Swap, SwapState
from tests.log_steps import apply_retention, check_indexes, truncate_to

KEY = TopicPartition("topic", 0)
TOPIC_ID = bytes(range(16))
RETENTION_MS = 1000
CONFIG = {
    "cleanup_policy": "compact",
    "internal_segment_bytes": "1500",
    "index_interval_bytes": "150",
    "file_delete_delay_ms": "0",
    "delete_retention_ms": str(RETENTION_MS),
}


class Crash(Exception):
    """The machine stops here."""


class Written(NamedTuple):
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int
    producer_id: int
    transaction: int
    """Which one it belongs to, -1 for none."""


class Transaction(NamedTuple):
    producer_id: int
    first_offset: int
    marker_offset: int
    """-1 while it is open."""
    is_committed: bool


class Reader:
    """A consumer with read_committed: it goes on from where it was, whatever happens to the log."""

    def __init__(self, position: int, now_ms: int) -> None:
        self.position = position
        self.started_ms = now_ms
        self.found: dict[bytes, bytes] = {}
        self._aborted: set[int] = set()

    def poll(self, log: Log, size: int = 400) -> bool:
        """Read once; False at the last stable offset."""
        upto = log.last_stable_offset(log.end_offset)
        if self.position >= upto:
            return False
        found = log.read(self.position, size_bytes_max=size, upto_offset=upto)
        if found is None:
            self.position = upto
            return False
        content = found.file.read(found.size, found.position)
        found.release()
        pending = sorted(log.aborted_transactions(self.position, found.upper_offset), key=lambda one: one.first_offset)
        for one in batches.split(content):
            header = one.header
            assert header.last_offset >= self.position
            while pending and pending[0].first_offset <= header.last_offset:
                self._aborted.add(pending.pop(0).producer_id)
            if header.is_control:
                self._end_transaction(one)
            elif not (header.is_transactional and header.producer_id in self._aborted):
                for record in batches.records_of(one.data):
                    if record.offset >= self.position:
                        self._take(record)
            self.position = header.next_offset
        return True

    def read_all(self, log: Log) -> dict[bytes, bytes]:
        while self.poll(log):
            pass
        return self.found

    def _end_transaction(self, one: batches.Batch) -> None:
        for record in batches.records_of(one.data):
            marker = control.decode(record)
            if isinstance(marker, control.EndTransaction) and not marker.committed:
                self._aborted.discard(one.header.producer_id)

    def _take(self, record: Record) -> None:
        if record.key is None:
            return
        if record.value is None:
            self.found.pop(record.key, None)
        else:
            self.found[record.key] = record.value


class Table:
    """The log and the hand that writes, compacts, cuts, kills and reopens it."""

    def __init__(self, seed: int, **options: str) -> None:
        self.disk = SimDisk(random.Random(seed))
        self.config = LogConfig.of(**(CONFIG | options))
        self.clock_ms = 1_000_000
        self.written: list[Written] = []
        self.transactions: list[Transaction] = []
        self.open: dict[int, int] = {}
        """Number of the open transaction by producer."""
        self.sequences: dict[int, int] = {}
        self.checkpoint: int | None = None
        self.untouchable_from = 0
        """Nothing below it may be truncated: it was below the high watermark when the log was compacted."""
        self.clean_since: dict[int, int] = {}
        """When each tombstone was first compacted, by offset."""
        self.directory = self._open_directory()
        self.log = self.directory.create_log(KEY, TOPIC_ID, self.config, now_ms=self.clock_ms)
        self.reader = Reader(0, self.clock_ms)

    def _open_directory(self) -> LogDirectory:
        files = self.disk.mount()
        return LogDirectory(
            files,
            "/data",
            cache=FileCache(files, 3),
            index_cache=IndexCache(256),
            jitter_below=lambda bound: 0,
            on_failure=print,
        )

    # Writing.

    def put(
        self,
        pairs: list[tuple[bytes | None, bytes | None]],
        *,
        producer_id: int = -1,
        transactional: bool = False,
        codec: Codec = Codec.NONE,
    ) -> None:
        self.clock_ms += 10
        records = [Record(-1, self.clock_ms + index, key, value) for index, (key, value) in enumerate(pairs)]
        sequence = self.sequences.get(producer_id, 0)
        batch = batches.build(
            records,
            codec=codec,
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=sequence if producer_id >= 0 else -1,
            is_transactional=transactional,
        )
        staged = self.log.stage(batch, leader_epoch=0, now_ms=self.clock_ms)
        self.log.write_staged()
        if producer_id >= 0:
            self.sequences[producer_id] = sequence + len(pairs)
        number = -1
        if transactional:
            if producer_id not in self.open:
                self.open[producer_id] = len(self.transactions)
                self.transactions.append(Transaction(producer_id, staged.first_offset, -1, False))
            number = self.open[producer_id]
        for index, record in enumerate(records):
            self.written.append(
                Written(staged.first_offset + index, record.key, record.value, record.timestamp, producer_id, number)
            )

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        self.clock_ms += 10
        marker = control.EndTransaction(committed=committed, coordinator_epoch=0)
        batch = control.marker_batch(marker, producer_id=producer_id, producer_epoch=0, timestamp=self.clock_ms)
        staged = self.log.stage(batch, leader_epoch=0, now_ms=self.clock_ms, origin=AppendOrigin.COORDINATOR)
        self.log.write_staged()
        number = self.open.pop(producer_id)
        ended = self.transactions[number]
        self.transactions[number] = ended._replace(marker_offset=staged.first_offset, is_committed=committed)

    def roll(self) -> None:
        self.log.roll(self.clock_ms)
        self.log.flush()

    def truncate(self, offset: int) -> None:
        for removal in truncate_to(self.log, offset):
            removal.run()
        self.forget_from(self.log.end_offset)

    def forget_from(self, end: int) -> None:
        """The log ends here now: what was written beyond is not part of it any more."""
        self.written = [one for one in self.written if one.offset < end]
        self.open = {}
        kept = []
        for number, one in enumerate(self.transactions):
            if one.first_offset < end:
                decided = one if one.marker_offset < end else one._replace(marker_offset=-1, is_committed=False)
                if decided.marker_offset < 0:
                    self.open[one.producer_id] = number
                kept.append(decided)
        self.transactions = kept
        self.sequences = {}
        for entry in self.written:
            if entry.producer_id >= 0:
                self.sequences[entry.producer_id] = self.sequences.get(entry.producer_id, 0) + 1
        self.clean_since = {offset: since for offset, since in self.clean_since.items() if offset < end}
        self.reader = Reader(self.log.log_start_offset, self.clock_ms)

    def delete_records(self, offset: int) -> None:
        self.log.delete_records(offset)
        for removal in apply_retention(self.log, self.clock_ms):
            removal.run()
        self.reader = Reader(self.log.log_start_offset, self.clock_ms)

    # Compacting.

    def compact(
        self,
        map_bytes_max: int = 1 << 20,
        between: Callable[[SwapState], None] | None = None,
        amid: Callable[[SwapState], None] | None = None,
    ) -> bool:
        """One round; whether the log was compacted.

        ``between`` is called between the steps of the swap, ``amid`` in the midst of each, when the loop has done its
        part and the thread has not."""
        surveyed = plans.survey(
            self.log, checkpoint=self.checkpoint, high_watermark=self.log.end_offset, now_ms=self.clock_ms
        )
        assert surveyed.first_uncleanable_offset <= max(
            surveyed.first_dirty_offset, self.log.active.base_offset, self.log.log_start_offset
        )
        plan = plans.prepare(self.log, surveyed, now_ms=self.clock_ms, map_bytes_max=map_bytes_max, read_bytes=500)
        if plan is None:
            return False
        started_ms, upper = self.clock_ms, plan.job.upper_offset
        self.untouchable_from = max(self.untouchable_from, self.log.end_offset)
        before = [bytes(one.data) for one in self.batches() if one.header.base_offset >= upper]
        try:
            outcome = compact(plan.job, self.log.environment.files, open_source=plan.open_source)
            self._note_clean(outcome.cleaned_offset, started_ms)
            swap = Swap(plan, outcome)
            while (job := swap.next_job()) is not None:
                if amid is not None:
                    amid(swap.state)
                job()
                if between is not None:
                    between(swap.state)
        finally:
            plan.release()
        for removal in swap.removals:
            removal.run()
        if between is None:
            assert swap.state is SwapState.DONE
            assert [bytes(one.data) for one in self.batches() if one.header.base_offset >= upper] == before
        if swap.state is not SwapState.DONE:
            return False
        self.checkpoint = outcome.cleaned_offset
        self.check_compacted(outcome.cleaned_offset)
        return True

    def _note_clean(self, cleaned_offset: int, now_ms: int) -> None:
        for one in self.latest(cleaned_offset).values():
            if one.value is None:
                self.clean_since.setdefault(one.offset, now_ms)

    # Stopping and starting.

    def kill(self) -> None:
        self.disk.unmount(self.directory._files)  # type: ignore[arg-type]

    def lose_power(self, survival: float | None = None) -> None:
        self.disk.power_loss(survival)

    def forget_snapshots(self) -> None:
        """Lose every producer snapshot: what they said must follow from the batches."""
        files, directory = self.disk.mount(), self.log.directory
        for name in files.names(directory):
            if name.endswith(".snapshot"):
                files.unlink(f"{directory}/{name}")
        files.sync_directory(directory)
        self.disk.unmount(files)

    def reopen(self) -> None:
        start = self.log.log_start_offset
        self.directory = self._open_directory()
        self.log = self.directory.open_log(KEY, TOPIC_ID, self.config, now_ms=self.clock_ms)
        assert not self.log.is_offline, self.log.offline_reason
        if self.log.log_start_offset != start:
            # A start that no checkpoint knew of is lost with the process; the reader had begun there.
            self.reader = Reader(self.log.log_start_offset, self.clock_ms)

    # What must hold.

    def batches(self) -> Iterator[batches.Batch]:
        for segment in self.log.segments:
            yield from batches.split(bytes(segment.read_bytes(segment.size, 0)))

    def committed(self, upto: int) -> Iterator[Written]:
        for one in self.written:
            if one.offset < upto and (one.transaction < 0 or self.transactions[one.transaction].is_committed):
                yield one

    def latest(self, upto: int) -> dict[bytes, Written]:
        """The latest committed record of each key below an offset."""
        return {one.key: one for one in self.committed(upto) if one.key is not None}

    def expected(self) -> dict[bytes, bytes]:
        """The map of the uncompacted log, from the log start on, as a reader with read_committed makes it."""
        stable, start = self.log.last_stable_offset(self.log.end_offset), self.log.log_start_offset
        found: dict[bytes, bytes] = {}
        for one in self.committed(stable):
            if one.key is None or one.offset < start:
                continue
            if one.value is None:
                found.pop(one.key, None)
            else:
                found[one.key] = one.value
        return found

    def check(self) -> None:
        log = self.log
        present = self._check_records()
        assert Reader(log.log_start_offset, 0).read_all(log) == self.expected()
        for one in self.latest(log.last_stable_offset(log.end_offset)).values():
            if one.offset < log.log_start_offset:
                continue
            if one.value is not None:
                assert one.offset in present
            elif self.clock_ms < self.clean_since.get(one.offset, self.clock_ms) + RETENTION_MS:
                assert one.offset in present, "a tombstone went before its time"
        self._check_markers()
        check_indexes(self.log)
        for producer_id, sequence in self.sequences.items():
            assert log.producers.producers[producer_id].last_sequence == sequence - 1

    def _check_records(self) -> set[int]:
        """Each record is one that was written, at its offset; offsets rise. Returns the offsets."""
        known = {one.offset: one for one in self.written}
        present: set[int] = set()
        lowest = 0
        for one in self.batches():
            batches.verify(one.data)
            assert one.header.base_offset >= lowest
            lowest = one.header.next_offset
            if one.header.is_control:
                continue
            for record in batches.records_of(one.data):
                entry = known[record.offset]
                assert (record.key, record.value, record.timestamp) == (entry.key, entry.value, entry.timestamp)
                present.add(record.offset)
        assert lowest <= self.log.end_offset
        return present

    def _check_markers(self) -> None:
        """A transaction of which data is left has its marker."""
        markers = {
            one.header.base_offset for one in self.batches() if one.header.is_control and one.header.record_count
        }
        for one in self.batches():
            header = one.header
            if header.is_control or not header.is_transactional:
                continue
            for transaction in self.transactions:
                if (
                    transaction.producer_id == header.producer_id
                    and transaction.first_offset <= header.base_offset < transaction.marker_offset
                ):
                    assert transaction.marker_offset in markers, f"{transaction} has no marker"

    def check_compacted(self, cleaned_offset: int) -> None:
        """Right after a round, below ``cleaned_offset``: a key has one record, nothing aborted or keyless is left."""
        latest = self.latest(cleaned_offset)
        known = {one.offset: one for one in self.written}
        for one in self.batches():
            if one.header.is_control:
                continue
            for record in batches.records_of(one.data):
                if self.log.log_start_offset <= record.offset < cleaned_offset:
                    assert record.key is not None
                    assert latest[record.key].offset == record.offset
                    transaction = known[record.offset].transaction
                    assert transaction < 0 or self.transactions[transaction].is_committed

    def check_times(self, timestamp: int) -> None:
        """ListOffsets by time finds what a walk over all records finds."""
        expected = None
        for one in self.batches():
            for record in batches.records_of(one.data):
                if expected is None and record.timestamp >= timestamp and record.offset >= self.log.log_start_offset:
                    expected = (record.timestamp, record.offset)
        found = self.log.offset_for_timestamp(timestamp)
        assert (None if found is None else found[:2]) == expected
