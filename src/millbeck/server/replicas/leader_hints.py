"""Who leads, for a client that asked the wrong broker (KIP-951): so that it need not fetch metadata first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from millbeck.kernel.errors import FencedLeaderEpoch, NotLeaderOrFollower
from millbeck.kernel.ids import Uuid
from millbeck.replication.partition import NO_LEADER

if TYPE_CHECKING:
    from millbeck.server.broker import Broker
    from millbeck.server.call import Call

ABOUT_LEADERS: Final = (NotLeaderOrFollower.code, FencedLeaderEpoch.code)
"""The errors that come with a hint."""


class Leader(NamedTuple):
    leader_id: int
    leader_epoch: int


class NodeAddress(NamedTuple):
    """The arguments of a reply's node endpoint."""

    node_id: int
    host: str
    port: int
    rack: str | None


def leader_of(broker: Broker, topic: str | Uuid, index: int) -> Leader | None:
    """The newest this node knows of, be it in the metadata or in the partition itself; None when nobody leads."""
    topics, here = broker.image.topics, broker.topics
    image = topics.named(topic) if isinstance(topic, str) else topics.with_id(topic)
    registration = None if image is None else image.partitions.get(index)
    local = here.by_name.get(topic) if isinstance(topic, str) else here.by_id.get(topic)
    partition = None if local is None else local.partitions.get(index)
    leader = Leader(NO_LEADER, -1) if registration is None else Leader(registration.leader, registration.leader_epoch)
    if partition is not None and partition.leader_epoch > leader.leader_epoch:
        leader = Leader(partition.leader_id, partition.leader_epoch)
    return None if leader.leader_id == NO_LEADER else leader


def addresses_of(call: Call, leader_ids: Iterable[int]) -> list[NodeAddress]:
    """Where the client finds these nodes: under the listener it came by."""
    broker = call.broker
    found = []
    for node_id in dict.fromkeys(leader_ids):
        registration = broker.image.cluster.broker(node_id)
        if registration is None:
            continue
        address = broker.address_of(node_id, registration.endpoints, call.connection)
        if address is not None:
            found.append(NodeAddress(node_id, *address, registration.rack))
    return found
