"""A segment: a ``.log`` file of batches and its three indexes.

The newest segment of a log is *active*: batches are appended to it, and its indexes are in memory and not on disk yet
(after a crash they are rebuilt with the segment). When the log rolls it is *sealed*: the next flush writes its
indexes, and from then on they are loaded on demand and dropped again by `IndexCache`.

``size`` is the size visible to readers: it grows only after a write succeeded. The active segment keeps the positions
of its latest batches in memory, so that reading at the tail needs no file access; older positions come from the sparse
index and a scan of batch headers. A scan that meets anything but batches with ascending offsets raises
`CorruptSegment`.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from millbeck.kernel.environment import Bytes, Files, OpenMode
from millbeck.kernel.errors import CorruptMessage
from millbeck.kernel.units import LONG_MAX
from millbeck.records.batch import HEADER_SIZE, LENGTH_MIN, LOG_OVERHEAD, MAGIC, BatchHeader, read_header
from millbeck.storage import txn_index
from millbeck.storage.atomic_file import read_file
from millbeck.storage.file_cache import CachedFile, FileCache
from millbeck.storage.offset_index import CorruptIndex, OffsetIndex
from millbeck.storage.time_index import NO_TIMESTAMP, TimeIndex
from millbeck.storage.txn_index import AbortedTransaction

if TYPE_CHECKING:
    from millbeck.storage.compaction.job import NewSegment
    from millbeck.storage.config import LogConfig
    from millbeck.storage.index_cache import IndexCache
    from millbeck.storage.staging import Staged

LOG_SUFFIX: Final = ".log"
INDEX_SUFFIX: Final = ".index"
TIME_INDEX_SUFFIX: Final = ".timeindex"
TXN_INDEX_SUFFIX: Final = ".txnindex"
INDEX_SUFFIXES: Final = (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)

TAIL_BATCHES: Final = 512
ROLL_TIMESTAMP_UNKNOWN: Final = -2
_SIZE_MAX: Final = 2**31 - 1
_WALK_CHUNK: Final = 8 * 1024
_HEADERS_CHUNK: Final = 64 * 1024
_WALK: Final = Struct(">qiibIhi")


class CorruptSegment(Exception):
    """Bytes that are not a valid batch at a position where one must begin."""

    def __init__(self, path: str, position: int, reason: str) -> None:
        super().__init__(f"{path} is corrupt at position {position}: {reason}")
        self.path = path
        self.position = position
        self.reason = reason

    @property
    def base_offset(self) -> int:
        """The segment's base offset, which is its file's name."""
        return int(self.path.rpartition("/")[2].partition(".")[0])


class ColdRead(Exception):
    """The data to read is not in memory. Run ``job`` on a thread, call ``release`` on the event loop, and retry."""

    def __init__(self, job: Callable[[], object], release: Callable[[], None]) -> None:
        super().__init__()
        self.job = job
        self.release = release


class BatchPosition(NamedTuple):
    """Position and offset range of a batch."""

    position: int
    size: int
    base_offset: int
    last_offset: int


def file_name(offset: int, suffix: str) -> str:
    return f"{offset:020d}{suffix}"


def _nothing() -> None:
    return None


class Segment:
    __slots__ = (
        "_aborted",
        "_cache",
        "_files",
        "_index_cache",
        "_offset_index",
        "_tail_floor",
        "_time_index",
        "base_offset",
        "bytes_since_index",
        "created_ms",
        "directory",
        "first_timestamp",
        "handle",
        "has_unsaved_indexes",
        "index_interval_bytes",
        "index_size_max",
        "is_full",
        "is_preallocated",
        "max_timestamp",
        "max_timestamp_offset",
        "name_suffix",
        "roll_jitter_ms",
        "roll_timestamp",
        "size",
        "tail_next_offsets",
        "tail_positions",
        "truncation_count",
    )

    def __init__(
        self,
        files: Files,
        cache: FileCache,
        index_cache: IndexCache,
        directory: str,
        base_offset: int,
        config: LogConfig,
    ) -> None:
        self._files = files
        self._cache = cache
        self._index_cache = index_cache
        self.index_size_max = config.segment_index_bytes
        self.directory = directory
        self.base_offset = base_offset
        self.name_suffix = ""
        """Suffix of all its files; empty except while a compacted segment is being swapped in."""
        self.index_interval_bytes = config.index_interval_bytes
        self.handle: CachedFile = cache.entry(self.log_path, OpenMode.READ)
        self.size = 0
        self.truncation_count = 0
        """How often its file was truncated: a position found before may lie within another batch after it has grown."""
        self.is_preallocated = False
        self.is_full = False
        self.has_unsaved_indexes = False
        self.bytes_since_index = 0
        self.created_ms = 0
        self.roll_jitter_ms = 0
        self.roll_timestamp = LONG_MAX
        self.first_timestamp: int | None = None
        self.max_timestamp: int | None = None
        self.max_timestamp_offset = base_offset
        self._offset_index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self._aborted: list[AbortedTransaction] | None = None
        self.tail_next_offsets = array("q")
        self.tail_positions = array("q")
        self._tail_floor = LONG_MAX

    def relocate(self, directory: str) -> None:
        self.directory = directory
        self.handle.path = self.log_path

    def path(self, suffix: str) -> str:
        return f"{self.directory}/{self.base_offset:020d}{suffix}{self.name_suffix}"

    @property
    def log_path(self) -> str:
        return self.path(LOG_SUFFIX)

    def __repr__(self) -> str:
        return f"<segment {self.base_offset} of {self.directory}, {self.size} bytes>"

    # Activating, sealing and loading.

    def make_active(self, *, created_ms: int, roll_jitter_ms: int) -> None:
        """Accept appends from now on: indexes stay in memory until the segment is sealed."""
        offset_index, time_index, aborted = self.offset_index(), self.time_index(), self.aborted()
        self.largest_timestamp()
        self._index_cache.forget(self)
        self._offset_index, self._time_index, self._aborted = offset_index, time_index, aborted
        self.is_full = offset_index.is_full or time_index.is_full
        self.roll_timestamp = ROLL_TIMESTAMP_UNKNOWN if self.size else LONG_MAX
        if self.handle.mode is not OpenMode.WRITE:
            # Readers may have leased the old handle; the last release closes it.
            self.handle.retire()
            self.handle = self._cache.entry(self.log_path, OpenMode.WRITE)
        self.created_ms = created_ms
        self.roll_jitter_ms = roll_jitter_ms
        self.bytes_since_index = 0
        self.clear_recent_batches()

    def start_empty(self) -> None:
        """Initialise a new segment, without batches and with empty indexes."""
        self._offset_index = OffsetIndex(self.base_offset, self.index_size_max)
        self._time_index = TimeIndex(self.base_offset, self.index_size_max)
        self._aborted = []
        self.first_timestamp = None
        self.max_timestamp = NO_TIMESTAMP
        self.max_timestamp_offset = self.base_offset
        self.has_unsaved_indexes = True
        self.bytes_since_index = 0
        self.size = 0
        self.clear_recent_batches()

    def prepare_file(self, config: LogConfig) -> None:
        """Create the file of a new segment, empty or with the space that ``preallocate`` requests. Raises OSError."""
        file = self.handle.get()
        if file.size():
            file.truncate(0)
        if config.preallocate:
            file.allocate(config.segment_size_bytes)
            self.is_preallocated = True

    def seal(self) -> None:
        """Accept no more appends. The largest timestamp becomes the last entry of the time index."""
        if self.time_index().append_if_later(self.largest_timestamp(), self.max_timestamp_offset):
            self.has_unsaved_indexes = True
        self.tail_next_offsets = array("q")
        self.tail_positions = array("q")
        self._tail_floor = LONG_MAX

    def init_from_compaction(self, made: NewSegment, name_suffix: str) -> None:
        """Initialise a segment written by compaction: sealed and durable, its files still with a suffix."""
        self.name_suffix = name_suffix
        self.handle = self._cache.entry(self.log_path, OpenMode.READ)
        self.size = made.size
        self.max_timestamp, self.max_timestamp_offset = made.max_timestamp, made.max_timestamp_offset
        if not made.has_aborted:
            self.set_no_txn_index()

    def rename_to_final(self) -> None:
        """Rename the files without the suffix. Open files stay readable."""
        suffixed = [self.path(suffix) for suffix in (LOG_SUFFIX, *INDEX_SUFFIXES)]
        self.name_suffix = ""
        for old, suffix in zip(suffixed, (LOG_SUFFIX, *INDEX_SUFFIXES), strict=True):
            try:
                self._files.rename(old, self.path(suffix))
            except FileNotFoundError:
                # An index that exists only in memory, or a transaction index without entries.
                continue
        self.handle.retire()
        self.handle = self._cache.entry(self.log_path, self.handle.mode)

    def remove_index_files(self) -> None:
        """Delete the index files before the indexes in memory change: stale files would mislead recovery after a
        crash.
        """
        self.has_unsaved_indexes = True
        for suffix in INDEX_SUFFIXES:
            try:
                self._files.unlink(self.path(suffix))
            except FileNotFoundError:
                pass

    def index_files(self) -> list[tuple[str, bytes]]:
        """Path and content of the index files to be saved; none for an empty transaction index."""
        saves = [
            (self.path(INDEX_SUFFIX), bytes(self.offset_index().content)),
            (self.path(TIME_INDEX_SUFFIX), bytes(self.time_index().content)),
        ]
        aborted = self.aborted()
        if aborted:
            saves.append((self.path(TXN_INDEX_SUFFIX), txn_index.encode(aborted)))
        return saves

    def indexes_saved(self) -> None:
        """Allow the indexes in memory to be dropped, because the index files of this sealed segment are on disk."""
        self.has_unsaved_indexes = False
        self._remember_indexes()

    def replace_indexes(self, offset_index: OffsetIndex, time_index: TimeIndex) -> None:
        """Use rebuilt indexes, which are not saved yet."""
        self._offset_index, self._time_index = offset_index, time_index
        self.has_unsaved_indexes = True

    def replace_aborted(self, aborted: list[AbortedTransaction]) -> None:
        self._aborted = aborted
        self.has_unsaved_indexes = True

    def drop_indexes(self) -> None:
        """Drop the loaded indexes; called by the index cache to free memory."""
        if not self.has_unsaved_indexes:
            self._offset_index = self._time_index = None

    @property
    def index_memory_bytes(self) -> int:
        return sum(len(index.content) for index in (self._offset_index, self._time_index) if index is not None)

    def offset_index(self, nowait: bool = False) -> OffsetIndex:
        if self._offset_index is None:
            content = self._load(INDEX_SUFFIX, nowait)
            self._offset_index = OffsetIndex.load(self.base_offset, self.index_size_max, content, self.size)
            self._remember_indexes()
        return self._offset_index

    def time_index(self, nowait: bool = False) -> TimeIndex:
        if self._time_index is None:
            content = self._load(TIME_INDEX_SUFFIX, nowait)
            self._time_index = TimeIndex.load(self.base_offset, self.index_size_max, content)
            self._remember_indexes()
        return self._time_index

    def aborted(self) -> list[AbortedTransaction]:
        if self._aborted is None:
            content = read_file(self._files, self.path(TXN_INDEX_SUFFIX), _SIZE_MAX)
            self._aborted = txn_index.decode(content or b"", self.base_offset)
        return self._aborted

    def set_no_txn_index(self) -> None:
        """Assume no aborted transactions: the directory has no ``.txnindex`` file."""
        self._aborted = []

    def _load(self, suffix: str, nowait: bool) -> Bytes:
        path = self.path(suffix)
        if not nowait:
            content = read_file(self._files, path, _SIZE_MAX)
            if content is None:
                raise CorruptIndex(f"{path} is missing")
            return content
        try:
            file = self._files.open(path, OpenMode.READ)
        except FileNotFoundError:
            raise CorruptIndex(f"{path} is missing") from None
        try:
            size = file.size()
            ready = file.read_nowait(size, 0) if size else b""
        finally:
            file.close()
        if ready is None:
            raise ColdRead(partial(read_file, self._files, path, _SIZE_MAX), _nothing)
        return ready

    def _remember_indexes(self) -> None:
        if not self.has_unsaved_indexes:
            self._index_cache.remember(self)

    # Appending.

    def note_appended(self, staged: Sequence[Staged]) -> None:
        """Index batches that were written at the end of the file, and make them visible to readers."""
        position = self.size
        since_index, interval = self.bytes_since_index, self.index_interval_bytes
        next_offsets, positions = self.tail_next_offsets, self.tail_positions
        offset_index, time_index = self._offset_index, self._time_index
        max_timestamp = self.max_timestamp
        assert offset_index is not None
        assert time_index is not None
        assert max_timestamp is not None
        for one in staged:
            last_offset, size = one.last_offset, one.size_bytes
            if one.max_timestamp > max_timestamp:
                self.max_timestamp = max_timestamp = one.max_timestamp
                self.max_timestamp_offset = last_offset
            if since_index > interval:
                offset_index.append(last_offset, position)
                time_index.append_if_later(max_timestamp, self.max_timestamp_offset)
                self.is_full = offset_index.is_full or time_index.is_full
                since_index = 0
            since_index += size
            next_offsets.append(last_offset + 1)
            positions.append(position)
            position += size
        self.bytes_since_index = since_index
        self.size = position
        if len(next_offsets) > 2 * TAIL_BATCHES:
            drop = len(next_offsets) - TAIL_BATCHES
            self._tail_floor = next_offsets[drop - 1]
            del next_offsets[:drop], positions[:drop]

    def clear_recent_batches(self) -> None:
        """Forget the positions of batches appended so far."""
        self.tail_next_offsets = array("q")
        self.tail_positions = array("q")
        self._tail_floor = self.base_offset if not self.size else LONG_MAX

    def set_recent_start(self, offset: int) -> None:
        """Set the offset from which the positions of all batches are known: the next batch to be appended."""
        if not self.tail_next_offsets:
            self._tail_floor = offset

    def add_aborted(self, entry: AbortedTransaction) -> None:
        self.aborted().append(entry)
        self.has_unsaved_indexes = True

    def begin(self, first_timestamp: int, segment_ms: int, now_ms: int) -> None:
        """Start the time of the roll interval, right before the first batch is added."""
        self.created_ms = now_ms
        self.first_timestamp = first_timestamp
        limit_ms = segment_ms - self.roll_jitter_ms
        self.roll_timestamp = first_timestamp + limit_ms if first_timestamp >= 0 else ROLL_TIMESTAMP_UNKNOWN

    def reset_roll_time(self) -> None:
        """Recompute the roll time at the next append, because ``segment.ms`` has changed."""
        self.roll_timestamp = ROLL_TIMESTAMP_UNKNOWN

    def is_time_to_roll(self, max_timestamp: int, now_ms: int, segment_ms: int) -> bool:
        """Kafka's rule: time since the first batch, by the batches' timestamps, or by the clock if they have none."""
        if not self.size:
            return False
        if self.first_timestamp is None:
            self.first_timestamp = self.header_at(0).max_timestamp
        limit_ms = segment_ms - self.roll_jitter_ms
        if self.first_timestamp < 0:
            return now_ms - self.created_ms > limit_ms
        self.roll_timestamp = self.first_timestamp + limit_ms
        return max_timestamp > self.roll_timestamp

    def shrink(self, size: int, end_offset: int) -> None:
        """Remove every batch from ``end_offset`` on from the indexes, because the active segment's file was truncated
        to ``size``."""
        assert self.has_unsaved_indexes, "their files must go first"
        offset_index, time_index = self.offset_index(), self.time_index()
        offset_index.truncate_to(end_offset)
        time_index.truncate_to(end_offset)
        self._aborted = [entry for entry in self.aborted() if entry.last_offset < end_offset]
        self.size = size
        self.truncation_count += 1
        self.bytes_since_index = 0
        self.is_full = False
        self.max_timestamp, self.max_timestamp_offset = time_index.last_timestamp, time_index.last_offset
        for _, header in self.headers(offset_index.position_for(time_index.last_offset)):
            if header.max_timestamp > self.max_timestamp:
                self.max_timestamp, self.max_timestamp_offset = header.max_timestamp, header.last_offset
        self.first_timestamp = None
        self.roll_timestamp = ROLL_TIMESTAMP_UNKNOWN if size else LONG_MAX
        self.clear_recent_batches()
        self.set_recent_start(end_offset)

    def truncate_file(self) -> None:
        """Truncate the file to ``size``: `recovery` has found no valid batch beyond it."""
        file = self._files.open(self.log_path, OpenMode.WRITE)
        try:
            file.truncate(self.size)
            # Sync before anything is appended, or a crash could bring the truncated batches back behind newer ones.
            file.sync()
        finally:
            file.close()

    # Reading.

    def tail_range(self, offset: int, upto_offset: int) -> tuple[int, int] | None:
        """Indexes into the tail arrays: of the batch that contains ``offset``, and after the last one below
        ``upto_offset``.
        """
        if offset < self._tail_floor or not self.tail_next_offsets:
            return None
        next_offsets = self.tail_next_offsets
        return bisect_right(next_offsets, offset), bisect_right(next_offsets, upto_offset)

    def find(self, offset: int, nowait: bool = False) -> BatchPosition | None:
        """The first batch whose last offset is at least ``offset``, or None when all end before it.

        Raises `CorruptIndex` when the index points to no batch, `CorruptSegment` when a batch is invalid.
        """
        position = self.offset_index(nowait).position_for(offset)
        if not position:
            return self.walk(offset, 0, nowait)
        try:
            found = self.walk(offset, position, nowait)
        except CorruptSegment as error:
            if error.position == position:
                raise CorruptIndex(f"no batch begins at position {position} of {self.log_path}") from error
            raise
        if found is not None and found.position == position and found.base_offset > offset:
            raise CorruptIndex(f"the batch at position {position} begins at offset {found.base_offset}")
        return found

    def walk(self, offset: int, position: int, nowait: bool = False) -> BatchPosition | None:
        """Like `find`, scanning from a batch boundary on."""
        size, unpack_from = self.size, _WALK.unpack_from
        chunk: Bytes = b""
        chunk_position = position
        lowest = self.base_offset
        while position < size:
            at = position - chunk_position
            if at + _WALK.size > len(chunk):
                chunk = self.read_bytes(min(_WALK_CHUNK, size - position), position, nowait)
                chunk_position, at = position, 0
                if len(chunk) < _WALK.size:
                    raise CorruptSegment(self.log_path, position, "the file is shorter than the log")
            base_offset, length, _, magic, _, _, delta = unpack_from(chunk, at)
            batch_size = LOG_OVERHEAD + length
            if magic != MAGIC or length < LENGTH_MIN or position + batch_size > size or delta < 0:
                raise CorruptSegment(self.log_path, position, "no valid batch header")
            if base_offset < lowest:
                raise CorruptSegment(self.log_path, position, f"offset {base_offset} comes after {lowest - 1}")
            if base_offset + delta >= offset:
                return BatchPosition(position, batch_size, base_offset, base_offset + delta)
            lowest = base_offset + delta + 1
            position += batch_size
        return None

    def headers(self, position: int = 0, nowait: bool = False) -> Iterator[tuple[int, BatchHeader]]:
        """Position and header of every batch from a batch boundary on. Raises `CorruptSegment`."""
        chunk: Bytes = b""
        chunk_position = position
        lowest = self.base_offset
        while position < self.size:
            at = position - chunk_position
            if at + HEADER_SIZE > len(chunk):
                chunk = self.read_bytes(min(_HEADERS_CHUNK, self.size - position), position, nowait)
                chunk_position, at = position, 0
            try:
                header = read_header(chunk, at)
            except CorruptMessage as error:
                raise CorruptSegment(self.log_path, position, str(error)) from error
            if position + header.size_bytes > self.size or header.last_offset_delta < 0:
                raise CorruptSegment(self.log_path, position, "the batch extends beyond the end of the log")
            if header.base_offset < lowest:
                reason = f"offset {header.base_offset} comes after {lowest - 1}"
                raise CorruptSegment(self.log_path, position, reason)
            yield position, header
            lowest = header.next_offset
            position += header.size_bytes

    def header_at(self, position: int) -> BatchHeader:
        for _, header in self.headers(position):
            return header
        raise CorruptSegment(self.log_path, position, "no valid batch header")

    def read_bytes(self, size: int, position: int, nowait: bool = False) -> Bytes:
        if not nowait:
            return self.handle.get().read(size, position)
        file = self.handle.get()
        ready = file.read_nowait(size, position)
        if ready is None:
            file = self.handle.lease()
            raise ColdRead(partial(file.read, size, position), self.handle.release)
        return ready

    def largest_timestamp(self, nowait: bool = False) -> int:
        """The largest timestamp of any batch, -1 when there is none; for a sealed segment from its time index."""
        if self.max_timestamp is None:
            time_index = self.time_index(nowait)
            self.max_timestamp, self.max_timestamp_offset = time_index.last_timestamp, time_index.last_offset
        return self.max_timestamp

    def next_offset(self) -> int:
        """The offset after the last batch, found by scanning from the last index entry."""
        next_offset = self.base_offset
        for _, header in self.headers(self.offset_index().last_entry()[1]):
            next_offset = header.next_offset
        return next_offset
