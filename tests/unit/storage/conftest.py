"""A log directory on a simulated disk, as a fixture."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest

from millbeck.kernel.environment import FileSlice
from millbeck.kernel.ids import TopicPartition
from millbeck.records import batch as batches
from millbeck.records import control
from millbeck.records.record import Record
from millbeck.simulation.environment.disk import SimDisk
from millbeck.simulation.environment.files import SimFiles
from millbeck.simulation.environment.inode import Inode
from millbeck.storage.atomic_file import read_file, write_file
from millbeck.storage.config import LogConfig
from millbeck.storage.directory import LogDirectory
from millbeck.storage.file_cache import FileCache
from millbeck.storage.index_cache import IndexCache
from millbeck.storage.log import Log
from millbeck.storage.producer_state import AppendOrigin
from millbeck.storage.staging import Staged

KEY = TopicPartition("topic", 0)
TOPIC_ID = bytes(range(16))


class LogWorld:
    """One log, and the hand that writes, breaks and reopens it."""

    def __init__(self) -> None:
        self.disk = SimDisk(random.Random(7))
        self.clock_ms = 1_000_000
        self.config = LogConfig.of(internal_segment_bytes="1000", index_interval_bytes="100", file_delete_delay_ms="0")
        self.failures: list[str] = []
        self.jitter_ms = 0
        self.file_limit = 8
        self.directory = self.open_directory()
        self._log: Log | None = None

    @property
    def files(self) -> SimFiles:
        files = self.directory._files
        assert isinstance(files, SimFiles)
        return files

    @property
    def log(self) -> Log:
        if self._log is None:
            self._log = self.directory.create_log(KEY, TOPIC_ID, self.config, now_ms=self.clock_ms)
        return self._log

    @property
    def path(self) -> str:
        return f"/data/{KEY}"

    def open_directory(self) -> LogDirectory:
        files = self.disk.mount()
        return LogDirectory(
            files,
            "/data",
            cache=FileCache(files, self.file_limit),
            index_cache=IndexCache(),
            jitter_below=lambda bound: min(self.jitter_ms, bound - 1),
            on_failure=self.failures.append,
        )

    def configure(self, **texts: str) -> None:
        merged = {"internal_segment_bytes": "1000", "index_interval_bytes": "100", "file_delete_delay_ms": "0"} | texts
        self.config = LogConfig.of(**merged)
        if self._log is not None:
            self._log.update_config(self.config)

    def batch(
        self,
        count: int = 1,
        *,
        size: int = 30,
        timestamp: int | None = None,
        producer_id: int = -1,
        epoch: int = 0,
        sequence: int = 0,
        transactional: bool = False,
        append_timestamp: int | None = None,
    ) -> bytes:
        first = self.clock_ms if timestamp is None else timestamp
        records = [Record(-1, first + index, b"k", b"v" * size, ()) for index in range(count)]
        if producer_id < 0:
            return batches.build(records, append_timestamp=append_timestamp)
        return batches.build(
            records,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            is_transactional=transactional,
            append_timestamp=append_timestamp,
        )

    def stage(self, batch: bytes, *, leader_epoch: int = 0, origin: AppendOrigin = AppendOrigin.CLIENT) -> Staged:
        return self.log.stage(batch, leader_epoch=leader_epoch, now_ms=self.clock_ms, origin=origin)

    def append(
        self, batch: bytes | None = None, *, leader_epoch: int = 0, origin: AppendOrigin = AppendOrigin.CLIENT
    ) -> Staged:
        staged = self.stage(batch or self.batch(), leader_epoch=leader_epoch, origin=origin)
        self.log.write_staged()
        return staged

    def append_many(self, batch_count: int, *, records: int = 1) -> None:
        for _ in range(batch_count):
            self.append(self.batch(records))

    def end_transaction(
        self, producer_id: int, *, committed: bool, epoch: int = 0, coordinator_epoch: int = 0
    ) -> Staged:
        marker = control.EndTransaction(committed=committed, coordinator_epoch=coordinator_epoch)
        batch = control.marker_batch(marker, producer_id=producer_id, producer_epoch=epoch, timestamp=self.clock_ms)
        return self.append(batch, origin=AppendOrigin.COORDINATOR)

    def read(self, offset: int, size: int = 1 << 20, upto: int | None = None, **options: bool) -> list[int]:
        """The base offsets of what a read returns; the bytes are checked to be whole batches."""
        upto_offset = self.log.end_offset if upto is None else upto
        found = self.log.read(offset, size_bytes_max=size, upto_offset=upto_offset, **options)
        return [] if found is None else [one.header.base_offset for one in batches.split(self.content(found))]

    @staticmethod
    def content(found: FileSlice) -> bytes:
        try:
            return found.file.read(found.size, found.position)
        finally:
            found.release()

    def stored(self, log: Log | None = None) -> list[int]:
        """The base offset of every batch in the log's files."""
        return [header.base_offset for segment in (log or self.log).segments for _, header in segment.headers()]

    def names(self, suffix: str = "") -> list[str]:
        return [name for name in self.files.names(self.path) if name.endswith(suffix)]

    def close_and_reopen(self) -> Log:
        assert self.directory.close(broker_epoch=5)
        return self.kill_and_reopen()

    def kill_and_reopen(self) -> Log:
        """The process dies; the page cache survives."""
        self.disk.unmount(self.files)
        return self.reopen()

    def lose_power_and_reopen(self, survival: float | None = None) -> Log:
        self.disk.power_loss(survival)
        return self.reopen()

    def reopen(self) -> Log:
        self.directory = self.open_directory()
        self._log = self.directory.open_log(KEY, TOPIC_ID, self.config, now_ms=self.clock_ms)
        return self._log

    def overwrite(self, name: str, position: int, data: bytes) -> None:
        """Change bytes of a file behind the log's back, durably."""
        inode = self.disk.find(f"{self.path}/{name}")
        assert isinstance(inode, Inode)
        for image in (inode.content, inode.durable):
            image[position : position + len(data)] = data

    def write_file(self, name: str, content: bytes) -> None:
        write_file(self.files, f"{self.path}/{name}", content, sync=True)

    def read_file(self, name: str) -> bytes:
        content = read_file(self.files, f"{self.path}/{name}", 1 << 30)
        assert content is not None
        return content

    def run_all(self, jobs: Iterable[object]) -> None:
        for job in jobs:
            job.run()  # type: ignore[attr-defined]


@pytest.fixture
def world() -> LogWorld:
    return LogWorld()
