from __future__ import annotations

import asyncio

from millbeck.kernel.environment import Environment
from millbeck.raft.messages import EpochEnd, Reply, VoteAsk
from millbeck.raft.voters import ReplicaKey
from millbeck.records.control import VoterEndpoint
from millbeck.server.drivers.quorum_settings import QuorumSettings
from millbeck.server.drivers.raft_peers import WAITING_MAX, RaftPeers
from millbeck.testing.sim import World

ASK = VoteAsk(epoch=1, candidate=ReplicaKey(1), log_end=EpochEnd(0, 0))
NOWHERE = VoterEndpoint(name="CONTROLLER", host="harness", port=9)


def test_every_question_has_one_answer_even_when_nobody_is_there() -> None:
    async def scenario(environment: Environment) -> None:
        peers = RaftPeers(environment, QuorumSettings(), node_id=1, spawn=asyncio.ensure_future)
        answers: list[Reply | None] = []
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
