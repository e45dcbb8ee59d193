"""A task reads its range, goes over what is gone if it may, and says what is wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="the extra spark is not installed")

from millbeck.client.consumer.fetched_columns import CompletedColumnFetch
from millbeck.client.consumer.range_reader import RangeUnreadable, TopicRecreated
from millbeck.client.errors import NoBrokerReachable
from millbeck.kernel.errors import TopicAuthorizationFailed
from millbeck.kernel.ids import TopicPartition
from millbeck.pipeline import range_task
from millbeck.pipeline.errors import BrokerUnreachable, PipelineError, RecordsLost, TopicChanged
from millbeck.pipeline.planning import OffsetRange
from millbeck.pipeline.source_options import SourceOptions, parse_source_options
from millbeck.records import batch
from millbeck.records.record import Record

FOUND = OffsetRange(partition=TopicPartition("a", 2), start=0, end=9, topic_id=bytes(16))


class FakeReader:
    """Answers one after another: chunks, errors, None."""

    def __init__(self, answers: list[Any]) -> None:
        self.answers = answers
        self.next_offset = 0
        self.is_closed = False

    async def next_chunk(self) -> Any:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def close(self) -> None:
        self.is_closed = True


class FakeClient:
    config = cluster = None

    class blocking:  # noqa: N801
        @staticmethod
        def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
            return asyncio.run(coroutine)


def options_of(**options: str) -> SourceOptions:
    return parse_source_options({"kafka.bootstrap.servers": "h:1", "subscribe": "a", **options}, is_streaming=True)


def chunk_at(offset: int) -> CompletedColumnFetch:
    return CompletedColumnFetch(batch.build([Record(-1, 1, b"k", b"v")] * 2, base_offset=offset), offset, 9)


def read(monkeypatch: pytest.MonkeyPatch, answers: list[Any], **options: str) -> tuple[list[int], FakeReader]:
    reader = FakeReader(answers)
    monkeypatch.setattr(range_task, "_client", lambda settings: FakeClient)
    monkeypatch.setattr(range_task, "RangeReader", lambda *given, **named: reader)
    try:
        made = list(range_task.read_range(options_of(**options), FOUND))
    finally:
        assert reader.is_closed
    return [row["offset"] for each in made for row in each.to_pylist()], reader


def test_chunks_become_record_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    empty = CompletedColumnFetch(b"", 4, 9)
    assert read(monkeypatch, [chunk_at(0), empty, chunk_at(5), None])[0] == [0, 1, 5, 6]


def test_what_is_gone_fails_or_is_gone_over(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RecordsLost, match=r"begins at 5 now\. failOnDataLoss=false"):
        read(monkeypatch, [RangeUnreadable("it begins at 5 now", 5)])
    found, reader = read(monkeypatch, [RangeUnreadable("begins at 5", 5), chunk_at(5), None], failOnDataLoss="false")
    assert (found, reader.next_offset) == ([5, 6], 5)
    for log_start in (-1, 0, 9):
        assert read(monkeypatch, [RangeUnreadable("gone", log_start)], failOnDataLoss="false")[0] == []


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (TopicRecreated("topic a is another one"), TopicChanged, "planned for the old one"),
        (NoBrokerReachable("nobody"), BrokerUnreachable, "a-2: reading failed at offset 0: nobody"),
        (TopicAuthorizationFailed("no"), PipelineError, "a-2: reading failed at offset 0: no"),
    ],
)
def test_errors_are_for_the_user(
    monkeypatch: pytest.MonkeyPatch, error: Exception, kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        read(monkeypatch, [error])


def test_a_worker_keeps_one_client() -> None:
    one = {"bootstrap.servers": "127.0.0.1:1"}
    two = {"bootstrap.servers": "127.0.0.1:2"}
    first = range_task._client(one)
    assert range_task._client(dict(one)) is first
    second = range_task._client(two)
    assert first.blocking.is_closed
    assert not second.blocking.is_closed
    second.blocking.close()
    range_task._clients.clear()
