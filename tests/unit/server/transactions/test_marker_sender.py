"""Markers on their way: sorted by leader, sent again after what passes, and dropped with their coordinator."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Coroutine
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from millbeck.coordinator.runtime.result import ResponseCallback
from millbeck.coordinator.transaction.markers import Markers
from millbeck.kernel import errors
from millbeck.kernel.ids import TopicPartition
from millbeck.kernel.isolation import Isolation
from millbeck.server.transactions import marker_sender
from millbeck.server.transactions.marker_sender import MarkerSender
from millbeck.wire.messages.transactions import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

BAD_EPOCH = 40_000
HERE, THERE, NOWHERE = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("t", 2)


class Around:
    """A broker as far as the sender sees it: node 1 of two; `leaders` can be changed."""

    def __init__(self) -> None:
        self.leaders = {HERE: 1, THERE: 2, NOWHERE: -1}
        self.topic_names = {"t"}
        self.requests: list[WriteTxnMarkersRequest] = []
        self.codes: list[int | Exception] = []
        self.check: Callable[[WriteTxnMarkersRequest], None] = lambda _: None
        self.completed: list[Markers] = []
        self.completions: list[Exception] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.node_id = 1
        self.isolation = Isolation()
        self.image = SimpleNamespace(topics=SimpleNamespace(named=self.named, partition=self.partition_of))
        self.peers = self
        self.deadlines = self
        self.config = SimpleNamespace(replication=SimpleNamespace(request_timeout_ms=1000))
        self.sender = MarkerSender(self, self.complete)  # type: ignore[arg-type]
        self.partition: Any = SimpleNamespace(name=TopicPartition("__transaction_state", 4), leader_epoch=6)

    def named(self, name: str) -> object | None:
        return name if name in self.topic_names else None

    def partition_of(self, topic: str, index: int) -> object | None:
        leader = self.leaders.get(TopicPartition(topic, index))
        return None if leader is None else SimpleNamespace(leader=leader)

    def after(self, delay_ms: int, callback: Any) -> object:
        return asyncio.get_running_loop().call_later(delay_ms / 1000, callback)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self.tasks.append(asyncio.get_running_loop().create_task(work))

    async def request(self, node_id: int, purpose: str, message: Any, response: Any, *, timeout_s: float) -> Any:
        assert node_id == 2
        self.check(message)
        self.requests.append(message)
        outcome = self.codes.pop(0) if self.codes else 0
        if isinstance(outcome, Exception):
            raise outcome
        return WriteTxnMarkersResponse(
            markers=[
                WritableTxnMarkerResult(
                    marker.producer_id,
                    [
                        WritableTxnMarkerTopicResult(
                            topic.name,
                            [WritableTxnMarkerPartitionResult(each, outcome) for each in topic.partition_indexes],
                        )
                        for topic in marker.topics
                    ],
                )
                for marker in message.markers
            ]
        )

    def complete(self, markers: Markers, reply: ResponseCallback[bool]) -> None:
        if self.completions:
            reply.fail(self.completions.pop(0))  # type: ignore[arg-type]
            return
        self.completed.append(markers)
        reply.reply(True)


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was written here."""
    found: list[Any] = []

    def write(broker: Any, name: TopicPartition, end: Any, reply: ResponseCallback[bool]) -> None:
        found.append((name, end))
        reply.reply(True)

    monkeypatch.setattr(marker_sender, "write_marker", write)
    monkeypatch.setattr(marker_sender, "RETRY_BACKOFF_MS", 1)
    return found


def markers(*partitions: TopicPartition, name: str = "x") -> Markers:
    return Markers(
        transactional_id=name,
        producer_id=7,
        producer_epoch=3,
        is_committed=True,
        partitions=partitions,
        transaction_version=2,
    )


def run(scenario: Any) -> None:
    async def whole() -> None:
        around = Around()
        await scenario(around)
        assert all(task.done() for task in around.tasks)

    asyncio.run(whole())


async def until(condition: Any) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.001)


def test_each_leader_gets_its_own_and_the_end_comes_when_all_have_theirs(written: list[Any]) -> None:
    async def scenario(around: Around) -> None:
        around.sender.send(around.partition, markers(HERE, THERE))
        around.sender.send(around.partition, markers(THERE, name="y"))
        assert around.completed == []
        await until(lambda: len(around.completed) == 2)
        assert [name for name, _ in written] == [HERE]
        assert written[0][1].coordinator_epoch == 6
        (request,) = around.requests
        assert [(each.coordinator_epoch, each.transaction_version) for each in request.markers] == [(6, 2)] * 2
        assert around.sender.waiting_count == 0

    run(scenario)


