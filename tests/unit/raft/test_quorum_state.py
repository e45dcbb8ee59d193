from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millbeck.raft.quorum_state import QuorumState, QuorumStateError, parse_quorum_state

# The files that Apache Kafka 4.3 leaves: static voters (version 0) and voters in the log (version 1).
KAFKA_VERSION_0 = (
    '{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,'
    '"currentVoters":[{"voterId":1}],"data_version":0}'
)
KAFKA_VERSION_1 = (
    '{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
)


def test_the_text_is_kafkas() -> None:
    static = QuorumState(leader_epoch=1, leader_id=1, current_voters=(1,))
    assert static.to_text() == KAFKA_VERSION_0
    assert parse_quorum_state(KAFKA_VERSION_0) == static
    dynamic = QuorumState(version=1, leader_epoch=1, leader_id=1)
    assert dynamic.to_text() == KAFKA_VERSION_1
    assert parse_quorum_state(KAFKA_VERSION_1) == dynamic


EPOCHS = st.integers(0, 2**31 - 1)
NODES = st.integers(-1, 2**31 - 1)


@given(EPOCHS, NODES, NODES, st.lists(NODES, max_size=5))
def test_version_0_comes_back_as_it_was(epoch: int, leader: int, voted: int, voters: list[int]) -> None:
    state = QuorumState(leader_epoch=epoch, leader_id=leader, voted_id=voted, current_voters=tuple(voters))
    assert parse_quorum_state(state.to_text()) == state


@given(EPOCHS, NODES, st.binary(min_size=16, max_size=16))
def test_version_1_comes_back_as_it_was(epoch: int, voted: int, directory: bytes) -> None:
    state = QuorumState(version=1, leader_epoch=epoch, voted_id=voted, voted_directory_id=directory)
    assert parse_quorum_state(state.to_text()) == state


def test_fields_that_may_be_null_or_absent() -> None:
    text = '{"clusterId":null,"leaderId":-1,"leaderEpoch":4,"votedId":2,"currentVoters":null,"data_version":0}'
    assert parse_quorum_state(text) == QuorumState(leader_epoch=4, voted_id=2)


REFUSED = {
    "empty": "",
    "no object": "[]",
    "no version": '{"leaderId":1,"leaderEpoch":1,"votedId":-1}',
    "of the future": KAFKA_VERSION_1.replace('"data_version":1', '"data_version":2'),
    "no epoch": '{"leaderId":1,"votedId":-1,"data_version":0}',
    "epoch is text": KAFKA_VERSION_0.replace('"leaderEpoch":1', '"leaderEpoch":"1"'),
    "leader is true": KAFKA_VERSION_0.replace('"leaderId":1', '"leaderId":true'),
    "voters are numbers": KAFKA_VERSION_0.replace('[{"voterId":1}]', "[1]"),
    "bad directory": KAFKA_VERSION_1.replace("AAAAAAAAAAAAAAAAAAAAAA", "AAAA"),
    "cut off": KAFKA_VERSION_0[:-1],
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED.keys())
def test_what_can_not_be_trusted_is_a_fault(text: str) -> None:
    with pytest.raises(QuorumStateError):
        parse_quorum_state(text)
