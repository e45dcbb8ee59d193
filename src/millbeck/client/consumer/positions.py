"""The position of a consumer in each assigned partition. Pure: state and its transitions.

A partition has a position after a seek, after its committed offset was found, or after a reset by policy; until then
`waits_for` has the missing step. Fetching runs ahead of the position: `fetch_offset` is where the next fetch starts,
and records fetched but not returned are buffered in ``chunks``. A seek discards the buffer and makes fetches in flight
stale: it increments ``turn``, which responses are checked against.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from enum import Enum

from millbeck.client.consumer.fetched_columns import Columns, CompletedColumnFetch
from millbeck.kernel.errors import ApiError
from millbeck.kernel.ids import TopicPartition
from millbeck.records.record import Record


class FetchState(Enum):
    """The step that a partition still needs before it can be fetched."""

    NOTHING = "nothing"
    COMMITTED_OFFSET = "committed offset"
    RESET = "reset"
    VALIDATION = "validation"


class TopicPartitionState:
    __slots__ = (
        "_ahead",
        "buffered_bytes",
        "chunks",
        "fetch_offset",
        "high_watermark",
        "is_paused",
        "last_stable_offset",
        "log_start_offset",
        "offset_epoch",
        "partition",
        "position",
        "preferred_replica",
        "reset_timestamp",
        "turn",
        "validated_epoch",
        "waits_for",
    )

    def __init__(self, partition: TopicPartition, waits_for: FetchState) -> None:
        self.partition = partition
        self.waits_for = waits_for
        self.position = -1
        """The offset of the next record to return; -1 until it is known."""
        self.offset_epoch = -1
        """The leader epoch of the last record before the position; -1 if unknown."""
        self.validated_epoch = -1
        """The leader epoch in which the position was last validated against the leader's log."""
        self.fetch_offset = -1
        self.is_paused = False
        self.reset_timestamp: int | None = None
        """The timestamp (or special timestamp) that a reset looks up; None: the consumer's reset policy."""
        self.high_watermark = -1
        self.last_stable_offset = -1
        self.log_start_offset = -1
        self.preferred_replica = -1
        self.turn = 0
        self.chunks: deque[CompletedColumnFetch] = deque()
        self.buffered_bytes = 0
        self._ahead: list[Record] = []

    def __repr__(self) -> str:
        return f"<{self.partition} at {self.position}, waits for {self.waits_for.value}>"

    @property
    def has_position(self) -> bool:
        return self.position >= 0

    def end_offset(self, *, reads_committed: bool) -> int:
        """The end of what a consumer may read, as of the last fetch; -1 if unknown."""
        return self.last_stable_offset if reads_committed else self.high_watermark

    @property
    def is_fetchable(self) -> bool:
        return self.has_position and self.waits_for is FetchState.NOTHING and not self.is_paused

    def seek(self, offset: int, leader_epoch: int = -1) -> None:
        self._drop_buffer()
        self.position = self.fetch_offset = offset
        self.offset_epoch = leader_epoch
        self.validated_epoch = -1
        self.reset_timestamp = None
        self.waits_for = FetchState.NOTHING

    def reset(self, timestamp: int | None = None) -> None:
        """Look up a new position: by special timestamp, by timestamp, or by the consumer's reset policy."""
        self._drop_buffer()
        self.position = self.fetch_offset = -1
        self.reset_timestamp = timestamp
        self.waits_for = FetchState.RESET

    def validate(self) -> None:
        """Stop fetching until the new leader has confirmed that the position is within its log."""
        if self.waits_for is FetchState.NOTHING:
            self.waits_for = FetchState.VALIDATION
            self.turn += 1

    def validated(self, leader_epoch: int) -> None:
        self.validated_epoch = leader_epoch
        if self.waits_for is FetchState.VALIDATION:
            self.waits_for = FetchState.NOTHING

    def _drop_buffer(self) -> None:
        self.turn += 1
        self.chunks.clear()
        self._ahead = []
        self.buffered_bytes = 0
        self.preferred_replica = -1

    def received(self, chunk: CompletedColumnFetch, fetch_offset: int) -> None:
        """Buffer fetched data; the next fetch starts after it."""
        self.chunks.append(chunk)
        self.buffered_bytes += chunk.remaining_bytes
        self.fetch_offset = fetch_offset

    def take(self, count_max: int) -> list[Record]:
        """Return up to this many records from the buffer, and advance the position. Raises like
        `CompletedFetch.read`."""
        taken: list[Record] = []
        while len(taken) < count_max:
            if self._ahead:
                room = count_max - len(taken)
                part, self._ahead = self._ahead[:room], self._ahead[room:]
                taken += part
                self.position = self._ahead[0].offset if self._ahead else self._position_behind(part[-1].offset + 1)
                continue
            if not self.chunks:
                break
            chunk = self.chunks[0]
            before = chunk.remaining_bytes
            try:
                records = chunk.read()
            except Exception:
                if taken:
                    # Records before the bad batch are valid and returned; the error is raised by the next call.
                    break
                raise
            if records is None:
                self.chunks.popleft()
                self.buffered_bytes -= before
                continue
            self.buffered_bytes -= before - chunk.remaining_bytes
            self.offset_epoch = chunk.leader_epoch
            self._ahead = records
            if not records:
                self.position = chunk.next_offset
        return taken

    def take_columns(self, *, with_headers: bool) -> list[Columns]:
        """Return the records of the first response in the buffer as columns, and advance the position.

        Raises like `CompletedFetch.read`; records before the bad batch are returned first.
        """
        if self._ahead:
            # Their batch has been decoded into objects: it is fetched again from the first of them.
            self.seek(self.position, self.offset_epoch)
            return []
        found: list[Columns] = []
        while self.chunks and not found:
            chunk = self.chunks[0]
            before = chunk.remaining_bytes
            try:
                for columns in chunk.remaining_columns(with_headers=with_headers):
                    if columns.row_count:
                        found.append(columns)
                    self.position = columns.next_offset
            except ApiError:
                # What was not returned is fetched again from the position.
                self.seek(self.position, self.offset_epoch)
                if found:
                    break
                raise
            self.chunks.popleft()
            self.buffered_bytes -= before
            self.position = chunk.next_offset
            self.offset_epoch = chunk.leader_epoch
        return found

    def put_back(self, records: list[Record]) -> None:
        """Return records of the last `take` that were not used; they are taken again next."""
        self._ahead = [*records, *self._ahead]
        self.position = records[0].offset

    def _position_behind(self, offset: int) -> int:
        """The position after the last visible record of a batch: after the batch, whose last offsets may be gone."""
        return max(offset, self.chunks[0].next_offset) if self.chunks else offset

    @property
    def has_records(self) -> bool:
        return bool(self._ahead or self.chunks)


class SubscriptionState:
    """The partitions a consumer reads, in the order of assignment."""

    def __init__(self) -> None:
        self._states: dict[TopicPartition, TopicPartitionState] = {}

    def __contains__(self, partition: object) -> bool:
        return partition in self._states

    def __iter__(self) -> Iterator[TopicPartitionState]:
        return iter(self._states.values())

    def __len__(self) -> int:
        return len(self._states)

    def get(self, partition: TopicPartition) -> TopicPartitionState | None:
        return self._states.get(partition)

    @property
    def partitions(self) -> list[TopicPartition]:
        return list(self._states)

    def assign(self, partitions: Iterable[TopicPartition], waits_for: FetchState) -> None:
        """Read exactly these partitions; those already assigned keep their position."""
        self._states = {
            partition: self._states.get(partition) or TopicPartitionState(partition, waits_for)
            for partition in partitions
        }

    def rotate(self, partition: TopicPartition) -> None:
        """Move a partition to the end, so that all others are served before it."""
        state = self._states.pop(partition, None)
        if state is not None:
            self._states[partition] = state

    @property
    def buffered_bytes(self) -> int:
        return sum(state.buffered_bytes for state in self._states.values())
