"""Proposals on their way to the controller: together, again, and what each answer means."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any, cast

import pytest

from millbeck.kernel import errors
from millbeck.kernel.ids import TopicPartition
from millbeck.kernel.isolation import Isolation
from millbeck.replication.isr import IsrMember, IsrProposal
from millbeck.server.replicas.isr_changes import PARTITIONS_MAX, IsrChangeDriver
from millbeck.simulation import World
from millbeck.wire.messages.replicas import (
    AlterPartitionPartitionResult,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionTopicResult,
)


class Replicas:
    def __init__(self) -> None:
        self.isr = (1,)
        self.pending: IsrProposal | None = None


class StandIn:
    """What the driver asks of a partition."""

    def __init__(self, index: int = 0, topic_id: bytes = bytes(16)) -> None:
        self.name = TopicPartition("t", index)
        self.topic_id = topic_id
        self.replicas = Replicas()
        self.answers: list[Any] = []
        self.checks = 0

    def proposal(self, isr: tuple[int, ...] = (1, 2), partition_epoch: int = 7) -> IsrProposal:
        members = tuple(IsrMember(each, each * 10) for each in isr)
        self.replicas.pending = IsrProposal(members, 3, partition_epoch, grows=len(isr) > 1)
        return self.replicas.pending

    def on_alter_partition_response(self, proposal: IsrProposal, isr: tuple[int, ...], partition_epoch: int) -> None:
        self.replicas.pending = None
        self.answers.append((isr, partition_epoch))

    def on_alter_partition_error(self, proposal: IsrProposal) -> None:
        self.replicas.pending = None
        self.answers.append("refused")

    def maybe_shrink_isr(self) -> None:
        self.checks += 1


class Sending:
    def __init__(self, environment: Any) -> None:
        self.requests: list[AlterPartitionRequest] = []
        self.reply: Callable[[AlterPartitionRequest], AlterPartitionResponse] = accepted
        self.partitions: list[Any] = []
        self.driver = IsrChangeDriver(
            cast(
                Any,
                SimpleNamespace(
                    environment=environment,
                    node_id=1,
                    topics=SimpleNamespace(all_partitions=lambda: self.partitions),
                    spawn=asyncio.ensure_future,
                    isolation=Isolation(),
                ),
            ),
            self.send,
            broker_epoch=lambda: 11,
            lag_ms_max=lambda: 30_000,
        )

    async def send(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        self.requests.append(request)
        await asyncio.sleep(0.01)
        return self.reply(request)


def answering(code: int = 0) -> Callable[[AlterPartitionRequest], AlterPartitionResponse]:
    def reply(request: AlterPartitionRequest) -> AlterPartitionResponse:
        return AlterPartitionResponse(
            topics=[
                AlterPartitionTopicResult(
                    topic.topic_id,
                    [
                        AlterPartitionPartitionResult(
                            each.partition_index,
                            code,
                            leader_epoch=each.leader_epoch,
                            isr=[member.broker_id for member in each.new_isr_with_epochs],
                            partition_epoch=each.partition_epoch + 1,
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    return reply


accepted = answering()


def run(scenario: Callable[[Sending], Coroutine[Any, Any, None]]) -> None:
    async def whole(environment: Any) -> None:
        await scenario(Sending(environment))

    with World(1) as world:
        world.run(whole, limit_s=600)


def test_what_is_proposed_goes_to_the_controller_with_all_epochs() -> None:
    async def scenario(sending: Sending) -> None:
        one: Any = StandIn()
        sending.driver.propose(one, one.proposal())
        await asyncio.sleep(1)
        (request,) = sending.requests
        assert (request.broker_id, request.broker_epoch) == (1, 11)
        (asked,) = request.topics[0].partitions
        assert (asked.leader_epoch, asked.partition_epoch) == (3, 7)
        assert [(each.broker_id, each.broker_epoch) for each in asked.new_isr_with_epochs] == [(1, 10), (2, 20)]
        assert one.answers == [((1, 2), 8)]
        assert (sending.driver.expansions, sending.driver.shrinks, sending.driver.failures) == (1, 0, 0)

    run(scenario)


def test_proposals_made_meanwhile_travel_together() -> None:
    async def scenario(sending: Sending) -> None:
        partitions: list[Any] = [StandIn(index) for index in range(4)]
        sending.driver.propose(partitions[0], partitions[0].proposal())
        await asyncio.sleep(0.005)
        for each in partitions[1:]:
            sending.driver.propose(each, each.proposal())
        await asyncio.sleep(1)
        assert [sum(len(topic.partitions) for topic in request.topics) for request in sending.requests] == [1, 3]
        assert all(each.answers == [((1, 2), 8)] for each in partitions)

    run(scenario)


def test_a_request_names_so_many_partitions_and_the_next_ones_the_others() -> None:
    async def scenario(sending: Sending) -> None:
        partitions: list[Any] = [StandIn(index) for index in range(2 * PARTITIONS_MAX + 10)]
        for partition in partitions:
            sending.driver.propose(partition, partition.proposal())
        # Those that nobody wants any more take no room.
        for partition in partitions[:10]:
            partition.replicas.pending = None
        await asyncio.sleep(1)
        named = [[each.partition_index for each in request.topics[0].partitions] for request in sending.requests]
        assert list(map(len, named)) == [PARTITIONS_MAX] * 2
        assert [index for some in named for index in some] == list(range(10, len(partitions)))
        assert all(partition.answers for partition in partitions[10:])

    run(scenario)


def test_without_an_answer_it_is_sent_again_as_long_as_it_is_wanted() -> None:
    async def scenario(sending: Sending) -> None:
        one: Any = StandIn()

        def refuse(request: AlterPartitionRequest) -> AlterPartitionResponse:
            raise errors.NotController

        sending.reply = refuse
        sending.driver.propose(one, one.proposal())
        await asyncio.sleep(1)
        tries = len(sending.requests)
        assert 3 <= tries <= 6, "later and later"
        one.replicas.pending = None
        await asyncio.sleep(5)
        assert len(sending.requests) == tries
        sending.reply = accepted
        sending.driver.propose(one, one.proposal())
        await asyncio.sleep(1)
        assert one.answers == [((1, 2), 8)]

    run(scenario)


NEWER_CODE = 9999
"""An error that this release has not heard of."""


@pytest.mark.parametrize("how", ["top", "partition", "missing", "top unknown", "partition unknown"])
def test_a_passing_error_is_tried_again(how: str) -> None:
    async def scenario(sending: Sending) -> None:
        one: Any = StandIn()
        sending.reply = {
            "top": lambda request: AlterPartitionResponse(error_code=errors.StaleBrokerEpoch.code),
            "partition": answering(errors.UnknownServerError.code),
            "missing": lambda request: AlterPartitionResponse(),
            "top unknown": lambda request: AlterPartitionResponse(error_code=NEWER_CODE),
            "partition unknown": answering(NEWER_CODE),
        }[how]
        sending.driver.propose(one, one.proposal())
        await asyncio.sleep(1)
        assert one.answers == []
        sending.reply = accepted
        await asyncio.sleep(3)
        assert one.answers == [((1, 2), 8)]

    run(scenario)


def test_an_ineligible_replica_is_withdrawn_at_once() -> None:
    async def scenario(sending: Sending) -> None:
        one: Any = StandIn()
        sending.reply = answering(errors.IneligibleReplica.code)
        sending.driver.propose(one, one.proposal())
        await asyncio.sleep(1)
        assert one.answers == ["refused"]
        assert sending.driver.failures == 1

    run(scenario)


@pytest.mark.parametrize("error", [errors.InvalidUpdateVersion, errors.FencedLeaderEpoch, errors.NewLeaderElected])
def test_what_the_controller_knows_better_is_waited_for_in_the_metadata(error: type[errors.ApiError]) -> None:
    async def scenario(sending: Sending) -> None:
        one: Any = StandIn()
        sending.reply = answering(error.code)
        sending.driver.propose(one, one.proposal())
        await asyncio.sleep(1)
        assert (one.answers, len(sending.requests)) == ([], 1)
        await sending.driver.check()
        await asyncio.sleep(1)
        assert (one.answers, len(sending.requests)) == ([], 2), "it may have been committed: it stays in force"
        one.replicas.pending = None
        await sending.driver.check()
        await asyncio.sleep(1)
        assert len(sending.requests) == 2, "the metadata has brought what the controller knew"

    run(scenario)


def test_what_the_controller_knew_and_never_committed_is_taken_the_next_time() -> None:
    async def scenario(sending: Sending) -> None:
        one: Any = StandIn()
        sending.reply = answering(errors.InvalidUpdateVersion.code)
        sending.driver.propose(one, one.proposal())
        await asyncio.sleep(1)
        sending.reply = accepted
        await sending.driver.check()
        await asyncio.sleep(1)
        assert one.answers == [((1, 2), 8)]

    run(scenario)


def test_what_makes_no_sense_to_the_controller_is_withdrawn_at_the_next_look() -> None:
    async def scenario(sending: Sending) -> None:
        one: Any = StandIn()
        sending.reply = answering(errors.InvalidRequest.code)
        sending.driver.propose(one, one.proposal())
        await asyncio.sleep(1)
        assert one.answers == []
        await sending.driver.check()
        assert (one.answers, len(sending.requests)) == (["refused"], 1)

    run(scenario)


def test_followers_are_looked_at_twice_in_the_time_they_may_lag() -> None:
    async def scenario(sending: Sending) -> None:
        one: Any = StandIn()
        sending.partitions.append(one)
        sending.driver.start()
        await asyncio.sleep(14)
        assert one.checks == 0
        await asyncio.sleep(47)
        assert one.checks == 4

    run(scenario)


def test_one_bad_partition_does_not_keep_the_others_from_being_looked_at_and_answered() -> None:
    class Bad(StandIn):
        is_bad = True

        def maybe_shrink_isr(self) -> None:
            super().maybe_shrink_isr()
            raise ValueError(self.name)

        def on_alter_partition_response(
            self, proposal: IsrProposal, isr: tuple[int, ...], partition_epoch: int
        ) -> None:
            if self.is_bad:
                raise ValueError(self.name)
            super().on_alter_partition_response(proposal, isr, partition_epoch)

    async def scenario(sending: Sending) -> None:
        bad, good = Bad(0), StandIn(1)
        sending.partitions = [bad, good]
        sending.driver.start()
        await asyncio.sleep(40)
        assert (bad.checks, good.checks) == (2, 2)
        for each in (bad, good):
            sending.driver.propose(each, each.proposal())  # type: ignore[arg-type]
        await asyncio.sleep(1)
        assert (bad.answers, good.answers) == ([], [((1, 2), 8)])
        bad.is_bad = False
        await asyncio.sleep(2)
        assert bad.answers == [((1, 2), 8)], "it is asked for again"

    run(scenario)


def test_what_can_not_be_sent_does_not_end_the_sending() -> None:
    def fail(request: AlterPartitionRequest) -> AlterPartitionResponse:
        raise ValueError("an answer that can not be read")

    async def scenario(sending: Sending) -> None:
        one: Any = StandIn()
        sending.reply = fail
        sending.driver.propose(one, one.proposal())
        await asyncio.sleep(1)
        sending.reply = accepted
        await asyncio.sleep(2)
        assert one.answers == [((1, 2), 8)]

    run(scenario)
