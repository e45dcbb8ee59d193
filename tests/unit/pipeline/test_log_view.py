"""What a driver asks, and what its user is told when nobody answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from millbeck.client.blocking import Blocking
from millbeck.client.consumer.client import OffsetAndTimestamp
from millbeck.client.errors import NoBrokerReachable, RequestTimeout
from millbeck.client.metadata import PartitionMetadata, TopicView
from millbeck.kernel.errors import TopicAuthorizationFailed, UnknownServerError, UnknownTopicOrPartition
from millbeck.kernel.ids import ZERO_UUID, TopicPartition
from millbeck.pipeline.errors import (
    BrokerUnreachable,
    InvalidOption,
    PipelineError,
    RecordsLost,
    TopicMissing,
)
from millbeck.pipeline.log_view import LogView
from millbeck.pipeline.source_options import parse_source_options

ID = bytes(range(16))


def topic(name: str, count: int, *, is_internal: bool = False, topic_id: bytes = ID) -> TopicView:
    return TopicView(name, topic_id, is_internal, {number: PartitionMetadata(number) for number in range(count)})


class FakeCluster:
    """Knows some topics, and notes what it is asked."""

    def __init__(self, topics: list[TopicView]) -> None:
        self.there = {found.name: found for found in topics}
        self.metadata = SimpleNamespace(topics=self.there)
        self.wants_all_topics = False
        self.patience_s: float | None = None
        self.now_s = 0.0
        self.error: Exception | None = None

    def set_topics(self, names: list[str]) -> None:
        self.wanted = names

    async def retrying(self, attempt: Callable[[Any], Coroutine[Any, Any, None]], *, timeout_s: float) -> None:
        self.patience_s = timeout_s
        await attempt(None)

    async def refresh(self, deadline: object) -> None:
        if self.error is not None:
            self.now_s += self.patience_s or 0.0
            raise self.error

    async def topic(self, name: str, *, timeout_s: float) -> TopicView:
        if name not in self.there:
            raise UnknownTopicOrPartition(name)
        return self.there[name]


class FakeConsumer:
    config = SimpleNamespace(default_api_timeout_ms=60_000)

    def __init__(self, cluster: FakeCluster) -> None:
        self.cluster = cluster
        self.times: dict[int, int] = {100: 7}

    async def beginning_offsets(self, partitions: Iterable[TopicPartition], *, timeout_s: float) -> dict[Any, int]:
        return dict.fromkeys(partitions, 2)

    async def end_offsets(self, partitions: Iterable[TopicPartition], *, timeout_s: float) -> dict[Any, int]:
        return {partition: 50 + partition.partition for partition in partitions}

    async def offsets_for_times(self, times: Mapping[TopicPartition, int], *, timeout_s: float) -> dict[Any, Any]:
        return {
            partition: None if time > 100 else OffsetAndTimestamp(self.times[time], time, 0)
            for partition, time in times.items()
        }


class FakeBlocking:
    """Runs what it is given; makes one consumer. Its clock goes on by what the cluster is waited for."""

    def __init__(self, consumer: FakeConsumer) -> None:
        self.consumer = consumer
        self.environment = SimpleNamespace(clock=SimpleNamespace(monotonic=lambda: consumer.cluster.now_s))

    def make(self, factory: object) -> FakeConsumer:
        return self.consumer

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run(coroutine)


def view_of(topics: list[TopicView], *, is_streaming: bool = False, **options: Any) -> tuple[LogView, FakeCluster]:
    cluster = FakeCluster(topics)
    given = {"kafka.bootstrap.servers": "h:1", **options}
    parsed = parse_source_options(given, is_streaming=is_streaming)
    return LogView(parsed, cast("Blocking", FakeBlocking(FakeConsumer(cluster)))), cluster


def test_named_topics() -> None:
    view, _ = view_of([topic("a", 2), topic("b", 1)], subscribe="b,a")
    topics = view.topics()
    assert view.partitions(topics) == [TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)]
    assert view.ids(topics) == {"a": ID, "b": ID}


def test_topics_that_match() -> None:
    there = [topic("a1", 1), topic("ba1", 1), topic("a2", 1, is_internal=True), topic("a3", 1, topic_id=ZERO_UUID)]
    view, cluster = view_of(there, subscribePattern="a.*")
    assert list(view.topics()) == ["a1", "a3"]
    assert view.ids(view.topics()) == {"a1": ID}
    assert cluster.wants_all_topics


def test_assigned_partitions() -> None:
    view, _ = view_of([topic("a", 3)], assign='{"a":[2,0]}')
    assert view.partitions(view.topics()) == [TopicPartition("a", 0), TopicPartition("a", 2)]
    absent, _ = view_of([topic("a", 2)], assign='{"a":[5]}')
    with pytest.raises(TopicMissing, match="topic a has 2 partitions, 0 to 1, not 5"):
        absent.topics()


def test_a_topic_that_is_missing() -> None:
    view, _ = view_of([topic("a", 1)], subscribe="oders")
    with pytest.raises(TopicMissing, match="there is no topic oders at h:1"):
        view.topics()


def test_a_pattern_that_is_none() -> None:
    view, _ = view_of([], subscribePattern="a[")
    with pytest.raises(InvalidOption, match="subscribePattern is not a valid regular expression"):
        view.topics()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"startingOffsets": "earliest"}, [2, 2]),
        ({"startingOffsets": '{"a":{"0":-2,"1":9}}'}, [2, 9]),
        ({"startingTimestamp": "100"}, [7, 7]),
        ({"startingOffsetsByTimestamp": '{"a":{"0":100,"1":100}}'}, [7, 7]),
        ({"startingTimestamp": "500", "startingOffsetsByTimestampStrategy": "latest"}, [50, 51]),
    ],
)
def test_positions(options: dict[str, Any], expected: list[int]) -> None:
    view, _ = view_of([topic("a", 2)], subscribe="a", **options)
    parsed = parse_source_options({"kafka.bootstrap.servers": "h:1", "subscribe": "a", **options}, is_streaming=False)
    found = view.at(parsed.starting, is_start=True)
    assert [found.by_partition[partition] for partition in found] == expected
    assert found.topic_ids == {"a": ID}


def test_an_end_after_the_last_record_is_the_end_of_the_log() -> None:
    view, _ = view_of([topic("a", 1)], subscribe="a", endingTimestamp="500")
    parsed = parse_source_options(
        {"kafka.bootstrap.servers": "h:1", "subscribe": "a", "endingTimestamp": "500"}, is_streaming=False
    )
    assert list(view.at(parsed.ending, is_start=False).by_partition.values()) == [50]


def test_a_start_after_the_last_record_is_an_error() -> None:
    view, _ = view_of([topic("a", 1)], subscribe="a", startingTimestamp="500")
    parsed = parse_source_options(
        {"kafka.bootstrap.servers": "h:1", "subscribe": "a", "startingTimestamp": "500"}, is_streaming=False
    )
    with pytest.raises(RecordsLost, match="no record at or after timestamp 500"):
        view.at(parsed.starting, is_start=True)


@pytest.mark.parametrize(
    ("text", "words"), [('{"a":{"0":1}}', "does not name a-1"), ('{"a":{"0":1,"1":1,"2":1}}', "a-2")]
)
def test_offsets_name_exactly_what_is_read(text: str, words: str) -> None:
    view, _ = view_of([topic("a", 2)], subscribe="a", startingOffsets=text)
    parsed = parse_source_options(
        {"kafka.bootstrap.servers": "h:1", "subscribe": "a", "startingOffsets": text}, is_streaming=False
    )
    with pytest.raises(InvalidOption, match=words):
        view.at(parsed.starting, is_start=True)


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (NoBrokerReachable("no connection to h:1: connection refused"), BrokerUnreachable, "no broker answers at h:1"),
        (TopicAuthorizationFailed("no"), PipelineError, "not allowed to read topics a"),
        (UnknownServerError("no"), PipelineError, "refused to describe topics a"),
    ],
)
def test_who_does_not_answer(error: Exception, kind: type[Exception], words: str) -> None:
    view, cluster = view_of([topic("a", 1)], subscribe="a")
    cluster.error = error
    with pytest.raises(kind, match=words):
        view.topics()


def test_a_broker_is_waited_for_longer_once_it_has_answered() -> None:
    view, cluster = view_of([topic("a", 1)], subscribe="a")
    view.topics()
    first_s = cluster.patience_s
    view.topics()
    assert (first_s, cluster.patience_s) == (5.0, 60.0)


@pytest.mark.parametrize(("cause", "waited_s"), [(None, 15.0), (NoBrokerReachable("connection refused"), 5.0)])
def test_who_is_slow_is_waited_for_longer_than_who_is_not_there(cause: Exception | None, waited_s: float) -> None:
    view, cluster = view_of([topic("a", 1)], subscribe="a")
    cluster.error = RequestTimeout("no metadata in time")
    cluster.error.__cause__ = cause
    with pytest.raises(BrokerUnreachable, match=str(cause or "no metadata in time")):
        view.topics()
    assert cluster.now_s == waited_s


def test_a_wrong_client_setting_is_named() -> None:
    parsed = parse_source_options(
        {"kafka.bootstrap.servers": "h:1", "subscribe": "a", "kafka.isolation.level": "some"}, is_streaming=False
    )
    with Blocking() as blocking, pytest.raises(InvalidOption, match=r"isolation\.level.*prefix kafka"):
        LogView(parsed, blocking)
