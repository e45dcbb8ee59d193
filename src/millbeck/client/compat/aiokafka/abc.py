"""The interfaces of ``aiokafka.abc``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable

from millbeck.kernel.ids import TopicPartition


class ConsumerRebalanceListener(ABC):
    """A rebalance listener; its methods may be coroutines."""

    @abstractmethod
    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> Awaitable[None] | None:
        """Called before these partitions are revoked."""

    @abstractmethod
    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> Awaitable[None] | None:
        """Called after these partitions were assigned."""


class AbstractTokenProvider(ABC):
    """A source of OAuth tokens. The clients here refuse one: they have settings for tokens (``sasl.oauthbearer.*``)."""

    @abstractmethod
    async def token(self) -> str:
        """Return a token that is valid."""

    def extensions(self) -> dict[str, str]:
        return {}
