"""Route admin requests to brokers: the controller, leaders, coordinators, or all brokers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

from millbeck.client.cluster import Cluster
from millbeck.client.retry import Deadline
from millbeck.kernel.errors import ApiError, NotController, NotCoordinator
from millbeck.kernel.ids import TopicPartition

V = TypeVar("V")
K = TypeVar("K")
R = TypeVar("R")


async def call_controller(cluster: Cluster, message: object, response: type[R], deadline: Deadline) -> R:
    """Send to any connected broker, which forwards the request to the controller."""
    return await cluster.request(message, response, deadline=deadline)


async def refresh_controller(cluster: Cluster, outcomes: Mapping[K, V | ApiError], deadline: Deadline) -> None:
    """Refresh the metadata before the next attempt, if a broker that does not forward answered NOT_CONTROLLER."""
    if any(isinstance(outcome, NotController) for outcome in outcomes.values()):
        await cluster.refresh(deadline)


async def call_leaders(
    cluster: Cluster,
    partitions: Iterable[TopicPartition],
    ask: Callable[[int, list[TopicPartition]], Awaitable[Mapping[TopicPartition, V | ApiError]]],
    deadline: Deadline,
) -> dict[TopicPartition, V | ApiError]:
    """Send to each leader for its partitions, concurrently."""
    wanted = list(partitions)
    await cluster.ask_metadata(list(dict.fromkeys(partition.topic for partition in wanted)), deadline)
    by_leader: dict[int, list[TopicPartition]] = {}
    outcomes: dict[TopicPartition, V | ApiError] = {}
    for partition in wanted:
        try:
            by_leader.setdefault(cluster.metadata.leader(*partition).node_id, []).append(partition)
        except ApiError as error:
            outcomes[partition] = error
    answers = await asyncio.gather(
        *(_guarded(ask(node_id, led), led) for node_id, led in by_leader.items()),
    )
    for answer in answers:
        outcomes.update(answer)
    return outcomes


async def _guarded(
    asking: Awaitable[Mapping[TopicPartition, V | ApiError]], partitions: list[TopicPartition]
) -> Mapping[TopicPartition, V | ApiError]:
    """Turn the failure of one leader into errors of its partitions, so that the others' answers are kept."""
    try:
        return await asking
    except ApiError as error:
        return dict.fromkeys(partitions, error)


async def call_coordinators(
    cluster: Cluster,
    groups: Iterable[str],
    ask: Callable[[int, str], Awaitable[V]],
    deadline: Deadline,
) -> dict[str, V | ApiError]:
    """Send to each group's coordinator, concurrently; one that is no longer the coordinator is looked up again."""

    async def ask_one(group: str) -> V | ApiError:
        try:
            return await ask(await cluster.coordinator(group, deadline=deadline), group)
        except ApiError as error:
            if isinstance(error, NotCoordinator) or error.retriable:
                cluster.forget_coordinator(group)
            return error

    names = list(groups)
    return dict(zip(names, await asyncio.gather(*map(ask_one, names)), strict=True))


async def call_all_brokers(
    cluster: Cluster, ask: Callable[[int], Awaitable[V]], deadline: Deadline, wanted: Iterable[int] | None = None
) -> dict[int, V | ApiError]:
    """Send to all brokers, or to the given ones, concurrently."""

    async def ask_one(node_id: int) -> V | ApiError:
        try:
            return await ask(node_id)
        except ApiError as error:
            return error

    await cluster.ask_metadata([], deadline)
    nodes = sorted(cluster.metadata.brokers if wanted is None else wanted)
    return dict(zip(nodes, await asyncio.gather(*map(ask_one, nodes)), strict=True))
