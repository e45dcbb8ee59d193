"""The current leader, for responses to clients that sent a request to the wrong broker (KIP-951).

With it the client need not fetch metadata before it retries.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from millbeck.kernel.errors import FencedLeaderEpoch, NotLeaderOrFollower
from millbeck.kernel.ids import Uuid
from millbeck.replication.partition import NO_LEADER

if TYPE_CHECKING:
    from millbeck.server.broker import Broker
    from millbeck.server.network.call import Call

ABOUT_LEADERS: Final = (NotLeaderOrFollower.code, FencedLeaderEpoch.code)
"""Error codes whose response carries the current leader."""


class LeaderHint(NamedTuple):
    leader_id: int
    leader_epoch: int


class NodeAddress(NamedTuple):
    """The fields of a node endpoint in a response."""

    node_id: int
    host: str
    port: int
    rack: str | None


def leader_of(broker: Broker, topic: str | Uuid, index: int) -> LeaderHint | None:
    """The leader with the newest epoch, from the metadata image or the local partition; None without a leader."""
    topics, here = broker.image.topics, broker.topics
    image = topics.named(topic) if isinstance(topic, str) else topics.with_id(topic)
    registration = None if image is None else image.partitions.get(index)
    local = here.by_name.get(topic) if isinstance(topic, str) else here.by_id.get(topic)
    partition = None if local is None else local.partitions.get(index)
    leader = (
        LeaderHint(NO_LEADER, -1)
        if registration is None
        else LeaderHint(registration.leader, registration.leader_epoch)
    )
    if partition is not None and partition.leader_epoch > leader.leader_epoch:
        leader = LeaderHint(partition.leader_id, partition.leader_epoch)
    return None if leader.leader_id == NO_LEADER else leader


def addresses_of(call: Call, leader_ids: Iterable[int]) -> list[NodeAddress]:
    """The addresses of these nodes on the listener that the client is connected to."""
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
