from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from millbeck.client.addresses import Address
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import InconsistentClusterId
from millbeck.raft.messages import EpochEnd, Response, VoteRequest
from millbeck.raft.voters import ReplicaKey
from millbeck.records.control import VoterEndpoint
from millbeck.server.metadata.quorum_settings import QuorumSettings
from millbeck.server.metadata.raft_peers import WAITING_MAX, RaftClient
from millbeck.simulation import World
from millbeck.wire.messages.quorum import VoteResponse

ASK = VoteRequest(epoch=1, candidate=ReplicaKey(1), log_end=EpochEnd(0, 0))
NOWHERE = VoterEndpoint(name="CONTROLLER", host="harness", port=9)


def test_every_question_has_one_answer_even_when_nobody_is_there() -> None:
    async def scenario(environment: Environment) -> None:
        peers = RaftClient(environment, QuorumSettings(), node_id=1, spawn=asyncio.ensure_future)
        answers: list[Response | None] = []
        for _ in range(WAITING_MAX + 5):
            peers.send(NOWHERE, ASK, answers.append)
        assert answers == []
        await asyncio.sleep(3)
        assert answers == [None] * (WAITING_MAX + 5)
        peers.close()
        peers.send(NOWHERE, ASK, answers.append)
        await asyncio.sleep(3)
        assert len(answers) == WAITING_MAX + 5

    with World(1) as world:
        world.run(scenario, limit_s=20)


def test_a_place_that_nobody_answers_at_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "millbeck.server.metadata.raft_peers")

    async def scenario(environment: Environment) -> None:
        peers = RaftClient(environment, QuorumSettings(), node_id=1, spawn=asyncio.ensure_future)
        for _ in range(3):
            peers.send(NOWHERE, ASK, lambda reply: None)
            await asyncio.sleep(3)
        peers.close()

    with World(1) as world:
        world.run(scenario, limit_s=20)
    assert [record.levelname for record in caplog.records] == ["INFO"]
    assert "the quorum member at harness:9 is unavailable" in caplog.text


def test_a_member_of_another_cluster_is_named_once_until_it_answers_as_one_of_this(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Answering:
        address = Address("harness", 9)
        error_code = InconsistentClusterId.code

        def submit(self, message: object, response: Any, wait_for_tasks: Any, **_: object) -> None:
            wait_for_tasks(VoteResponse(error_code=self.error_code))

    async def scenario(environment: Environment) -> None:
        settings = QuorumSettings(cluster_id="ours")
        peers = RaftClient(environment, settings, node_id=1, spawn=asyncio.ensure_future)
        line: Any = Answering()
        answers: list[Response | None] = []
        for error_code in (InconsistentClusterId.code, InconsistentClusterId.code, 0, InconsistentClusterId.code):
            line.error_code = error_code
            peers._submit(line, ASK, answers.append)
        assert answers == [None] * 4

    with World(1) as world:
        world.run(scenario, limit_s=20)
    told = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(told) == 2
    assert told[0].endswith("harness:9 is unavailable: its cluster id differs from this node's, ours")
