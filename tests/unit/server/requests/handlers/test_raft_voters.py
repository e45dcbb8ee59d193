from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from millbeck.kernel.errors import ClusterAuthorizationFailed, DuplicateVoter
from millbeck.raft.messages import AddVoterRequest, RemoveVoterRequest, Request, Response
from millbeck.raft.voters import ReplicaKey
from millbeck.security.authorizer import Operation
from millbeck.server.requests.handlers.raft_voters import handle_add_raft_voter, handle_remove_raft_voter
from millbeck.wire.messages.quorum import AddRaftVoterRequest, Listener, RemoveRaftVoterRequest

ADD = AddRaftVoterRequest("c", 100, 4, b"d" * 16, [Listener("CONTROLLER", "c4", 9093)])


def calling(asked: list[Request], operation: Operation = Operation.ALTER) -> Any:
    async def ask(question: Request) -> Response:
        asked.append(question)
        return Response(error_code=DuplicateVoter.code, message="twice")

    broker = SimpleNamespace(quorum=SimpleNamespace(ask=ask), cluster_id="c")
    return SimpleNamespace(broker=broker, may=lambda needed, *_: needed is operation, version=1)


def test_an_administrator_adds_and_removes() -> None:
    asked: list[Request] = []
    response = asyncio.run(handle_add_raft_voter.run(calling(asked), ADD))
    assert (response.error_code, response.error_message) == (DuplicateVoter.code, "twice")
    removal = RemoveRaftVoterRequest("c", 4, b"d" * 16)
    response = asyncio.run(handle_remove_raft_voter.run(calling(asked), removal))
    assert response.error_code == DuplicateVoter.code
    assert isinstance(asked[0], AddVoterRequest)
    assert asked[1] == RemoveVoterRequest(voter=ReplicaKey(4, b"d" * 16))


def test_others_may_not() -> None:
    asked: list[Request] = []
    with pytest.raises(ClusterAuthorizationFailed):
        asyncio.run(handle_add_raft_voter.run(calling(asked, Operation.CLUSTER_ACTION), ADD))
    response = handle_add_raft_voter.error_reply(None, 1, ClusterAuthorizationFailed("no"))
    assert (response.error_code, response.error_message) == (ClusterAuthorizationFailed.code, "no")
