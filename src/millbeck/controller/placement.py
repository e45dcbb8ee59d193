"""Replica placement.

Two replicas of a partition should not share a rack or a host. Racks come first (``broker.rack``). Within a rack,
brokers on one host fail together; the host is that of a broker's first endpoint. Then load is spread: leaders over all
active brokers, replicas over all brokers. The second replicas of the partitions that one broker leads are spread over
all others, so that its load is distributed when it fails.

Fenced brokers get replicas only when there are not enough active ones, and are never leaders. Brokers that are shutting
down, or whose directories are all cordoned, get none. Each replica goes to the broker that is best by those criteria in
that order. After a number of partitions the pattern repeats, so that thousands of partitions cost little more than the
first ones.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from millbeck.controller.result import RECORDS_AT_ONCE, Steps
from millbeck.kernel.environment import Randomness
from millbeck.kernel.errors import InvalidReplicaAssignment, InvalidReplicationFactor
from millbeck.metadata.image import BrokerRegistration, ClusterImage, PartitionRegistration

_PATTERN_SIZE: Final = 1000
"""The approximate number of placements computed before they repeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaAssignment:
    """The replicas of one partition, the preferred leader first."""

    replicas: tuple[int, ...]


def place(
    cluster: ClusterImage, *, partition_count: int, replication_factor: int, randomness: Randomness
) -> Steps[list[ReplicaAssignment]]:
    """Assignments for new partitions; raises `InvalidReplicationFactor` when there are too few brokers."""
    usable = [cluster.brokers[broker_id] for broker_id in sorted(cluster.brokers)]
    usable = [broker for broker in usable if broker.takes_new_replicas]
    active_count = sum(not broker.is_fenced for broker in usable)
    problem = None
    if not active_count:
        problem = "All brokers are currently fenced or in controlled shutdown."
    elif replication_factor > len(usable):
        problem = (
            f"The target replication factor of {replication_factor} cannot be reached because only {len(usable)} "
            "broker(s) are registered."
        )
    if problem is not None:
        raise InvalidReplicationFactor(f"Unable to replicate the partition {replication_factor} time(s): {problem}")
    placer = _Placer(usable, start=randomness.below(len(usable)))
    rounds = min(max(active_count - 1, 1), max(_PATTERN_SIZE // active_count, 1))
    pattern: list[ReplicaAssignment] = []
    for number in range(min(partition_count, active_count * rounds)):
        if number % RECORDS_AT_ONCE == 0:
            yield
        pattern.append(ReplicaAssignment(replicas=placer.next(replication_factor)))
    return [pattern[index % len(pattern)] for index in range(partition_count)]


class _Placer:
    """Places partitions one after another, and counts the replicas of each broker."""

    def __init__(self, brokers: list[BrokerRegistration], *, start: int) -> None:
        ring = _interleaved(brokers)
        # Each topic starts at a different broker; otherwise small topics would all be on the same brokers.
        self._ring = ring[start:] + ring[:start]
        self._active = [broker for broker in self._ring if not broker.is_fenced]
        self._follower_counts: Counter[int] = Counter()
        self._leader_counts: Counter[int] = Counter()
        self._successors: Counter[tuple[int, int]] = Counter()

    def next(self, replication_factor: int) -> tuple[int, ...]:
        leader = min(self._active, key=lambda broker: self._leader_counts[broker.broker_id])
        self._leader_counts[leader.broker_id] += 1
        chosen = [leader]
        for _ in range(replication_factor - 1):
            chosen.append(self._follower(chosen))
        followers = chosen[1:]
        for broker in followers:
            self._follower_counts[broker.broker_id] += 1
        # The first follower becomes leader when the leader fails, so followers take turns.
        followers.sort(key=lambda broker: (broker.is_fenced, self._successors[(leader.broker_id, broker.broker_id)]))
        if followers:
            self._successors[(leader.broker_id, followers[0].broker_id)] += 1
        return (leader.broker_id, *(broker.broker_id for broker in followers))

    def _follower(self, chosen: list[BrokerRegistration]) -> BrokerRegistration:
        """The best remaining broker; among equals the next one after the leader in the ring."""
        leader = chosen[0]
        racks = Counter(broker.rack for broker in chosen)
        hosts = Counter((broker.rack, _host(broker)) for broker in chosen)
        taken = [broker.broker_id for broker in chosen]
        position = self._ring.index(leader)

        def rank(broker: BrokerRegistration) -> tuple[bool, int, int, int, int]:
            return (
                broker.is_fenced,
                racks[broker.rack],
                hosts[(broker.rack, _host(broker))],
                self._follower_counts[broker.broker_id],
                self._successors[(leader.broker_id, broker.broker_id)],
            )

        after_leader = self._ring[position + 1 :] + self._ring[:position]
        return min((broker for broker in after_leader if broker.broker_id not in taken), key=rank)


def _host(broker: BrokerRegistration) -> str:
    """The broker's host; each broker without an address counts as a separate host."""
    return broker.endpoints[0].host if broker.endpoints else f"broker {broker.broker_id}"


def _interleaved(brokers: list[BrokerRegistration]) -> list[BrokerRegistration]:
    """The brokers, ordered so that neighbours are in different racks and on different hosts where possible."""
    racks: dict[str, dict[str, list[BrokerRegistration]]] = {}
    for broker in brokers:
        racks.setdefault(broker.rack or "", {}).setdefault(_host(broker), []).append(broker)
    return _in_turns([_in_turns([hosts[host] for host in sorted(hosts)]) for _, hosts in sorted(racks.items())])


def _in_turns(lists: list[list[BrokerRegistration]]) -> list[BrokerRegistration]:
    """Interleave lists: the first of each, then the second of each, and so on."""
    longest = max((len(each) for each in lists), default=0)
    return [each[turn] for turn in range(longest) for each in lists if turn < len(each)]


def check_assignment(cluster: ClusterImage, replicas: list[int], expected_count: int | None) -> None:
    """Raise `InvalidReplicaAssignment` for an invalid manual assignment."""
    if not replicas:
        raise InvalidReplicaAssignment("The manual partition assignment includes an empty replica list.")
    seen: dict[int, None] = {}
    for broker_id in replicas:
        if broker_id not in cluster.brokers:
            raise InvalidReplicaAssignment(
                f"The manual partition assignment includes broker {broker_id}, but no such broker is registered."
            )
        if broker_id in seen:
            raise InvalidReplicaAssignment(
                f"The manual partition assignment includes the broker {broker_id} more than once."
            )
        seen[broker_id] = None
    if expected_count is not None and len(replicas) != expected_count:
        raise InvalidReplicaAssignment(
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this is not "
            f"consistent with previous partitions, which have {expected_count} replica(s)."
        )


def new_partition(cluster: ClusterImage, replicas: tuple[int, ...]) -> PartitionRegistration | None:
    """A new partition, whose active replicas are the ISR and the first of them the leader; None if no replica is
    active."""
    isr = tuple(broker_id for broker_id in replicas if cluster.is_active(broker_id))
    if not isr:
        return None
    return PartitionRegistration(
        replicas=replicas,
        directories=tuple(cluster.brokers[broker_id].default_directory for broker_id in replicas),
        isr=isr,
        leader=isr[0],
        leader_epoch=0,
        partition_epoch=0,
    )
