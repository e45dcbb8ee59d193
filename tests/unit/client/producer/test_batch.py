"""A batch tells everybody who waits, once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from millbeck.client.producer.batch import NOBODY, ProducerBatch, ProducerIdentity, RecordMetadata
from millbeck.kernel.errors import InvalidRecord
from millbeck.kernel.ids import TopicPartition
from millbeck.records import batch as records_batch
from millbeck.records.builder import BatchBuilder
from millbeck.records.compression import Codec


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


def filled(loop: asyncio.AbstractEventLoop, count: int = 3) -> ProducerBatch:
    batch = ProducerBatch(TopicPartition("t", 2), BatchBuilder(), 1.0)
    for index in range(count):
        batch.append(100 + index, b"k", b"v%d" % index, (("h", b"x"),), loop.create_future())
    return batch


def test_offsets_and_timestamps_of_a_stored_batch(loop: asyncio.AbstractEventLoop) -> None:
    batch = filled(loop)
    batch.succeed(40, -1)
    assert [future.result() for future in batch.futures] == [
        RecordMetadata("t", 2, 40 + index, 100 + index) for index in range(3)
    ]


def test_the_broker_s_time_wins(loop: asyncio.AbstractEventLoop) -> None:
    batch = filled(loop)
    batch.succeed(40, 7777)
    assert {future.result().timestamp for future in batch.futures} == {7777}


def test_an_unknown_offset_stays_unknown(loop: asyncio.AbstractEventLoop) -> None:
    batch = filled(loop)
    batch.succeed(-1, -1)
    assert {future.result().offset for future in batch.futures} == {-1}


def test_the_first_end_counts(loop: asyncio.AbstractEventLoop) -> None:
    batch = filled(loop)
    batch.done = loop.create_future()
    batch.fail(InvalidRecord("no"))
    batch.succeed(40, -1)
    assert all(isinstance(future.exception(), InvalidRecord) for future in batch.futures)
    assert batch.done.done()


def test_a_future_that_was_cancelled_is_left_alone(loop: asyncio.AbstractEventLoop) -> None:
    batch = filled(loop)
    batch.futures[1].cancel()
    batch.succeed(0, -1)
    assert [future.cancelled() for future in batch.futures] == [False, True, False]


def test_numbers_travel_in_the_header(loop: asyncio.AbstractEventLoop) -> None:
    batch = filled(loop)
    assert (batch.identity, batch.has_sequence) == (NOBODY, False)
    batch.set_sequence(ProducerIdentity(9, 4), 17)
    header = records_batch.verify(batch.encode())
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 4, 17)
    assert batch.next_sequence == 20
    assert batch.is_closed
    batch.clear_sequence()
    assert records_batch.verify(batch.encode()).base_sequence == -1


def test_sequences_wrap(loop: asyncio.AbstractEventLoop) -> None:
    batch = filled(loop)
    batch.set_sequence(ProducerIdentity(9, 4), (1 << 31) - 1)
    assert batch.next_sequence == 2


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_halves_hold_the_same_records_and_futures(loop: asyncio.AbstractEventLoop, codec: Codec) -> None:
    batch = filled(loop, 5)
    batch.size_bytes = 101
    batch.done = waiting = loop.create_future()
    halves = batch.halves(codec, None)
    assert [half.record_count for half in halves] == [2, 3]
    assert [future for half in halves for future in half.futures] == batch.futures
    stored = [record for half in halves for record in records_batch.records_of(half.encode())]
    assert [record.value for record in stored] == [b"v%d" % index for index in range(5)]
    assert [record.timestamp for record in stored] == [100, 101, 102, 103, 104]
    assert stored[0].headers == (("h", b"x"),)
    assert sum(half.size_bytes for half in halves) == 101
    halves[0].succeed(0, -1)
    assert not waiting.done()
    halves[1].succeed(2, -1)
    assert waiting.done()
