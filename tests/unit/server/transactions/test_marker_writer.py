"""Markers in partitions that are led here, with and without groups."""

from __future__ import annotations

import asyncio
from typing import Any

from millbeck.coordinator.runtime.result import ResponseCallback
from millbeck.coordinator.runtime.shard_runner import TransactionEnd
from millbeck.kernel import errors
from millbeck.kernel.environment import Environment
from millbeck.kernel.ids import TopicPartition
from millbeck.server.transactions.marker_writer import write_marker
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.transactional_producer import Transacting, aborted, transaction_harness


def test_a_marker_is_answered_when_it_is_committed_or_refused() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        producer = await Transacting(client).prepare()
        assert await producer.produce(b"a") == 0
        assert await producer.commit_offset("g", 3) == 0
        assert harness.node is not None
        broker = harness.node.broker
        answers: list[Any] = []

        def write(topic: str, index: int, epoch: int) -> None:
            end = TransactionEnd(producer.producer_id, epoch, 1, False, 2)
            write_marker(broker, TopicPartition(topic, index), end, ResponseCallback(answers.append, answers.append))

        write("t", 0, producer.epoch + 1)
        assert answers == []
        await asyncio.sleep(0.01)
        assert answers == [True]
        assert await aborted(client) == [(producer.producer_id, 0)]
        write("t", 9, 1)
        write("t", 0, producer.epoch)
        assert [type(each) for each in answers[1:]] == [errors.UnknownTopicOrPartition, errors.InvalidProducerEpoch]
        index = broker.groups.partition_for("g")
        write("__consumer_offsets", index, producer.epoch + 1)
        await asyncio.sleep(0.01)
        assert answers[3] is True
        assert not list(broker.groups._drivers[index].host.shard._offsets.all_pending())
        broker.groups.partition_lost(index)
        write("__consumer_offsets", index, producer.epoch + 1)
        assert isinstance(answers[4], errors.NotLeaderOrFollower)

    transaction_harness().run(scenario)
