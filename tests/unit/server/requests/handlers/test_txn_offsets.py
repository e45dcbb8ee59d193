"""Offsets that are part of a transaction: seen when it is committed, never when it is not."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from millbeck.client.errors import ConnectFailed, Disconnected, RequestTimeout
from millbeck.kernel import errors
from millbeck.kernel.environment import Environment
from millbeck.security.authorizer import Operation, ResourceType
from millbeck.server.transactions.write_verification import Outcomes, VerificationGuard
from millbeck.wire.messages.group_offsets import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from millbeck.wire.messages.transactions import TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.transactional_producer import Transacting, denying, settled, transaction_harness


async def fetch(client: Client, group: str, *, stable: bool) -> tuple[int, int]:
    topics = [OffsetFetchRequestTopics("t", bytes(16), [0])]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=topics)], require_stable=stable)
    answer = await client.ask(request, 8)
    found = answer.groups[0].topics[0].partitions[0]
    return found.committed_offset, found.error_code


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("is_committed", [True, False])
def test_offsets_follow_their_transaction(version: int, is_committed: bool) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        producer = await Transacting(client, version=version).prepare()
        if version == 0:
            assert await producer.add_offsets("g") == 0
        assert await producer.commit_offset("g", 5) == 0
        assert await fetch(client, "g", stable=False) == (-1, 0)
        assert await fetch(client, "g", stable=True) == (-1, errors.UnstableOffsetCommit.code)
        assert await producer.end(is_committed) == 0
        await settled(harness)
        assert await fetch(client, "g", stable=True) == (5 if is_committed else -1, 0)

    transaction_harness().run(scenario)


@pytest.mark.parametrize("is_committed", [True, False])
def test_offsets_survive_a_crash_before_and_after_the_end(is_committed: bool) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        producer = await Transacting(client).prepare()
        assert await producer.commit_offset("g", 5) == 0
        for _ in range(2):
            harness.machine.crash()
            await harness.start()
            producer.client = client = await harness.connect(environment)
            assert harness.node is not None
            while any(each.is_loading for each in harness.node.broker.coordinators):
                import asyncio

                await asyncio.sleep(0.01)
            if producer.epoch == 0:
                assert (await fetch(client, "g", stable=True))[1] == errors.UnstableOffsetCommit.code
                assert await producer.end(is_committed) == 0
                await settled(harness)
        assert await fetch(client, "g", stable=True) == (5 if is_committed else -1, 0)

    transaction_harness().run(scenario)


def test_who_may_not_commit_is_told_why() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        producer = await Transacting(client, version=0).prepare()
        # Not part of the transaction: a client of this version must have added them first.
        assert await producer.commit_offset("g", 5) == errors.TransactionAbortable.code
        assert await producer.add_offsets("g") == 0
        assert await producer.commit_offset("g", 5, generation_id=3, member_id="m") == errors.IllegalGeneration.code
        assert await producer.commit_offset("g", 5, producer_epoch=7) == errors.InvalidProducerEpoch.code
        topics = [TxnOffsetCommitRequestTopic("nope", [TxnOffsetCommitRequestPartition(0, 1)])]
        assert await producer.commit_offset("g", 5, topics=topics) == errors.UnknownTopicOrPartition.code
        assert await producer.commit_offset("g", 5) == 0
        assert harness.node is not None
        for resource, name, error in [
            (ResourceType.GROUP, "g", errors.GroupAuthorizationFailed),
            (ResourceType.TOPIC, "t", errors.TopicAuthorizationFailed),
        ]:
            harness.node.broker.authorizer = denying(Operation.READ, resource, name)
            assert await producer.commit_offset("g", 5) == error.code
        assert await producer.end(True) == 0

    transaction_harness().run(scenario)


def test_where_the_group_is_not_the_client_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would come back for ever if it were told to wait, as it is when only the transaction's coordinator is away."""

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        producer = await Transacting(client).prepare()
        assert harness.node is not None
        broker = harness.node.broker

        away: list[errors.ApiError] = [
            errors.NotCoordinator(),
            ConnectFailed("no"),
            Disconnected("gone"),
            RequestTimeout("late"),
        ]

        async def ask(transactional_id: str, guards: Sequence[VerificationGuard]) -> Outcomes:
            error = away.pop()
            return {guard.partition.name: error for guard in guards}

        with monkeypatch.context() as patch:
            patch.setattr(broker.verification, "ask", ask)
            while away:
                assert await producer.commit_offset("g", 5) == errors.CoordinatorLoadInProgress.code
        with monkeypatch.context() as patch:
            patch.setattr(type(broker.topics), "led_partition", refusing(errors.NotLeaderOrFollower()))
            assert await producer.commit_offset("g", 5) == errors.NotCoordinator.code
        assert await producer.commit_offset("g", 5) == 0

    transaction_harness().run(scenario)


def refusing(error: errors.ApiError) -> Callable[..., None]:
    def refuse(*_: object) -> None:
        raise error

    return refuse
