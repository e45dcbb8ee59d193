"""Where replicas go.

The brokers of each rack are kept in a ring, and racks take turns: the first replica of successive partitions walks over
all racks and brokers, the others of a partition follow on the next racks. Fenced brokers take replicas only when active
ones do not suffice, and never lead. With one broker everything is on it.
"""

from __future__ import annotations

from dataclasses import dataclass

from millbeck.kernel.environment import Randomness
from millbeck.kernel.errors import InvalidReplicaAssignment, InvalidReplicationFactor
from millbeck.kernel.ids import Uuid
from millbeck.metadata.image import ClusterImage, PartitionRegistration
from millbeck.metadata.image.topics import UNASSIGNED_DIRECTORY


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """The replicas of one partition, the preferred leader first."""

    replicas: tuple[int, ...]


def place(
    cluster: ClusterImage, *, partition_count: int, replication_factor: int, randomness: Randomness
) -> list[Assignment]:
    """Assignments for new partitions; raises `InvalidReplicationFactor` when there are too few brokers."""
    registered = len(cluster.brokers)
    if replication_factor > registered:
        raise InvalidReplicationFactor(
            f"Unable to replicate the partition {replication_factor} time(s): The target replication factor of "
            f"{replication_factor} cannot be reached because only {registered} broker(s) are registered."
        )
    active = [broker_id for broker_id in sorted(cluster.brokers) if cluster.is_active(broker_id)]
    if not active:
        raise InvalidReplicationFactor(
            f"Unable to replicate the partition {replication_factor} time(s): All brokers are currently fenced or in "
            "controlled shutdown."
        )
    leaders = _interleaved(cluster, active)
    others = _interleaved(cluster, [broker_id for broker_id in sorted(cluster.brokers) if broker_id not in active])
    start = randomness.below(len(leaders))
    shift = randomness.below(len(leaders))
    assignments = []
    for index in range(partition_count):
        leader_position = (start + index) % len(leaders)
        # After each full walk the followers shift by one, so that a broker's load spreads over all others.
        followers = _rotated(leaders, leader_position + 1)[: len(leaders) - 1]
        followers = _rotated(followers, shift + index // len(leaders))
        chosen = [leaders[leader_position], *_apart(cluster, leaders[leader_position], followers), *others]
        assignments.append(Assignment(replicas=tuple(chosen[:replication_factor])))
    return assignments


def check_assignment(cluster: ClusterImage, replicas: list[int], expected_count: int | None) -> None:
    """Raises `InvalidReplicaAssignment` for a placement by hand that can not be."""
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
    """A partition as it begins: in sync is who is active, and the first of those leads. None when nobody is."""
    isr = tuple(broker_id for broker_id in replicas if cluster.is_active(broker_id))
    if not isr:
        return None
    return PartitionRegistration(
        replicas=replicas,
        directories=tuple(_directory(cluster, broker_id) for broker_id in replicas),
        isr=isr,
        leader=isr[0],
        leader_epoch=0,
        partition_epoch=0,
    )


def _directory(cluster: ClusterImage, broker_id: int) -> Uuid:
    """A broker with one directory has no choice; another one says later which it took."""
    directories = cluster.brokers[broker_id].directories
    return directories[0] if len(directories) == 1 else UNASSIGNED_DIRECTORY


def _interleaved(cluster: ClusterImage, broker_ids: list[int]) -> list[int]:
    """The brokers so that neighbours are in different racks as far as possible."""
    racks: dict[str, list[int]] = {}
    for broker_id in broker_ids:
        racks.setdefault(cluster.brokers[broker_id].rack or "", []).append(broker_id)
    rings = [racks[rack] for rack in sorted(racks)]
    longest = max((len(ring) for ring in rings), default=0)
    return [ring[turn] for turn in range(longest) for ring in rings if turn < len(ring)]


def _apart(cluster: ClusterImage, leader: int, followers: list[int]) -> list[int]:
    """The followers with one of each rack not used yet first, then the rest."""
    used = {cluster.brokers[leader].rack}
    first, rest = [], []
    for broker_id in followers:
        rack = cluster.brokers[broker_id].rack
        if rack is not None and rack in used:
            rest.append(broker_id)
        else:
            used.add(rack)
            first.append(broker_id)
    return first + rest


def _rotated(ring: list[int], by: int) -> list[int]:
    if not ring:
        return ring
    by %= len(ring)
    return ring[by:] + ring[:by]
