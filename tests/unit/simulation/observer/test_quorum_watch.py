"""The rules of the quorum, told to a watch by stand-ins for the members' parts."""

from __future__ import annotations

import asyncio
import random
from types import SimpleNamespace
from typing import Any

import pytest

from millbeck.raft.messages import EpochEnd, VoteRequest, VoteResponse
from millbeck.raft.voters import Leader, ReplicaKey
from millbeck.simulation.environment.disk import SimDisk
from millbeck.simulation.observer.findings import InvariantBroken, Violations
from millbeck.simulation.observer.quorum_watch import QuorumFacts, QuorumMemberChecker


class Quorum:
    """As much of a `QuorumDriver` as is looked at."""

    def __init__(self, epoch: int, *, is_leader: bool = False) -> None:
        self.log = SimpleNamespace(segments=[], end_offset=0, flushed_offset=0, log_start_offset=0)
        self.machine = SimpleNamespace(
            epoch=epoch, is_leader=is_leader, high_watermark=-1, key=ReplicaKey(1, bytes(16)), history=None
        )

    async def ask(self, ask: VoteRequest) -> VoteResponse:
        return VoteResponse(leader=Leader(epoch=ask.epoch), is_granted=True)

    def _send(self, effect: Any) -> None:
        pass


def watch(facts: QuorumFacts, quorum: Quorum, name: str = "c1/1", told_epoch: int = -1) -> QuorumMemberChecker:
    return QuorumMemberChecker(facts, 1, name, SimDisk(random.Random(1)), quorum, told_epoch)  # type: ignore[arg-type]


def facts() -> QuorumFacts:
    return QuorumFacts(Violations(lambda: 1.0))


def vote_for(node_id: int, epoch: int) -> VoteRequest:
    return VoteRequest(epoch=epoch, candidate=ReplicaKey(node_id, bytes(16)), log_end=EpochEnd(epoch=0, end_offset=0))


def test_an_epoch_is_led_by_one_process() -> None:
    known = facts()
    quorum = Quorum(3, is_leader=True)
    known.leaders[3] = "c2/1"
    looking = watch(known, quorum)
    looking._has_begun = True
    with pytest.raises(InvariantBroken, match="R1 on c1/1"):
        looking.check()


def test_nobody_votes_twice_in_an_epoch() -> None:
    known = facts()
    quorum = Quorum(3)
    watch(known, quorum)

    async def vote() -> None:
        await quorum.ask(vote_for(2, 3))
        await quorum.ask(vote_for(2, 3))
        await quorum.ask(vote_for(3, 4))
        with pytest.raises(InvariantBroken, match="R2"):
            await quorum.ask(vote_for(3, 3))

    asyncio.run(vote())
    assert known.votes[1, bytes(16), 4].node_id == 3


def test_an_epoch_that_was_told_is_not_forgotten() -> None:
    looking = watch(facts(), Quorum(3), told_epoch=5)
    with pytest.raises(InvariantBroken, match="R7"):
        looking.check()


def test_a_high_watermark_does_not_go_back_and_a_leader_cuts_nothing() -> None:
    quorum = Quorum(3)
    looking = watch(facts(), quorum)
    looking._has_begun = True
    looking._high_watermark = 7
    quorum.machine.high_watermark = 6
    with pytest.raises(InvariantBroken, match="R7"):
        looking.check()
    quorum.machine.is_leader, looking._leader_epoch = True, 3
    looking._shadow.end_offset = 4
    with pytest.raises(InvariantBroken, match="R5"):
        looking.check()
