"""AlterReplicaLogDirs and what DescribeLogDirs says of it."""

from __future__ import annotations

import asyncio
from typing import Any

from millbeck.kernel import errors
from millbeck.kernel.environment import Environment
from millbeck.security.authorizer import Operation
from millbeck.server.requests.handlers.replica_log_dirs import error_reply
from millbeck.wire.messages.replicas import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
    DescribeLogDirsRequest,
)
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import create, deny, partition_of, produce


def asking(path: str, *indexes: int, topic: str = "t") -> AlterReplicaLogDirsRequest:
    return AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path, [AlterReplicaLogDirTopic(topic, list(indexes))])])


def codes(response: Any) -> list[int]:
    return [result.error_code for topic in response.results for result in topic.partitions]


def test_a_move_is_begun_shown_and_done() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        await produce(client, b"x")
        assert harness.node is not None
        logs = harness.node.broker.logs
        before = logs.directory_of(partition_of(harness).name)
        assert before is not None
        target = "/two" if before.path == "/one" else "/one"
        assert codes(await client.ask(asking(target, 0), 2)) == [0]
        described = await client.ask(DescribeLogDirsRequest(topics=None), 4)
        shown = {
            (result.log_dir, each.is_future_key, each.offset_lag)
            for result in described.results
            for topic in result.topics
            for each in topic.partitions
        }
        assert shown == {(before.path, False, 0), (target, True, 1)}
        await asyncio.sleep(1)
        after = logs.directory_of(partition_of(harness).name)
        assert after is not None
        assert after.path == target

    BrokerHarness(log_dirs="/one,/two").run(scenario)


def test_each_partition_has_its_own_outcome() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        assert codes(await client.ask(asking("/data", 0, 7), 1)) == [0, errors.ReplicaNotAvailable.code]
        assert codes(await client.ask(asking("/none", 0), 2)) == [errors.LogDirNotFound.code]
        assert codes(await client.ask(asking("/data", 0, topic="none"), 2)) == [errors.ReplicaNotAvailable.code]
        deny(harness, Operation.ALTER)
        assert codes(await client.ask(asking("/data", 0), 2)) == [errors.ClusterAuthorizationFailed.code]

    BrokerHarness().run(scenario)


def test_an_error_of_the_whole_is_one_of_each() -> None:
    response = error_reply(asking("/data", 0, 1), 2, errors.UnknownServerError())
    assert response is not None
    assert codes(response) == [-1, -1]
    assert error_reply(None, 2, errors.UnknownServerError()) is None
