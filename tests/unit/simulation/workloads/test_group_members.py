from __future__ import annotations

import asyncio
import random
from typing import Any

from millbeck.kernel.errors import FencedMemberEpoch
from millbeck.simulation.histories.group_history import GroupHistory
from millbeck.simulation.workloads.group_members import GroupMemberBehaviour, SimGroupMember
from millbeck.wire.messages.consumer_groups import (
    ConsumerAssignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatTopicPartitions,
)

T = b"t" * 16
P, Q = (T, 0), (T, 1)


class Broker:
    """Answers heartbeats from a list, and takes nothing else."""

    def __init__(self, *answers: ConsumerGroupHeartbeatResponse) -> None:
        self.answers = list(answers)
        self.requests: list[Any] = []

    async def coordinator(self, group_id: str, *, deadline: Any) -> int:
        return 1

    async def request(self, request: Any, response: Any, **_: Any) -> Any:
        self.requests.append(request)
        if isinstance(request, ConsumerGroupHeartbeatRequest) and self.answers:
            return self.answers.pop(0)
        raise asyncio.CancelledError

    def forget_coordinator(self, group_id: str) -> None:
        return


def answer(epoch: int, *partitions: int, code: int = 0) -> ConsumerGroupHeartbeatResponse:
    given = ConsumerAssignment([ConsumerGroupHeartbeatTopicPartitions(T, list(partitions))]) if partitions else None
    return ConsumerGroupHeartbeatResponse(code, member_epoch=epoch, heartbeat_interval_ms=1, assignment=given)


async def beats(broker: Broker, count: int) -> SimGroupMember:
    member = SimGroupMember(
        broker,  # type: ignore[arg-type]
        GroupHistory(),
        random.Random(1),
        group_id="g",
        member_id="m",
        topics=["t"],
        behaviour=GroupMemberBehaviour(revoke_s=0),
    )
    for _ in range(count):
        await member._beat()
    return member


def test_a_member_says_what_it_owns_and_takes_what_it_is_given() -> None:
    broker = Broker(ConsumerGroupHeartbeatResponse(member_epoch=1, heartbeat_interval_ms=1), answer(1), answer(1))
    broker.answers[0].assignment = answer(1, 0, 1).assignment
    broker.answers[1].assignment = answer(1, 1).assignment
    member = asyncio.run(beats(broker, 3))
    assert list(member.owned) == [Q]
    owned = [[topic.partitions for topic in request.topic_partitions] for request in broker.requests]
    assert owned == [[], [[0, 1]], [[1]]]
    assert [request.subscribed_topic_names for request in broker.requests] == [["t"], None, None]


def test_a_fenced_member_starts_over() -> None:
    fenced = ConsumerGroupHeartbeatResponse(error_code=FencedMemberEpoch.code)
    broker = Broker(answer(3), fenced, fenced)

    async def live() -> SimGroupMember:
        member = await beats(broker, 1)
        member.is_calm = True
        try:
            await member.live()
        except asyncio.CancelledError:
            return member
        raise AssertionError

    member = asyncio.run(live())
    assert (member.epoch, member.owned) == (0, {})
    assert broker.requests[-1].member_epoch == 0


def test_a_member_that_leaves_says_so() -> None:
    async def leave() -> Broker:
        broker = Broker(answer(3), answer(-1))
        await (await beats(broker, 1)).leave()
        return broker

    assert asyncio.run(leave()).requests[-1].member_epoch == -1
