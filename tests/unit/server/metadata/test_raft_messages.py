"""Every question and answer survives its way over the wire, in every version that can say it."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.kernel.errors import InconsistentClusterId, InvalidRequest
from millbeck.raft.messages import (
    AddVoterRequest,
    BeginEpochRequest,
    EndEpochRequest,
    EpochEnd,
    FetchRequest,
    FetchResponse,
    RemoveVoterRequest,
    Request,
    Response,
    SnapshotKey,
    SnapshotRequest,
    SnapshotResponse,
    UpdateVoterRequest,
    VersionsRequest,
    VersionsResponse,
    VoteRequest,
    VoteResponse,
)
from millbeck.raft.voters import Leader, ReplicaKey
from millbeck.server.metadata import raft_messages
from millbeck.simulation.raft.bench import directory, endpoint, voter
from millbeck.wire import codec
from millbeck.wire.api_keys import APIS
from millbeck.wire.messages import quorum as quorum_messages
from millbeck.wire.messages.metadata import ApiVersionsResponse, SupportedFeatureKey

TWO = ReplicaKey(2, directory(2))
LEADER = Leader(node_id=3, epoch=9, endpoint=endpoint(3))
VOTE = VoteRequest(epoch=7, candidate=TWO, log_end=EpochEnd(6, 55), is_pre_vote=True, voter=ReplicaKey(1, directory(1)))
FETCH = FetchRequest(epoch=7, replica=TWO, offset=12, last_epoch=6, high_watermark=10)
PART = SnapshotRequest(epoch=7, replica=TWO, snapshot=SnapshotKey(100, 6), position=4096)
BEGIN = BeginEpochRequest(epoch=7, leader_id=3, endpoints=(endpoint(3),), voter=ReplicaKey(1, directory(1)))
END = EndEpochRequest(epoch=7, leader_id=3, endpoints=(endpoint(3),), successors=(TWO, ReplicaKey(1, directory(1))))
ADD = AddVoterRequest(voter=voter(4, is_static=False), acknowledge_when_committed=False, timeout_ms=500)
UPDATE = UpdateVoterRequest(epoch=7, voter=voter(2))
REMOVE = RemoveVoterRequest(voter=TWO)


def over_the_wire(message: Any, version: int) -> Any:
    kind = type(message)
    return codec.decoder(kind, version)(codec.encoder(kind, version)(message))[0]


def versions(request: type[Any], least: int | None) -> range:
    (api,) = [api for api in APIS.values() if api.request is request]
    return range(least if least is not None else api.min_version, api.max_version + 1)


def ask_over(ask: Request) -> raft_messages.OutgoingRequest:
    return raft_messages.to_wire_request(
        ask, cluster_id="c", fetch_bytes_max=1000, snapshot_bytes_max=2000, wait_ms=500
    )


@pytest.mark.parametrize("ask", [VOTE, FETCH, PART, BEGIN, END, REMOVE, UPDATE], ids=lambda ask: type(ask).__name__)
def test_questions_arrive_as_they_were_asked(ask: Request) -> None:
    asked = ask_over(ask)
    for version in versions(type(asked.message), asked.version_min):
        heard = raft_messages.ask_of(over_the_wire(asked.message, version), "c")
        if isinstance(ask, FetchRequest) and version < 18:
            continue
        assert heard == ask


def test_a_voter_to_be_added_has_not_said_its_versions() -> None:
    asked = ask_over(ADD)
    heard = raft_messages.ask_of(over_the_wire(asked.message, 1), "c")
    assert isinstance(heard, AddVoterRequest)
    assert (heard.voter.node_id, heard.voter.endpoints, heard.timeout_ms) == (4, ADD.voter.endpoints, 500)
    assert not heard.acknowledge_when_committed


ANSWERS = {
    "a vote": (VOTE, VoteResponse(leader=LEADER, is_granted=True)),
    "no vote, no leader": (VOTE, VoteResponse(error_code=74, leader=Leader(epoch=9))),
    "an epoch begun": (BEGIN, Response(leader=LEADER)),
    "an epoch ended": (END, Response(error_code=74, leader=LEADER)),
    "records": (FETCH, FetchResponse(leader=LEADER, high_watermark=20, records=b"records")),
    "divergence": (FETCH, FetchResponse(leader=LEADER, high_watermark=20, diverging=EpochEnd(4, 9))),
    "a snapshot is needed": (FETCH, FetchResponse(leader=LEADER, high_watermark=20, snapshot=SnapshotKey(50, 3))),
    "a part": (
        PART,
        SnapshotResponse(leader=LEADER, snapshot=SnapshotKey(100, 6), size_bytes=9000, position=4096, data=b"part"),
    ),
}


@pytest.mark.parametrize(("ask", "reply"), ANSWERS.values(), ids=ANSWERS.keys())
def test_answers_arrive_as_they_were_given(ask: Request, reply: Response) -> None:
    asked = ask_over(ask)
    for version in versions(type(asked.message), asked.version_min):
        response = over_the_wire(raft_messages.to_wire_response(asked.message, reply), version)
        assert raft_messages.from_wire_response(response, ask, "CONTROLLER") == reply


def test_changes_of_voters_are_answered_with_an_error_or_none() -> None:
    for ask in (ADD, REMOVE, UPDATE):
        asked = ask_over(ask)
        response = raft_messages.to_wire_response(
            asked.message, Response(error_code=126, message="twice", leader=LEADER)
        )
        assert raft_messages.from_wire_response(response, ask, "CONTROLLER") == Response(error_code=126)


def test_an_answer_without_a_leader_is_of_the_epoch_it_was_asked_in() -> None:
    response = raft_messages.to_wire_response(ask_over(FETCH).message, FetchResponse(leader=Leader(epoch=0)))
    heard = raft_messages.from_wire_response(response, FETCH, "CONTROLLER")
    assert heard is not None
    assert heard.leader == Leader(epoch=7)


def test_versions_are_read_from_the_features() -> None:
    ask = VersionsRequest(replica=TWO)
    features = [SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)]
    response = ApiVersionsResponse(supported_features=features)
    assert raft_messages.from_wire_response(response, ask, "CONTROLLER") == VersionsResponse(kraft_version_max=1)
    assert raft_messages.from_wire_response(ApiVersionsResponse(), ask, "CONTROLLER") == VersionsResponse()


def test_what_is_not_about_this_quorum_is_refused() -> None:
    message: Any = ask_over(VOTE).message
    with pytest.raises(InconsistentClusterId):
        raft_messages.ask_of(message, "another")
    assert raft_messages.ask_of(message, "") == VOTE
    message.topics[0].topic_name = "t"
    with pytest.raises(InvalidRequest):
        raft_messages.ask_of(message, "c")
    with pytest.raises(InvalidRequest):
        raft_messages.ask_of(quorum_messages.VoteRequest(topics=[]), "c")
    fetch: Any = ask_over(FETCH).message
    fetch.topics[0].partitions[0].partition = 1
    with pytest.raises(InvalidRequest):
        raft_messages.ask_of(fetch, "c")


def test_an_answer_that_says_nothing_is_none() -> None:
    response = raft_messages.to_wire_response(ask_over(VOTE).message, VoteResponse(leader=LEADER))
    response.topics = []
    assert raft_messages.from_wire_response(response, VOTE, "CONTROLLER") is None
    response.error_code = 104
    assert raft_messages.from_wire_response(response, VOTE, "CONTROLLER") is None
