"""`ShareConsumer`: a member of a share group, which acknowledges records individually (KIP-932)."""

from millbeck.client.share.client import AcquiredRecord, ShareConsumer
from millbeck.client.share.config import ShareConsumerConfig
from millbeck.client.share.session import AcknowledgeType

__all__ = ["AcknowledgeType", "AcquiredRecord", "ShareConsumer", "ShareConsumerConfig"]
