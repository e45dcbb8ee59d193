"""The parts of a node that share groups work with: their coordinators, other brokers, and the creation of topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from millbeck.server.context import NodeContext

if TYPE_CHECKING:
    from millbeck.controller.auto_creation import InternalTopic
    from millbeck.kernel.errors import ApiError
    from millbeck.server.coordinators.group_coordinator import GroupDriver
    from millbeck.server.coordinators.share_coordinator import ShareStateDriver
    from millbeck.server.metadata.auto_creation import AutoCreation
    from millbeck.server.network.broker_connections import BrokerConnections


class ShareContext(NodeContext):
    peers: BrokerConnections
    groups: GroupDriver
    share_state: ShareStateDriver
    auto_creation: AutoCreation

    async def auto_create(
        self, names: Iterable[str], made_as: Mapping[str, InternalTopic] | None = None
    ) -> dict[str, ApiError]:
        """`Broker.auto_create`."""
        raise NotImplementedError
