"""Markers on their way: sorted by leader, sent again after what passes, and dropped with their coordinator."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any

import pytest

from millbeck.coordinator.runtime.result import Reply
from millbeck.coordinator.transaction.markers import Markers
from millbeck.kernel import errors
from millbeck.kernel.ids import TopicPartition
from millbeck.server.drivers import marker_sender
from millbeck.server.drivers.marker_sender import MarkerSender
from millbeck.wire.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

HERE, THERE, NOWHERE = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("t", 2)


class Around:
    """A broker as far as the sender sees it: node 1 of two; `leaders` can be changed."""

    def __init__(self) -> None:
        self.leaders = {HERE: 1, THERE: 2, NOWHERE: -1}
        self.topic_names = {"t"}
        self.requests: list[WriteTxnMarkersRequest] = []
        self.codes: list[int | Exception] = []
        self.completed: list[Markers] = []
        self.completions: list[Exception] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.node_id = 1
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

    def complete(self, markers: Markers, reply: Reply[bool]) -> None:
        if self.completions:
            reply.fail(self.completions.pop(0))  # type: ignore[arg-type]
            return
        self.completed.append(markers)
        reply.reply(True)


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was written here."""
    found: list[Any] = []

    def write(broker: Any, name: TopicPartition, end: Any, reply: Reply[bool]) -> None:
        found.append((name, end))
        reply.reply(True)

    monkeypatch.setattr(marker_sender, "write_marker", write)
    monkeypatch.setattr(marker_sender, "REST_MS", 1)
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
