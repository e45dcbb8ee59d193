"""The table's clients, as a run without faults shows them: the records they write, and what they read of them."""

from __future__ import annotations

import random
from typing import Any, cast

from millbeck.kernel.environment import Environment
from millbeck.records import batch
from millbeck.simulation.histories.table_history import TableHistory, TableWrite
from millbeck.simulation.workloads.compacted_table import TableProducer, TableReader
from millbeck.simulation.workloads.produce_and_read import NodeAccess
from millbeck.wire.messages.fetch import FetchableTopicResponse, FetchedPartition, FetchResponse


class Clock:
    def wall_ms(self) -> int:
        return 77


class StandIn:
    """Answers fetches with one batch after another, then with none."""

    def __init__(self, *answers: bytes) -> None:
        self.answers = list(answers)
        self.asked: list[int] = []

    async def ask(self, request: Any, version: int, timeout_s: float) -> FetchResponse:
        self.asked.append(request.topics[0].partitions[0].fetch_offset)
        data = FetchedPartition(partition_index=0, records=self.answers.pop(0) if self.answers else b"")
        return FetchResponse(responses=[FetchableTopicResponse(topic="history", partitions=[data])])

    def close(self) -> None:
        pass


class OneClient(NodeAccess):
    def __init__(self, client: StandIn | None = None) -> None:
        environment: Any = type("", (), {"clock": Clock()})()
        super().__init__(cast(Environment, environment), "n", 1)
        self.client = client

    async def connect(self) -> Any:
        return self.client


def run(work: Any) -> Any:
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("it waited")


def producer(history: TableHistory) -> TableProducer:
    return TableProducer(OneClient(), history, "p", 0, random.Random(4), key_count=3)


def test_every_record_has_a_key_and_its_name_in_a_header() -> None:
    history = TableHistory(0)
    made = [producer(history)._make()]
    made += [producer_again._make() for producer_again in [producer(TableHistory(0))] for _ in range(30)]
    kinds = set()
    for one in made:
        records = batch.records_of(one.data)
        assert len(records) == len(one.sends)
        for record, send in zip(records, one.sends, strict=True):
            write = TableWrite(0, send.value, 0)
            assert record.key == write.key.encode()
            assert record.headers == (("name", send.value.encode()),)
            assert (record.value is None) == write.is_tombstone
            kinds.add(write.is_tombstone)
    assert kinds == {True, False}


def test_a_reader_goes_on_behind_batches_that_have_no_record_left() -> None:
    def named(offset: int, last: int) -> bytes:
        record = batch.Record(offset, 1, b"k", b"v", (("name", b"k|n%d|" % offset),))
        return batch.build([record], base_offset=offset, last_offset=last)

    emptied = batch.build([], base_offset=10, last_offset=19)
    client = StandIn(named(0, 9), emptied, named(25, 30))
    reader = TableReader(OneClient(client), TableHistory(0), "c", 0)
    assert run(reader.read_all()) == [(0, "k|n0|"), (25, "k|n25|")]
    assert client.asked == [0, 10, 20, 31]
