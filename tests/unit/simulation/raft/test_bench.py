from __future__ import annotations

from millbeck.raft.effects import AppendControl, SendRequest
from millbeck.raft.messages import VoteRequest
from millbeck.raft.roles import Role
from millbeck.simulation.raft.bench import BenchMember, asks, only


def test_a_member_carries_out_what_it_does_to_its_log() -> None:
    member = BenchMember(1, voters=(1,))
    effects = member.start()
    assert len(only(effects, AppendControl)) == 1
    assert member.log.end_offset == 1
    member.propose(2)
    assert (member.log.end_offset, member.log.flushed_offset) == (3, 0)
    member.flush()
    assert member.machine.high_watermark == 3


def test_time_passes_to_the_next_deadline() -> None:
    member = BenchMember(1)
    member.draws = [400]
    member.start()
    effects = member.let_time_pass()
    assert (member.now_ms, member.role) == (2_400, Role.PROSPECTIVE)
    assert len(only(effects, SendRequest)) == len(asks(effects, VoteRequest)) == 2
