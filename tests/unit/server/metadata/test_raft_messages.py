"""Every question and answer survives its way over the wire, in every version that can say it."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.kernel.errors import InconsistentClusterId, InvalidRequest
from millbeck.raft.messages import (
    AddVoterAsk,
    Ask,
    BeginEpochAsk,
    EndEpochAsk,
    EpochEnd,
    FetchAsk,
    FetchReply,
    RemoveVoterAsk,
    Reply,
    SnapshotAsk,
    SnapshotKey,
    SnapshotReply,
    UpdateVoterAsk,
    VersionsAsk,
    VersionsReply,
    VoteAsk,
    VoteReply,
)
from millbeck.raft.voters import Leader, ReplicaKey
from millbeck.server.drivers import raft_wire
from millbeck.testing.raft.bench import directory, endpoint, voter
from millbeck.wire import codec
from millbeck.wire.api_keys import APIS
from millbeck.wire.messages.api_versions import ApiVersionsResponse, SupportedFeatureKey
from millbeck.wire.messages.vote import VoteRequest

TWO = ReplicaKey(2, directory(2))
LEADER = Leader(node_id=3, epoch=9, endpoint=endpoint(3))
VOTE = VoteAsk(epoch=7, candidate=TWO, log_end=EpochEnd(6, 55), is_pre_vote=True, voter=ReplicaKey(1, directory(1)))
FETCH = FetchAsk(epoch=7, replica=TWO, offset=12, last_epoch=6, high_watermark=10)
PART = SnapshotAsk(epoch=7, replica=TWO, snapshot=SnapshotKey(100, 6), position=4096)
BEGIN = BeginEpochAsk(epoch=7, leader_id=3, endpoints=(endpoint(3),), voter=ReplicaKey(1, directory(1)))
END = EndEpochAsk(epoch=7, leader_id=3, endpoints=(endpoint(3),), successors=(TWO, ReplicaKey(1, directory(1))))
ADD = AddVoterAsk(voter=voter(4, is_static=False), acknowledge_when_committed=False, timeout_ms=500)
UPDATE = UpdateVoterAsk(epoch=7, voter=voter(2))
REMOVE = RemoveVoterAsk(voter=TWO)


def over_the_wire(message: Any, version: int) -> Any:
    kind = type(message)
    return codec.decoder(kind, version)(codec.encoder(kind, version)(message))[0]


def versions(request: type[Any], least: int | None) -> range:
    (api,) = [api for api in APIS.values() if api.request is request]
    return range(least if least is not None else api.min_version, api.max_version + 1)


def ask_over(ask: Ask) -> raft_wire.Question:
    return raft_wire.question(ask, cluster_id="c", fetch_bytes_max=1000, snapshot_bytes_max=2000, wait_ms=500)


@pytest.mark.parametrize("ask", [VOTE, FETCH, PART, BEGIN, END, REMOVE, UPDATE], ids=lambda ask: type(ask).__name__)
def test_questions_arrive_as_they_were_asked(ask: Ask) -> None:
    asked = ask_over(ask)
    for version in versions(type(asked.message), asked.version_min):
        heard = raft_wire.ask_of(over_the_wire(asked.message, version), "c")
        if isinstance(ask, FetchAsk) and version < 18:
            continue
        assert heard == ask


def test_a_voter_to_be_added_has_not_said_its_versions() -> None:
    asked = ask_over(ADD)
    heard = raft_wire.ask_of(over_the_wire(asked.message, 1), "c")
    assert isinstance(heard, AddVoterAsk)
    assert (heard.voter.node_id, heard.voter.endpoints, heard.timeout_ms) == (4, ADD.voter.endpoints, 500)
    assert not heard.acknowledge_when_committed


ANSWERS = {
    "a vote": (VOTE, VoteReply(leader=LEADER, is_granted=True)),
    "no vote, no leader": (VOTE, VoteReply(error_code=74, leader=Leader(epoch=9))),
    "an epoch begun": (BEGIN, Reply(leader=LEADER)),
    "an epoch ended": (END, Reply(error_code=74, leader=LEADER)),
    "records": (FETCH, FetchReply(leader=LEADER, high_watermark=20, records=b"records")),
    "divergence": (FETCH, FetchReply(leader=LEADER, high_watermark=20, diverging=EpochEnd(4, 9))),
    "a snapshot is needed": (FETCH, FetchReply(leader=LEADER, high_watermark=20, snapshot=SnapshotKey(50, 3))),
    "a part": (
        PART,
        SnapshotReply(leader=LEADER, snapshot=SnapshotKey(100, 6), size_bytes=9000, position=4096, data=b"part"),
    ),
}


@pytest.mark.parametrize(("ask", "reply"), ANSWERS.values(), ids=ANSWERS.keys())
def test_answers_arrive_as_they_were_given(ask: Ask, reply: Reply) -> None:
    asked = ask_over(ask)
    for version in versions(type(asked.message), asked.version_min):
        response = over_the_wire(raft_wire.response_of(asked.message, reply), version)
        assert raft_wire.reply_of(response, ask, "CONTROLLER") == reply


def test_changes_of_voters_are_answered_with_an_error_or_none() -> None:
    for ask in (ADD, REMOVE, UPDATE):
        asked = ask_over(ask)
        response = raft_wire.response_of(asked.message, Reply(error_code=126, message="twice", leader=LEADER))
        assert raft_wire.reply_of(response, ask, "CONTROLLER") == Reply(error_code=126)


def test_an_answer_without_a_leader_is_of_the_epoch_it_was_asked_in() -> None:
    response = raft_wire.response_of(ask_over(FETCH).message, FetchReply(leader=Leader(epoch=0)))
    heard = raft_wire.reply_of(response, FETCH, "CONTROLLER")
    assert heard is not None
    assert heard.leader == Leader(epoch=7)


def test_versions_are_read_from_the_features() -> None:
    ask = VersionsAsk(replica=TWO)
    features = [SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)]
    response = ApiVersionsResponse(supported_features=features)
    assert raft_wire.reply_of(response, ask, "CONTROLLER") == VersionsReply(kraft_version_max=1)
    assert raft_wire.reply_of(ApiVersionsResponse(), ask, "CONTROLLER") == VersionsReply()


def test_what_is_not_about_this_quorum_is_refused() -> None:
    message: Any = ask_over(VOTE).message
    with pytest.raises(InconsistentClusterId):
        raft_wire.ask_of(message, "another")
    assert raft_wire.ask_of(message, "") == VOTE
    message.topics[0].topic_name = "t"
    with pytest.raises(InvalidRequest):
        raft_wire.ask_of(message, "c")
    with pytest.raises(InvalidRequest):
        raft_wire.ask_of(VoteRequest(topics=[]), "c")
    fetch: Any = ask_over(FETCH).message
    fetch.topics[0].partitions[0].partition = 1
    with pytest.raises(InvalidRequest):
        raft_wire.ask_of(fetch, "c")


def test_an_answer_that_says_nothing_is_none() -> None:
    response = raft_wire.response_of(ask_over(VOTE).message, VoteReply(leader=LEADER))
    response.topics = []
    assert raft_wire.reply_of(response, VOTE, "CONTROLLER") is None
    response.error_code = 104
    assert raft_wire.reply_of(response, VOTE, "CONTROLLER") is None
