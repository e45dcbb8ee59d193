"""Admin calls for transactions: list and describe them at their coordinators, and end hanging ones."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from millbeck.client.admin.outcomes import Outcomes
from millbeck.client.admin.routing import call_all_brokers
from millbeck.client.cluster import Cluster
from millbeck.client.retry import Deadline
from millbeck.kernel.errors import ApiError, UnknownServerError, from_code
from millbeck.kernel.ids import TopicPartition

TRANSACTION_KEY = 1
TERMINATING_TIMEOUT_MS = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionListing:
    transactional_id: str
    coordinator_id: int
    producer_id: int
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionDescription:
    transactional_id: str
    coordinator_id: int
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    start_ms: int
    partitions: tuple[TopicPartition, ...]


async def list_transactions(
    cluster: Cluster,
    *,
    states: Iterable[str] = (),
    producer_ids: Iterable[int] = (),
    duration_ms: int = -1,
    pattern: str | None = None,
    timeout_s: float | None = None,
) -> list[TransactionListing]:
    """The transactional ids of all brokers, sorted; raises if a broker does not answer."""
    from millbeck.wire.messages.transactions import ListTransactionsRequest, ListTransactionsResponse

    request = ListTransactionsRequest(list(states), list(producer_ids), duration_ms, pattern)
    needed = 2 if pattern is not None else 1 if duration_ms >= 0 else 0

    async def attempt(deadline: Deadline) -> list[TransactionListing]:
        async def ask(node_id: int) -> list[TransactionListing]:
            response = await cluster.request(
                request, ListTransactionsResponse, deadline=deadline, node_id=node_id, version_min=needed
            )
            if response.error_code:
                raise from_code(response.error_code)
            return [
                TransactionListing(
                    transactional_id=each.transactional_id,
                    coordinator_id=node_id,
                    producer_id=each.producer_id,
                    state=each.transaction_state,
                )
                for each in response.transaction_states
            ]

        answers = Outcomes(await call_all_brokers(cluster, ask, deadline)).all()
        return sorted((each for listed in answers.values() for each in listed), key=lambda each: each.transactional_id)

    return await cluster.retrying(attempt, timeout_s=timeout_s)


async def describe_transactions(
    cluster: Cluster, transactional_ids: Iterable[str], *, timeout_s: float | None = None
) -> Outcomes[str, TransactionDescription]:
    from millbeck.wire.messages.transactions import DescribeTransactionsRequest, DescribeTransactionsResponse

    async def describe(transactional_id: str) -> TransactionDescription | ApiError:
        async def attempt(deadline: Deadline) -> TransactionDescription:
            node_id = await cluster.coordinator(transactional_id, deadline=deadline, key_type=TRANSACTION_KEY)
            response = await cluster.request(
                DescribeTransactionsRequest([transactional_id]),
                DescribeTransactionsResponse,
                deadline=deadline,
                node_id=node_id,
            )
            if not response.transaction_states:
                raise UnknownServerError(f"the broker did not describe {transactional_id}")
            found = response.transaction_states[0]
            if found.error_code:
                cluster.forget_coordinator(transactional_id, key_type=TRANSACTION_KEY)
                raise from_code(found.error_code)
            return TransactionDescription(
                transactional_id=transactional_id,
                coordinator_id=node_id,
                producer_id=found.producer_id,
                producer_epoch=found.producer_epoch,
                state=found.transaction_state,
                timeout_ms=found.transaction_timeout_ms,
                start_ms=found.transaction_start_time_ms,
                partitions=tuple(
                    TopicPartition(topic.topic, index) for topic in found.topics for index in topic.partitions
                ),
            )

        try:
            return await cluster.retrying(attempt, timeout_s=timeout_s)
        except ApiError as error:
            return error

    names = list(dict.fromkeys(transactional_ids))
    return Outcomes(dict(zip(names, await asyncio.gather(*map(describe, names)), strict=True)))


@dataclass(frozen=True, slots=True, kw_only=True)
class FencedProducer:
    transactional_id: str
    producer_id: int
    producer_epoch: int


async def fence_producers(
    cluster: Cluster, transactional_ids: Iterable[str], *, timeout_s: float | None = None
) -> Outcomes[str, FencedProducer]:
    """Fence the producers of these transactional ids and abort their open transactions."""
    from millbeck.wire.messages.transactions import InitProducerIdRequest, InitProducerIdResponse

    async def fence(transactional_id: str) -> FencedProducer | ApiError:
        request = InitProducerIdRequest(transactional_id, TERMINATING_TIMEOUT_MS)

        async def attempt(deadline: Deadline) -> FencedProducer:
            node_id = await cluster.coordinator(transactional_id, deadline=deadline, key_type=TRANSACTION_KEY)
            answer = await cluster.request(request, InitProducerIdResponse, deadline=deadline, node_id=node_id)
            if answer.error_code:
                cluster.forget_coordinator(transactional_id, key_type=TRANSACTION_KEY)
                raise from_code(answer.error_code)
            return FencedProducer(
                transactional_id=transactional_id,
                producer_id=answer.producer_id,
                producer_epoch=answer.producer_epoch,
            )

        try:
            return await cluster.retrying(attempt, timeout_s=timeout_s)
        except ApiError as error:
            return error

    names = list(dict.fromkeys(transactional_ids))
    return Outcomes(dict(zip(names, await asyncio.gather(*map(fence, names)), strict=True)))


async def force_terminate_transaction(
    cluster: Cluster, transactional_id: str, *, timeout_s: float | None = None
) -> None:
    """Abort the open transaction of a transactional id, even a prepared one, and fence its producer."""
    (await fence_producers(cluster, [transactional_id], timeout_s=timeout_s)).all()


async def abort_transaction(
    cluster: Cluster,
    partition: TopicPartition,
    *,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    timeout_s: float | None = None,
) -> None:
    """Write an abort marker to one partition, for a transaction that its coordinator no longer knows."""
    from millbeck.wire.messages.transactions import (
        WritableTxnMarker,
        WritableTxnMarkerTopic,
        WriteTxnMarkersRequest,
        WriteTxnMarkersResponse,
    )

    topics = [WritableTxnMarkerTopic(partition.topic, [partition.partition])]
    request = WriteTxnMarkersRequest(
        markers=[WritableTxnMarker(producer_id, producer_epoch, False, topics, max(coordinator_epoch, 0))]
    )

    async def attempt(deadline: Deadline) -> None:
        await cluster.ask_metadata([partition.topic], deadline)
        leader = cluster.metadata.leader(*partition)
        response = await cluster.request(request, WriteTxnMarkersResponse, deadline=deadline, node_id=leader.node_id)
        for marker in response.markers:
            for topic in marker.topics:
                for each in topic.partitions:
                    if each.error_code:
                        raise from_code(each.error_code)

    await cluster.retrying(attempt, timeout_s=timeout_s)
