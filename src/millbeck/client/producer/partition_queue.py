"""One partition's batches: waiting, in flight, in order. Pure: time is an argument.

Order. Batches are sent in the order they were filled, up to a few at a time. When one has to be sent again while later
ones are in flight, nothing more is sent until all of those are answered; then they go out again, in order. A broker
takes a batch of an idempotent producer only when its sequence follows the one before, so a later batch cannot slip in
before the one that failed: it is refused as out of order and comes back here.

Sequences. A batch gets its sequence when it is first sent and keeps it, so that the broker recognises a repetition. A
sequence that will never be stored, because its batch was refused for good, is a gap that the broker lets nothing past.
What lies before the gap is sent under its old numbers until it is stored; then, with nothing in flight, the partition
takes the producer's next epoch and numbers the rest from zero. A batch that is given up with its fate unknown may or
may not be a gap: the next one goes out under its old number, and only if the broker calls that out of order, with
nothing older left to send, the new epoch begins. Other partitions keep their epoch until they are idle.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from millbeck.client.producer.batch import NOBODY, ProducerBatch, ProducerIdentity
from millbeck.kernel.ids import TopicPartition

EPOCH_MAX = 32767


class Identities:
    """The producer's id and epoch, as the partitions share it."""

    __slots__ = ("current", "is_fixed")

    def __init__(self) -> None:
        self.current: ProducerIdentity | None = None
        """None until a broker has given one."""
        self.is_fixed = False
        """A transactional producer's epochs are the coordinator's to give."""

    def supersede(self, used: ProducerIdentity) -> None:
        """``used`` is no longer good for new sequences; go to the next epoch unless somebody has already."""
        if self.current != used:
            return
        exhausted = used.epoch >= EPOCH_MAX
        self.current = None if exhausted else ProducerIdentity(used.producer_id, used.epoch + 1)

    def discard(self, used: ProducerIdentity) -> None:
        """The broker refuses ``used`` altogether: a new id is needed."""
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

    def __init__(self, partition: TopicPartition, identities: Identities | None, in_flight_max: int) -> None:
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
        """Where the new epoch begins: the place of the first batch that cannot go out under its number."""

    @property
    def is_idle(self) -> bool:
        return not self.waiting and not self.in_flight

    @property
    def open_batch(self) -> ProducerBatch | None:
        """The batch that may still grow."""
        return self.waiting[-1] if self.waiting and not self.waiting[-1].is_closed else None

    def batches(self) -> Iterator[ProducerBatch]:
        yield from self.in_flight
        yield from self.waiting

    def add(self, batch: ProducerBatch) -> None:
        """A new batch behind all others; the one before it is closed."""
        if self.waiting:
            self.waiting[-1].is_closed = True
        self._added_count += 1
        batch.order = (self._added_count,)
        self.waiting.append(batch)

    def may_send(self) -> bool:
        """Whether the first waiting batch may go out, as far as order is concerned."""
        if not self.waiting:
            return False
        if not self.in_flight:
            return True
        if self._is_recovering or self._gap is not None or len(self.in_flight) >= self._in_flight_max:
            return False
        return self._identities is None or self.identity == self._identities.current

    def take(self) -> ProducerBatch | None:
        """The next batch to send, now in flight, numbered if the producer is idempotent. None: nothing may be sent."""
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

    # how a batch in flight ends

    def stored(self, batch: ProducerBatch) -> None:
        """The broker has it."""
        self.in_flight.remove(batch)

    def put_back(self, batch: ProducerBatch) -> None:
        """It has to be sent again, in its old place."""
        self.in_flight.remove(batch)
        self._is_recovering = True
        self._insert([batch])

    def dropped(self, batch: ProducerBatch, *, is_refused: bool = False) -> None:
        """It is given up; ``is_refused`` says that the broker will never have it, otherwise nobody can tell."""
        if batch in self.in_flight:
            self.in_flight.remove(batch)
        else:
            self.waiting.remove(batch)
        if is_refused and batch.has_sequence:
            self.begin_anew(batch)

    def replace(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """Send these in its place."""
        self.in_flight.remove(batch)
        self._is_recovering = True
        for index, part in enumerate(parts):
            part.order = (*batch.order, index)
        self._insert(parts)
        if batch.has_sequence:
            self.begin_anew(batch)

    def begin_anew(self, batch: ProducerBatch) -> None:
        """Number this batch and all behind it under the next epoch, once nothing is in flight."""
        if self._identities is not None and not self._identities.is_fixed:
            self._gap = batch.order if self._gap is None else min(self._gap, batch.order)

    def is_oldest(self, batch: ProducerBatch) -> bool:
        """Whether nothing is left that the broker should have stored before it."""
        return all(other.order >= batch.order for other in self.batches())

    def _insert(self, batches: list[ProducerBatch]) -> None:
        """Where they were before: in front of everything younger."""
        older: list[ProducerBatch] = []
        while self.waiting and self.waiting[0].order < batches[0].order:
            older.append(self.waiting.popleft())
        self.waiting.extendleft(reversed([*older, *batches]))
