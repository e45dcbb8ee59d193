"""Order and sequences of one partition's batches, whatever happens to them in flight."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from millbeck.client.producer.batch import ProducerBatch, ProducerIdentity
from millbeck.client.producer.partition_queue import EPOCH_MAX, PartitionQueue, ProducerIdState
from millbeck.kernel.ids import TopicPartition
from millbeck.records.builder import BatchBuilder

A0 = TopicPartition("a", 0)


def make_batch(count: int = 1) -> ProducerBatch:
    batch = ProducerBatch(A0, BatchBuilder(), 0.0)
    loop = asyncio.new_event_loop()
    for _ in range(count):
        batch.append(0, None, b"v", (), loop.create_future())
    loop.close()
    return batch


def make_queue(*, counts: tuple[int, ...] = (), idempotent: bool = True, in_flight_max: int = 5) -> PartitionQueue:
    identities = ProducerIdState() if idempotent else None
    if identities is not None:
        identities.current = ProducerIdentity(7, 0)
    queue = PartitionQueue(A0, identities, in_flight_max)
    for count in counts:
        queue.add(make_batch(count))
    return queue


def taken(queue: PartitionQueue) -> list[ProducerBatch]:
    batches = []
    while (batch := queue.take()) is not None:
        batches.append(batch)
    return batches


def numbers(batches: list[ProducerBatch]) -> list[tuple[int, int]]:
    return [(batch.identity.epoch, batch.base_sequence) for batch in batches]


def test_batches_are_numbered_when_they_are_first_sent() -> None:
    queue = make_queue(counts=(3, 2, 4))
    assert numbers(taken(queue)) == [(0, 0), (0, 3), (0, 5)]


def test_without_idempotence_nothing_is_numbered() -> None:
    queue = make_queue(counts=(3, 2), idempotent=False)
    assert numbers(taken(queue)) == [(-1, -1), (-1, -1)]


def test_no_more_than_allowed_are_in_flight() -> None:
    queue = make_queue(counts=(1,) * 9, in_flight_max=5)
    assert len(taken(queue)) == 5
    queue.stored(queue.in_flight[0])
    assert len(taken(queue)) == 1


def test_adding_closes_the_batch_before() -> None:
    queue = make_queue(counts=(1,))
    first = queue.waiting[-1]
    assert not first.is_closed
    queue.add(make_batch())
    assert first.is_closed
    assert not queue.waiting[-1].is_closed


def test_nothing_is_sent_before_everything_behind_a_failure_is_answered() -> None:
    queue = make_queue(counts=(1, 1, 1, 1), in_flight_max=3)
    first, second, third = taken(queue)
    queue.put_back(first)
    assert queue.take() is None
    queue.put_back(third)
    assert queue.take() is None
    queue.put_back(second)
    assert [queue.take() for _ in range(3)] == [first, second, third]
    assert numbers([first, second, third]) == [(0, 0), (0, 1), (0, 2)]


def test_what_is_stored_meanwhile_does_not_come_again() -> None:
    queue = make_queue(counts=(1, 1))
    first, second = taken(queue)
    queue.stored(first)
    queue.put_back(second)
    assert taken(queue) == [second]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (2, 0, 1)])
@pytest.mark.parametrize("idempotent", [True, False])
def test_the_old_order_is_restored(order: tuple[int, ...], idempotent: bool) -> None:
    queue = make_queue(counts=(1, 1, 1, 1), idempotent=idempotent, in_flight_max=3)
    batches = taken(queue)
    rest = queue.waiting[0]
    for index in order:
        queue.put_back(batches[index])
    assert list(queue.waiting) == [*batches, rest]


def test_a_gap_begins_a_new_epoch_once_nothing_is_in_flight() -> None:
    queue = make_queue(counts=(2, 3, 4), in_flight_max=2)
    refused, behind = taken(queue)
    queue.dropped(refused, is_refused=True)
    assert queue.take() is None
    queue.put_back(behind)
    assert numbers(taken(queue)) == [(1, 0), (1, 3)]


def test_a_batch_that_was_never_sent_leaves_no_gap() -> None:
    queue = make_queue(counts=(2, 3))
    queue.dropped(queue.waiting[0])
    assert numbers(taken(queue)) == [(0, 0)]


def test_other_partitions_keep_their_epoch_until_they_are_idle() -> None:
    queue = make_queue(counts=(1, 1))
    identities = queue._identities
    assert identities is not None
    first = queue.take()
    assert first is not None
    identities.supersede(ProducerIdentity(7, 0))
    assert queue.take() is None
    queue.stored(first)
    assert numbers(taken(queue)) == [(1, 0)]


def test_a_batch_sent_before_keeps_its_epoch_when_another_partition_moves_on() -> None:
    """Its first copy may be stored: under a new epoch the broker would take it a second time."""
    queue = make_queue(counts=(1,))
    identities = queue._identities
    assert identities is not None
    (first,) = taken(queue)
    identities.supersede(ProducerIdentity(7, 0))
    queue.put_back(first)
    assert numbers(taken(queue)) == [(0, 0)]


def test_the_halves_of_a_batch_take_its_place_under_a_new_epoch() -> None:
    queue = make_queue(counts=(4, 1, 1), in_flight_max=2)
    large, behind = taken(queue)
    halves = [make_batch(2), make_batch(2)]
    queue.replace(large, halves)
    queue.put_back(behind)
    assert taken(queue) == halves
    assert numbers(halves) == [(1, 0), (1, 2)]
    queue.put_back(halves[0])
    queue.put_back(halves[1])
    assert list(queue.waiting)[:3] == [*halves, behind]


def test_epochs_that_are_used_up_need_a_new_id() -> None:
    identities = ProducerIdState()
    identities.current = ProducerIdentity(7, EPOCH_MAX)
    identities.supersede(ProducerIdentity(7, EPOCH_MAX))
    assert identities.current is None


def test_an_id_is_superseded_once() -> None:
    identities = ProducerIdState()
    identities.current = ProducerIdentity(7, 0)
    for _ in range(2):
        identities.supersede(ProducerIdentity(7, 0))
    assert identities.current == ProducerIdentity(7, 1)
    identities.discard(ProducerIdentity(8, 0))
    assert identities.current == ProducerIdentity(7, 1)
    identities.discard(ProducerIdentity(7, 0))
    assert identities.current is None


def test_without_an_id_nothing_is_sent() -> None:
    queue = make_queue(counts=(1,))
    assert queue._identities is not None
    queue._identities.current = None
    assert queue.take() is None
    assert len(queue.waiting) == 1


def test_what_lies_before_a_gap_keeps_its_number() -> None:
    """Its first copy may be stored, and only its number tells the broker so."""
    queue = make_queue(counts=(1, 1, 1))
    lost, refused, behind = taken(queue)
    queue.dropped(refused, is_refused=True)
    queue.put_back(lost)
    queue.put_back(behind)
    assert numbers(taken(queue)) == [(0, 0)]
    queue.stored(lost)
    assert numbers(taken(queue)) == [(1, 0)]


def test_a_batch_given_up_with_its_fate_unknown_leaves_the_numbers_alone() -> None:
    queue = make_queue(counts=(2, 1, 1), in_flight_max=2)
    unknown, behind = taken(queue)
    queue.put_back(unknown)
    queue.put_back(behind)
    queue.dropped(unknown)
    assert numbers(taken(queue)) == [(0, 2), (0, 3)]
    assert queue.is_oldest(behind)
    queue.reset_sequences(behind)
    queue.put_back(behind)
    queue.put_back(queue.in_flight[0])
    assert numbers(taken(queue)) == [(1, 0), (1, 1)]


def test_the_oldest_batch() -> None:
    queue = make_queue(counts=(2, 3, 1), in_flight_max=2)
    first, second = taken(queue)
    assert queue.is_oldest(first)
    assert not queue.is_oldest(second)
    queue.put_back(first)
    assert not queue.is_oldest(second)
    queue.dropped(first)
    assert queue.is_oldest(second)


def test_sequences_wrap_around() -> None:
    queue = make_queue()
    queue.identity = ProducerIdentity(7, 0)
    queue.next_sequence = (1 << 31) - 2
    for count in (3, 2):
        queue.add(make_batch(count))
    assert numbers(taken(queue)) == [(0, (1 << 31) - 2), (0, 1)]
    assert queue.next_sequence == 3


class QueueMachine(RuleBasedStateMachine):
    """The queue against a broker that checks sequences: connections are lost, batches refused and given up at will."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = make_queue()
        self.sent: list[ProducerBatch] = []
        self.stored: list[ProducerBatch] = []
        self.known: dict[tuple[Any, int], ProducerBatch] = {}
        self.expected: dict[Any, int] = {}
        self.epoch = 0
        self.dropped: list[ProducerBatch] = []
        self.added: list[ProducerBatch] = []

    @rule(count=st.integers(1, 3))
    def add(self, count: int) -> None:
        batch = make_batch(count)
        self.added.append(batch)
        self.queue.add(batch)

    @rule()
    def send(self) -> None:
        batch = self.queue.take()
        if batch is not None:
            self.sent.append(batch)

    def _store(self, batch: ProducerBatch) -> bool:
        """What the broker does with the next request of the connection."""
        identity = (batch.identity, batch.base_sequence)
        if identity in self.known:
            assert self.known[identity] is batch, "two batches with the same number"
            return True
        if batch.identity.epoch < self.epoch or batch.base_sequence != self.expected.get(batch.identity, 0):
            return False
        self.epoch = batch.identity.epoch
        self.expected[batch.identity] = batch.next_sequence
        self.known[identity] = batch
        self.stored.append(batch)
        return True

    def _answer(self) -> None:
        batch = self.sent.pop(0)
        if self._store(batch):
            self.queue.stored(batch)
            return
        if self.queue.is_oldest(batch):
            self.queue.reset_sequences(batch)
        self.queue.put_back(batch)

    @precondition(lambda self: self.sent)
    @rule()
    def answer(self) -> None:
        self._answer()

    @precondition(lambda self: self.sent)
    @rule()
    def refuse(self) -> None:
        batch = self.sent[0]
        if (batch.identity, batch.base_sequence) in self.known:
            return
        self.sent.pop(0)
        self.dropped.append(batch)
        self.queue.dropped(batch, is_refused=True)

    @precondition(lambda self: self.sent)
    @rule(stored_count=st.integers(0, 5))
    def lose_connection(self, stored_count: int) -> None:
        """The broker got the first few; no answer comes for any."""
        for batch in self.sent[:stored_count]:
            self._store(batch)
        for batch in self.sent:
            self.queue.put_back(batch)
        self.sent.clear()

    @precondition(lambda self: self.queue.waiting)
    @rule()
    def give_up(self) -> None:
        batch = self.queue.waiting[0]
        self.dropped.append(batch)
        self.queue.dropped(batch)

    @invariant()
    def stored_once_and_in_order(self) -> None:
        order = [self.added.index(batch) for batch in self.stored]
        assert order == sorted(set(order))

    def teardown(self) -> None:
        for _ in range(4 * len(self.added) + 10):
            while (batch := self.queue.take()) is not None:
                self.sent.append(batch)
            while self.sent:
                self._answer()
        assert self.queue.is_idle, "something is never sent"
        kept = [batch for batch in self.added if batch not in self.dropped]
        assert kept == [batch for batch in self.stored if batch not in self.dropped]


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(max_examples=25, stateful_step_count=40, deadline=None)
