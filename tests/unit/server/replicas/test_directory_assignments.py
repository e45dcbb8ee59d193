"""Where replicas are, on the way to the controller."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from millbeck.kernel import errors
from millbeck.server.replicas.directory_assignments import ASSIGNMENTS_MAX, DirectoryAssignments, TopicIdPartition
from millbeck.simulation import World
from millbeck.wire.messages.replicas import (
    AssignReplicasToDirsDirectoryResult,
    AssignReplicasToDirsPartitionResult,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    AssignReplicasToDirsTopicResult,
)

TOPIC_ID = bytes(range(16))
HERE, THERE = bytes([7]) * 16, bytes([8]) * 16


class Sending:
    def __init__(self) -> None:
        self.requests: list[AssignReplicasToDirsRequest] = []
        self.code: int | None = 0
        self.refused: set[int] = set()
        self.done: list[int] = []
        self.driver = DirectoryAssignments(self.send, node_id=3, broker_epoch=lambda: 33, spawn=asyncio.ensure_future)

    async def send(self, request: AssignReplicasToDirsRequest) -> AssignReplicasToDirsResponse:
        self.requests.append(request)
        await asyncio.sleep(0.01)
        if self.code is None:
            raise errors.NotController
        return AssignReplicasToDirsResponse(
            directories=[
                AssignReplicasToDirsDirectoryResult(
                    directory.id,
                    [
                        AssignReplicasToDirsTopicResult(
                            topic.topic_id,
                            [
                                AssignReplicasToDirsPartitionResult(
                                    each.partition_index,
                                    errors.UnknownServerError.code
                                    if each.partition_index in self.refused
                                    else self.code,
                                )
                                for each in topic.partitions
                            ],
                        )
                        for topic in directory.topics
                    ],
                )
                for directory in request.directories
            ]
        )

    def assign(self, index: int, directory: bytes = HERE) -> None:
        self.driver.assign(TopicIdPartition(TOPIC_ID, index), directory, lambda: self.done.append(index))


def run(scenario: Callable[[Sending], Coroutine[Any, Any, None]]) -> None:
    async def whole(environment: Any) -> None:
        await scenario(Sending())

    with World(1) as world:
        world.run(whole, limit_s=600)


def asked(request: AssignReplicasToDirsRequest) -> dict[bytes, list[int]]:
    return {
        directory.id: [each.partition_index for topic in directory.topics for each in topic.partitions]
        for directory in request.directories
    }


def test_assignments_travel_together_by_directory() -> None:
    async def scenario(sending: Sending) -> None:
        sending.assign(0)
        await asyncio.sleep(0.005)
        sending.assign(1)
        sending.assign(2, THERE)
        sending.assign(1, THERE)
        await asyncio.sleep(1)
        assert [asked(request) for request in sending.requests] == [{HERE: [0]}, {THERE: [1, 2]}]
        assert (sending.requests[0].broker_id, sending.requests[0].broker_epoch) == (3, 33)
        assert (sending.done, sending.driver.waiting_count) == ([0, 1, 2], 0)

    run(scenario)


def test_what_changes_while_it_is_on_its_way_is_sent_again() -> None:
    async def scenario(sending: Sending) -> None:
        sending.assign(0)
        await asyncio.sleep(0.005)
        sending.assign(0, THERE)
        await asyncio.sleep(1)
        assert [asked(request) for request in sending.requests] == [{HERE: [0]}, {THERE: [0]}]

    run(scenario)


@pytest.mark.parametrize("code", [None, errors.UnknownServerError.code])
def test_without_success_it_is_tried_again_later_and_later(code: int | None) -> None:
    async def scenario(sending: Sending) -> None:
        sending.code = code
        sending.assign(0)
        await asyncio.sleep(3)
        assert 4 <= len(sending.requests) <= 6
        assert sending.done == []
        sending.code = 0
        await asyncio.sleep(10)
        assert (sending.done, sending.driver.waiting_count) == ([0], 0)

    run(scenario)


@pytest.mark.parametrize("error", [errors.UnknownTopicId, errors.UnknownTopicOrPartition, errors.NotLeaderOrFollower])
def test_who_is_gone_is_forgotten(error: type[errors.ApiError]) -> None:
    async def scenario(sending: Sending) -> None:
        sending.code = error.code
        sending.assign(0)
        await asyncio.sleep(5)
        assert (len(sending.requests), sending.done, sending.driver.waiting_count) == (1, [], 0)

    run(scenario)


def test_a_request_has_its_limit() -> None:
    async def scenario(sending: Sending) -> None:
        for index in range(ASSIGNMENTS_MAX + 1):
            sending.assign(index)
        await asyncio.sleep(1)
        assert [len(asked(request)[HERE]) for request in sending.requests] == [ASSIGNMENTS_MAX, 1]

    run(scenario)


def test_what_is_refused_does_not_keep_the_others_from_being_assigned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("millbeck.server.replicas.directory_assignments.ASSIGNMENTS_MAX", 2)

    async def scenario(sending: Sending) -> None:
        sending.refused = {0, 1}
        for index in range(4):
            sending.assign(index)
        await asyncio.sleep(10)
        assert sending.driver.waiting_count == 2
        sending.refused = set()
        await asyncio.sleep(40)
        assert sending.driver.waiting_count == 0

    run(scenario)
