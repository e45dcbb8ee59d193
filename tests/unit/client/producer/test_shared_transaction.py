"""A transaction of several processes: who may write, what is noted, how it ends."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.client.committed_offset import CommittedOffset
from millbeck.client.errors import UnsupportedByBroker
from millbeck.client.producer.shared_transaction import SharedTransaction, TransactionHandle
from millbeck.kernel.ids import TopicPartition
from millbeck.wire.messages.groups import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from millbeck.wire.messages.transactions import (
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from tests.unit.client.fake_cluster import Call, FakeCluster, simulate

A0 = TopicPartition("a", 0)


def coordinated(cluster: FakeCluster) -> None:
    """Every coordinator is the first broker, and transactions are answered."""
    (address,) = [part.rsplit(":", 1) for part in cluster.bootstrap.split(",")]
    host, port = address

    def find(call: Call) -> FindCoordinatorResponse:
        found = [Coordinator(key=key, node_id=1, host=host, port=int(port)) for key in call.message.coordinator_keys]
        return FindCoordinatorResponse(coordinators=found)

    def offsets(call: Call) -> TxnOffsetCommitResponse:
        topics = [
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(partition_index=each.partition_index) for each in topic.partitions
                ],
            )
            for topic in call.message.topics
        ]
        return TxnOffsetCommitResponse(topics=topics)

    cluster.on(FindCoordinatorRequest, find)
    cluster.on(InitProducerIdRequest, lambda call: InitProducerIdResponse(producer_id=70, producer_epoch=3))
    cluster.on(TxnOffsetCommitRequest, offsets)
    cluster.on(EndTxnRequest, lambda call: EndTxnResponse(producer_id=70, producer_epoch=4))


def opened(cluster: FakeCluster, ticket: TransactionHandle | None = None) -> SharedTransaction:
    return SharedTransaction(cluster.environment, {"bootstrap.servers": cluster.bootstrap}, "t", ticket)


def test_an_older_cluster_is_refused() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        coordinated(cluster)
        transaction = opened(cluster)
        try:
            with pytest.raises(UnsupportedByBroker, match=r"transaction\.version is below 2"):
                await transaction.begin()
        finally:
            await transaction.close()

    simulate(scenario)


def test_a_commit_carries_its_note() -> None:
    async def scenario(cluster: FakeCluster) -> tuple[Any, Any]:
        coordinated(cluster)
        cluster.add_topic("a")
        transaction = opened(cluster, TransactionHandle("t", 70, 3))
        await transaction.commit("g", {A0: CommittedOffset(9, -1, "note")})
        await transaction.close()
        (noted,) = cluster.asked(TxnOffsetCommitRequest)
        (ended,) = cluster.asked(EndTxnRequest)
        assert cluster.asked(InitProducerIdRequest) == []
        return noted.message, ended.message

    noted, ended = simulate(scenario)
    assert (noted.transactional_id, noted.group_id, noted.producer_id, noted.producer_epoch) == ("t", "g", 70, 3)
    ((entry,),) = [topic.partitions for topic in noted.topics]
    assert (entry.committed_offset, entry.committed_metadata) == (9, "note")
    assert (ended.transactional_id, ended.producer_id, ended.producer_epoch, ended.committed) == ("t", 70, 3, True)


def test_an_abort_reaches_the_coordinator() -> None:
    async def scenario(cluster: FakeCluster) -> list[bool]:
        coordinated(cluster)
        transaction = opened(cluster, TransactionHandle("t", 70, 3))
        await transaction.abort()
        await transaction.close()
        return [call.message.committed for call in cluster.asked(EndTxnRequest)]

    assert simulate(scenario) == [False]


def test_notes_are_read_when_nothing_is_pending() -> None:
    async def scenario(cluster: FakeCluster) -> Any:
        coordinated(cluster)
        cluster.add_topic("a")
        transaction = opened(cluster, TransactionHandle("t", 70, 3))
        found = await transaction.notes("g")
        await transaction.close()
        from millbeck.wire.messages.group_offsets import OffsetFetchRequest

        return found, [call.message.require_stable for call in cluster.asked(OffsetFetchRequest)]

    assert simulate(scenario) == ({}, [True])
