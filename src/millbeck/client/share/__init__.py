"""`ShareConsumer`: a member of a share group, whose records are settled one by one (KIP-932)."""

from millbeck.client.share.client import Delivery, ShareConsumer
from millbeck.client.share.config import ShareConsumerConfig
from millbeck.client.share.session import AcknowledgeType

__all__ = ["AcknowledgeType", "Delivery", "ShareConsumer", "ShareConsumerConfig"]
