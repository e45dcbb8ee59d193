"""Common patterns: retry topics, parallel processing, priorities, request and reply, an outbox.

Each module uses only the public API of `millbeck.client`, works with any broker, and has a section in
docs/client-patterns.md. The names here are imported lazily.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from millbeck.client.patterns.consume_transform_produce import exactly_once as exactly_once
    from millbeck.client.patterns.outbox import OutboxRelay as OutboxRelay
    from millbeck.client.patterns.outbox import SqlOutbox as SqlOutbox
    from millbeck.client.patterns.parallel import ParallelProcessor as ParallelProcessor
    from millbeck.client.patterns.priority import by_priority as by_priority
    from millbeck.client.patterns.request_reply import Requester as Requester
    from millbeck.client.patterns.request_reply import serve as serve
    from millbeck.client.patterns.retry_topics import RetryTopics as RetryTopics
    from millbeck.client.patterns.salted_keys import PartialResults as PartialResults
    from millbeck.client.patterns.salted_keys import SaltedPartitioner as SaltedPartitioner

_HOMES = {
    "OutboxRelay": "outbox",
    "ParallelProcessor": "parallel",
    "PartialResults": "salted_keys",
    "Requester": "request_reply",
    "RetryTopics": "retry_topics",
    "SaltedPartitioner": "salted_keys",
    "SqlOutbox": "outbox",
    "by_priority": "priority",
    "exactly_once": "consume_transform_produce",
    "serve": "request_reply",
}

__all__ = [
    "OutboxRelay",
    "ParallelProcessor",
    "PartialResults",
    "Requester",
    "RetryTopics",
    "SaltedPartitioner",
    "SqlOutbox",
    "by_priority",
    "exactly_once",
    "serve",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(import_module(f"{__name__}.{home}"), name)
