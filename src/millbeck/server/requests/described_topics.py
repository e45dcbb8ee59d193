"""Whether a client may see a group that refers to topics: only if it may describe all of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from millbeck.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from millbeck.server.network.call import Call

UNDESCRIBED_TOPICS: Final = "The group has described topic(s) that the client is not authorized to describe."


def may_describe_all(call: Call, names: Iterable[str]) -> bool:
    return all(call.may(Operation.DESCRIBE, ResourceType.TOPIC, name, is_filter=True) for name in names)