@pytest.mark.parametrize(
    "failure", [errors.NotLeaderOrFollower.code, errors.RequestTimedOut(), errors.KafkaStorageError.code]
)
def test_what_passes_is_tried_again(written: list[Any], failure: Any) -> None:
    async def scenario(around: Around) -> None:
        around.codes = [failure, failure]
        around.sender.send(around.partition, markers(THERE))
        await until(lambda: around.completed)
        assert len(around.requests) == 3
        assert around.sender.retry_count == 2

    run(scenario)


@pytest.mark.parametrize("failure", [errors.TransactionCoordinatorFenced.code, errors.InvalidProducerEpoch.code])
def test_a_coordinator_that_is_fenced_gives_up(written: list[Any], failure: int) -> None:
    async def scenario(around: Around) -> None:
        around.codes = [failure]
        around.sender.send(around.partition, markers(HERE, THERE))
        await asyncio.sleep(0.02)
        assert around.completed == []
        assert len(around.requests) == 1

    run(scenario)


def test_who_has_no_leader_is_waited_for_and_what_is_deleted_is_not(written: list[Any]) -> None:
    async def scenario(around: Around) -> None:
        around.sender.send(around.partition, markers(NOWHERE))
        around.sender.send(around.partition, markers(TopicPartition("gone", 0), name="y"))
        await until(lambda: around.completed)
        assert [each.transactional_id for each in around.completed] == ["y"]
        around.leaders[NOWHERE] = 1
        await until(lambda: len(around.completed) == 2)
        assert around.sender.unknown_destination_count > 0

    run(scenario)


def test_a_transaction_without_partitions_ends_at_once(written: list[Any]) -> None:
    async def scenario(around: Around) -> None:
        around.sender.send(around.partition, markers())
        await until(lambda: around.completed)
        assert around.requests == []

    run(scenario)


def test_the_end_is_written_again_when_that_fails(written: list[Any]) -> None:
    async def scenario(around: Around) -> None:
        around.completions = [errors.CoordinatorNotAvailable(), errors.CoordinatorNotAvailable()]
        around.sender.send(around.partition, markers(HERE))
        await until(lambda: around.completed)
        assert around.completions == []

    run(scenario)


def test_a_lost_partition_takes_its_markers_along(written: list[Any]) -> None:
    async def scenario(around: Around) -> None:
        around.sender.send(around.partition, markers(NOWHERE))
        around.sender.drop(3)
        await asyncio.sleep(0.005)
        around.sender.drop(4)
        around.leaders[NOWHERE] = 1
        await asyncio.sleep(0.02)
        assert (around.completed, written) == ([], [])

    run(scenario)


def test_one_transaction_whose_markers_can_not_be_sent_does_not_keep_the_others(written: list[Any]) -> None:
    async def scenario(around: Around) -> None:
        def encodable(message: WriteTxnMarkersRequest) -> None:
            if any(marker.producer_epoch == BAD_EPOCH for marker in message.markers):
                raise struct.error("an epoch out of range")

        around.check = encodable
        bad = replace(markers(HERE, THERE, name="bad"), producer_epoch=BAD_EPOCH)
        for each in (markers(THERE, name="a"), bad, markers(THERE, name="c")):
            around.sender.send(around.partition, each)
        while len(around.completed) < 2:
            await asyncio.sleep(0.001)
        assert [each.transactional_id for each in around.completed] == ["a", "c"]
        while around.isolation.failure_count < 2:
            await asyncio.sleep(0.001)
        around.check = lambda _: None
        while len(around.completed) < 3:
            await asyncio.sleep(0.001)

    run(scenario)


def test_one_transaction_whose_marker_can_not_be_written_here_does_not_keep_the_others(
    written: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    write = vars(marker_sender)["write_marker"]

    def write_or_fail(broker: Any, name: TopicPartition, end: Any, reply: ResponseCallback[bool]) -> None:
        assert end.producer_epoch != BAD_EPOCH
        write(broker, name, end, reply)

    monkeypatch.setattr(marker_sender, "write_marker", write_or_fail)

    async def scenario(around: Around) -> None:
        bad = replace(markers(HERE, name="bad"), producer_epoch=BAD_EPOCH)
        for each in (bad, markers(HERE, name="a")):
            around.sender.send(around.partition, each)
        while not around.completed or not around.isolation.failure_count:
            await asyncio.sleep(0.001)
        assert [each.transactional_id for each in around.completed] == ["a"]
        around.sender.drop(4)

    run(scenario)


def test_many_markers_do_not_hold_the_loop(written: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marker_sender, "ITERATION_MARKERS_MAX", 10)

    async def scenario(around: Around) -> None:
        names = [TopicPartition("t", index) for index in range(100, 125)]
        around.leaders |= dict.fromkeys(names, 1)
        around.sender.send(around.partition, markers(*names))
        counts = []
        while not around.completed:
            await asyncio.sleep(0)
            counts.append(len(written))
        assert [count for count in dict.fromkeys(counts) if count] == [10, 20, 25]

    run(scenario)
