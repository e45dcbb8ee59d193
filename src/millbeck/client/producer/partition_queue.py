"""The batches of one partition: waiting, in flight, in order. Pure: time is an argument.

Order. Batches are sent in the order they were filled, several at a time. When one has to be retried while later ones
are in flight, nothing more is sent until all of those are answered; then they are sent again, in order. A broker
accepts a batch of an idempotent producer only if its sequence follows the previous one, so a later batch cannot be
stored before the failed one: it is refused with OUT_OF_ORDER_SEQUENCE_NUMBER and put back here.

Sequences. A batch gets its sequence when it is first sent and keeps it, so that the broker detects duplicates. A
sequence that will never be stored, because its batch was refused and is not retried, is a gap, and the broker refuses
everything after it. Batches before the gap are sent with their old sequences until they are stored; then, with nothing
in flight, the partition moves to the producer's next epoch and numbers the rest from zero. A batch that expires with an
unknown outcome may or may not leave a gap: the next one is sent with its old sequence, and only if the broker refuses
it as out of order, with no older batch left to send, the new epoch begins. Other partitions keep their epoch until they
are idle.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from millbeck.client.producer.batch import NOBODY, ProducerBatch, ProducerIdentity
from millbeck.kernel.ids import TopicPartition

EPOCH_MAX = 32767


class ProducerIdState:
    """The producer's id and epoch, shared by its partitions."""

    __slots__ = ("current", "is_fixed")

    def __init__(self) -> None:
        self.current: ProducerIdentity | None = None
        """The producer id; None until a broker has assigned one."""
        self.is_fixed = False
        """Whether the producer is transactional; then only the coordinator assigns its epochs."""

    def supersede(self, used: ProducerIdentity) -> None:
        """``used`` takes no new sequences: move to the next epoch unless that has happened already."""
        if self.current != used:
            return
        exhausted = used.epoch >= EPOCH_MAX
        self.current = None if exhausted else ProducerIdentity(used.producer_id, used.epoch + 1)

    def discard(self, used: ProducerIdentity) -> None:
        """The broker refuses ``used`` altogether: request a new producer id."""
        if self.current is not None and self.current.producer_id == used.producer_id:
            self.current = None


class PartitionQueue:
    __slots__ = (
        "_added_count",
        "_gap",
        "_identities",
        "_in_flight_max",
        "_is_recovering",
        "identity",
        "in_flight",
        "next_sequence",
        "partition",
        "waiting",
    )

    def __init__(self, partition: TopicPartition, identities: ProducerIdState | None, in_flight_max: int) -> None:
        self.partition = partition
        self.waiting: deque[ProducerBatch] = deque()
        self.in_flight: list[ProducerBatch] = []
        self.identity = NOBODY
        self.next_sequence = 0
        self._added_count = 0
        self._identities = identities
        self._in_flight_max = in_flight_max
        self._is_recovering = False
        self._gap: tuple[int, ...] | None = None
        """The order of the first batch of the next epoch, which cannot be sent with its old sequence."""

    @property
    def is_idle(self) -> bool:
        return not self.waiting and not self.in_flight

    def batches(self) -> Iterator[ProducerBatch]:
        yield from self.in_flight
        yield from self.waiting

    def add(self, batch: ProducerBatch) -> None:
        """Append a new batch and close the previous one."""
        if self.waiting:
            self.waiting[-1].is_closed = True
        self._added_count += 1
        batch.order = (self._added_count,)
        self.waiting.append(batch)

    def may_send(self) -> bool:
        """Whether ordering allows sending the first waiting batch."""
        if not self.waiting:
            return False
        if not self.in_flight:
            return True
        if self._is_recovering or self._gap is not None or len(self.in_flight) >= self._in_flight_max:
            return False
        return self._identities is None or self.identity == self._identities.current

    def take(self) -> ProducerBatch | None:
        """Take the next batch to send, with its sequence if idempotent; None if none may be sent."""
        if not self.may_send():
            return None
        if self._identities is not None:
            if self._gap is not None and self.waiting[0].order >= self._gap:
                self._begin_anew()
            if self._identities.current is None:
                return None
            self._number(self.waiting[0], self._identities.current)
        if not self.in_flight:
            self._is_recovering = False
        batch = self.waiting.popleft()
        batch.is_closed = True
        batch.attempts += 1
        self.in_flight.append(batch)
        return batch

    def _number(self, batch: ProducerBatch, current: ProducerIdentity) -> None:
        if batch.has_sequence:
            return
        if self.identity != current:
            self.identity = current
            self.next_sequence = 0
        batch.set_sequence(current, self.next_sequence)
        self.next_sequence = batch.next_sequence

    def _begin_anew(self) -> None:
        assert not self.in_flight
        assert self._identities is not None
        self._identities.supersede(self.identity)
        self._gap = None
        for batch in self.waiting:
            batch.clear_sequence()

    # completion of batches in flight

    def stored(self, batch: ProducerBatch) -> None:
        """Record that the broker has stored the batch."""
        self.in_flight.remove(batch)

    def put_back(self, batch: ProducerBatch) -> None:
        """Requeue a batch for a retry, in its original order."""
        self.in_flight.remove(batch)
        self._is_recovering = True
        self._insert([batch])

    def dropped(self, batch: ProducerBatch, *, is_refused: bool = False) -> None:
        """Drop a batch. With ``is_refused`` the broker will never store it; otherwise the outcome is unknown."""
        if batch in self.in_flight:
            self.in_flight.remove(batch)
        else:
            self.waiting.remove(batch)
        if is_refused and batch.has_sequence:
            self.reset_sequences(batch)

    def replace(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """Replace a batch by its split parts."""
        self.in_flight.remove(batch)
        self._is_recovering = True
        for index, part in enumerate(parts):
            part.order = (*batch.order, index)
        self._insert(parts)
        if batch.has_sequence:
            self.reset_sequences(batch)

    def reset_sequences(self, batch: ProducerBatch) -> None:
        """Renumber this and all later batches under the next epoch, once nothing is in flight."""
        if self._identities is not None and not self._identities.is_fixed:
            self._gap = batch.order if self._gap is None else min(self._gap, batch.order)

    def is_oldest(self, batch: ProducerBatch) -> bool:
        """Whether no earlier batch is waiting or in flight."""
        return all(other.order >= batch.order for other in self.batches())

    def _insert(self, batches: list[ProducerBatch]) -> None:
        """Requeue in the original order: before all younger batches."""
        older: list[ProducerBatch] = []
        while self.waiting and self.waiting[0].order < batches[0].order:
            older.append(self.waiting.popleft())
        self.waiting.extendleft(reversed([*older, *batches]))
