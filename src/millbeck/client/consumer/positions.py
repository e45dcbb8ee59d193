"""Where a consumer stands in each partition it reads. Pure: state and the rules of changing it.

A partition has a position once it was sought, its committed offset was found, or the reset policy gave one; until then
`waits_for` says what is missing. Fetching runs ahead of the position: `fetch_offset` is where the next request begins,
and what has arrived in between waits in ``chunks``. A seek throws that away and makes answers that are under way stale,
which is what ``turn`` is for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from enum import Enum

from millbeck.client.consumer.fetched import FetchedBatches
from millbeck.kernel.ids import TopicPartition
from millbeck.records.record import Record


class Missing(Enum):
    """What stands between a partition and its first fetch."""

    NOTHING = "nothing"
    COMMITTED_OFFSET = "committed offset"
    RESET = "reset"
    VALIDATION = "validation"


class PartitionState:
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

    def __init__(self, partition: TopicPartition, waits_for: Missing) -> None:
        self.partition = partition
        self.waits_for = waits_for
        self.position = -1
        """The next offset the program gets; -1 until it is known."""
        self.offset_epoch = -1
        """The leader epoch of the last record before the position; -1 when it is not known."""
        self.validated_epoch = -1
        """The leader epoch in which the position was last found to lie on the log."""
        self.fetch_offset = -1
        self.is_paused = False
        self.reset_timestamp: int | None = None
        """What a reset looks up: a special timestamp or a time; None means the policy of the consumer."""
        self.high_watermark = -1
        self.last_stable_offset = -1
        self.log_start_offset = -1
        self.preferred_replica = -1
        self.turn = 0
        self.chunks: deque[FetchedBatches] = deque()
        self.buffered_bytes = 0
        self._ahead: list[Record] = []

    def __repr__(self) -> str:
        return f"<{self.partition} at {self.position}, waits for {self.waits_for.value}>"

    @property
    def has_position(self) -> bool:
        return self.position >= 0

    @property
    def is_fetchable(self) -> bool:
        return self.has_position and self.waits_for is Missing.NOTHING and not self.is_paused

    def seek(self, offset: int, leader_epoch: int = -1) -> None:
        self._drop_buffer()
        self.position = self.fetch_offset = offset
        self.offset_epoch = leader_epoch
        self.validated_epoch = -1
        self.reset_timestamp = None
        self.waits_for = Missing.NOTHING

    def reset(self, timestamp: int | None = None) -> None:
        """Look the position up: at a special timestamp, at a time, or as the consumer's policy says."""
        self._drop_buffer()
        self.position = self.fetch_offset = -1
        self.reset_timestamp = timestamp
        self.waits_for = Missing.RESET

    def validate(self) -> None:
        """Hold fetching until it is clear that the position lies on the new leader's log."""
        if self.waits_for is Missing.NOTHING:
            self.waits_for = Missing.VALIDATION
            self.turn += 1

    def validated(self, leader_epoch: int) -> None:
        self.validated_epoch = leader_epoch
        if self.waits_for is Missing.VALIDATION:
            self.waits_for = Missing.NOTHING

    def _drop_buffer(self) -> None:
        self.turn += 1
        self.chunks.clear()
        self._ahead = []
        self.buffered_bytes = 0
        self.preferred_replica = -1

    def received(self, chunk: FetchedBatches, fetch_offset: int) -> None:
        """Data has arrived; the next fetch begins behind it."""
        self.chunks.append(chunk)
        self.buffered_bytes += chunk.remaining_bytes
        self.fetch_offset = fetch_offset

    def take(self, count_max: int) -> list[Record]:
        """Up to this many records from the buffer; the position moves behind them. Raises as `FetchedBatches.read`."""
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
                    # What came before the bad batch is good; the error comes up with the next call.
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

    def _position_behind(self, offset: int) -> int:
        """After the last record of a batch the position is behind the batch, whose last offsets may be gone."""
        return max(offset, self.chunks[0].next_offset) if self.chunks else offset

    @property
    def has_records(self) -> bool:
        return bool(self._ahead or self.chunks)


class Positions:
    """The partitions a consumer reads, in the order they were assigned."""

    def __init__(self) -> None:
        self._states: dict[TopicPartition, PartitionState] = {}

    def __contains__(self, partition: object) -> bool:
        return partition in self._states

    def __iter__(self) -> Iterator[PartitionState]:
        return iter(self._states.values())

    def __len__(self) -> int:
        return len(self._states)

    def get(self, partition: TopicPartition) -> PartitionState | None:
        return self._states.get(partition)

    @property
    def partitions(self) -> list[TopicPartition]:
        return list(self._states)

    def assign(self, partitions: Iterable[TopicPartition], waits_for: Missing) -> None:
        """Read these and no others; those read already keep their position."""
        self._states = {
            partition: self._states.get(partition) or PartitionState(partition, waits_for) for partition in partitions
        }

    def rotate(self, partition: TopicPartition) -> None:
        """Serve this one after all others next time."""
        state = self._states.pop(partition, None)
        if state is not None:
            self._states[partition] = state

    @property
    def buffered_bytes(self) -> int:
        return sum(state.buffered_bytes for state in self._states.values())
