"""The quorum's requests at the door: who may ask, and what errors look like."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from millbeck.kernel.errors import ClusterAuthorizationFailed, InconsistentClusterId
from millbeck.raft.messages import BeginEpochRequest, Request, Response
from millbeck.raft.voters import Leader
from millbeck.security.authorizer import Operation
from millbeck.server.metadata import raft_messages
from millbeck.server.requests.handlers.raft import RAFT_ROUTES, handle_begin_quorum_epoch, handle_update_raft_voter
from millbeck.wire.messages.quorum import BeginQuorumEpochResponse

ASK = BeginEpochRequest(epoch=4, leader_id=2)


class Quorum:
    def __init__(self) -> None:
        self.asked: list[Request] = []

    async def ask(self, ask: Request) -> Response:
        self.asked.append(ask)
        return Response(error_code=74, leader=Leader(node_id=3, epoch=9))


def calling(quorum: Quorum, *allowed: Operation, cluster_id: str = "c") -> Any:
    broker = SimpleNamespace(quorum=quorum, cluster_id=cluster_id)
    return SimpleNamespace(broker=broker, may=lambda operation, *_: operation in allowed, version=1)


def request() -> Any:
    return raft_messages.to_wire_request(
        ASK, cluster_id="c", fetch_bytes_max=1, snapshot_bytes_max=1, wait_ms=1
    ).message


def test_the_quorum_is_asked_and_its_answer_is_given() -> None:
    quorum = Quorum()
    response = asyncio.run(handle_begin_quorum_epoch.run(calling(quorum, Operation.CLUSTER_ACTION), request()))
    assert isinstance(response, BeginQuorumEpochResponse)
    (partition,) = response.topics[0].partitions
    assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (74, 3, 9)
    assert quorum.asked == [ASK]


def test_only_nodes_of_this_cluster_may_ask() -> None:
    quorum = Quorum()
    with pytest.raises(ClusterAuthorizationFailed):
        asyncio.run(handle_begin_quorum_epoch.run(calling(quorum, Operation.ALTER), request()))
    call = calling(quorum, Operation.CLUSTER_ACTION, cluster_id="other")
    with pytest.raises(InconsistentClusterId):
        asyncio.run(handle_begin_quorum_epoch.run(call, request()))
    assert quorum.asked == []


def test_errors_stand_at_the_top() -> None:
    assert sorted(route.api_key for route in RAFT_ROUTES) == [1, 52, 53, 54, 59, 82]
    for route in RAFT_ROUTES:
        response = route.error_reply(None, route.max_version, ClusterAuthorizationFailed("no"))
        assert response.error_code == ClusterAuthorizationFailed.code
    assert handle_update_raft_voter.api_key == 82
