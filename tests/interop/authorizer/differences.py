"""Where answers differ from Kafka's, and why. Everything else must be equal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A field, by its path, of the answers to one question that may differ."""

    question: str
    path: str
    reason: str
    is_certain: bool = True
    """Whether it is there in every run."""


_UNREADABLE: Final = "the state of the group is not told to those who may not read any of the topics"
_UNKNOWN_SHARED: Final = "Kafka fails with UNKNOWN_SERVER_ERROR for an unknown topic id"
_CLUSTER_ID: Final = "Kafka tells a client with a wrong cluster id the right one"
_LEADER: Final = "Kafka names broker 0 as the leader where it means none"

DIFFERENCES: Final = (
    Difference(question="AddRaftVoter", path=".error_message", reason=_CLUSTER_ID),
    Difference(question="RemoveRaftVoter", path=".error_message", reason=_CLUSTER_ID),
    Difference(question="AlterShareGroupOffsets", path=".error_code", reason=_UNREADABLE),
    Difference(question="AlterShareGroupOffsets", path=".responses", reason=_UNREADABLE),
    Difference(question="AlterShareGroupOffsets", path=".error_message", reason="the text names the group"),
    Difference(question="DeleteShareGroupOffsets", path=".error_message", reason="the text names the group"),
    Difference(question="DescribeConfigs of client metrics", path=".results[].configs", reason="not collected here"),
    Difference(question="DescribeConfigs of loggers", path=".results[].configs", reason="Java's loggers"),
    Difference(question="ShareFetch", path=".acquisition_lock_timeout_ms", reason=_UNKNOWN_SHARED),
    Difference(question="ShareFetch", path=".error_code", reason=_UNKNOWN_SHARED),
    Difference(question="ShareFetch", path=".responses", reason=_UNKNOWN_SHARED),
    Difference(question="ShareFetch", path=".responses[].partitions[].current_leader.leader_id", reason=_LEADER),
    Difference(question="ShareFetch", path=".responses[].partitions[].current_leader.leader_epoch", reason=_LEADER),
)
_INTERNALS: Final = "Request Request("
"""How a text begins in which Kafka prints its own objects."""


def differing(mine: Any, theirs: Any, path: str = "") -> Iterator[str]:
    """The paths of fields that differ. A text is no difference where Kafka has none, or only prints its objects."""
    if isinstance(mine, dict) and isinstance(theirs, dict):
        for name in sorted({*mine, *theirs}):
            yield from differing(mine.get(name), theirs.get(name), f"{path}.{name}")
    elif isinstance(mine, list) and isinstance(theirs, list) and len(mine) == len(theirs):
        for one, other in zip(mine, theirs, strict=True):
            yield from differing(one, other, f"{path}[]")
    elif mine != theirs and not (path.endswith(".error_message") and _says_nothing(theirs)):
        yield path


def _says_nothing(text: Any) -> bool:
    return not text or (isinstance(text, str) and text.startswith(_INTERNALS))
