"""Broker-wide defaults of topic options (``log.segment.bytes`` for ``segment.bytes``), derived from the topic options.

The synonyms of a topic option are the broker options with its default. A synonym in the same unit has the type, default
and range of the topic option. Where a topic option has several synonyms, only the first in precedence can be changed
dynamically, and only the last has a default: that is how setting ``log.retention.ms`` overrides
``log.retention.hours``.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any, Final

from millbeck.kernel.options import INT, Importance, Option, Section, Synonym, Update, Validator, at_least
from millbeck.server.config.sections.log_upkeep import LogUpkeepOptions
from millbeck.storage.config import TOPIC_OPTIONS

_IMPORTANT: Final = (
    "compression.type",
    "log.flush.interval.messages",
    "log.retention.bytes",
    "log.segment.bytes",
    "log.segment.delete.delay.ms",
    "message.max.bytes",
    "min.insync.replicas",
    "unclean.leader.election.enable",
)
_RANGES: Final = {"log.roll.hours": at_least(1), "log.roll.jitter.hours": at_least(0)}
"""Lower bounds of synonyms with another unit; the others accept any number."""
_DECLARED_ELSEWHERE: Final = tuple(declared.name for declared in LogUpkeepOptions.options)


def derived_options() -> Iterator[Option[Any]]:
    """All broker options that are the default of a topic option and are not declared elsewhere."""
    for topic in TOPIC_OPTIONS:
        for position, synonym in enumerate(topic.synonyms):
            if synonym.name not in _DECLARED_ELSEWHERE:
                yield _derived(topic, synonym, position)


def _derived(topic: Option[Any], synonym: Synonym, position: int) -> Option[Any]:
    doc = f"The default of {topic.name} for topics that do not set it. {topic.doc}"
    if len(topic.synonyms) == 1:
        importance = Importance.HIGH if synonym.name in _IMPORTANT else Importance.MEDIUM
        return Option(
            synonym.name,
            topic.kind,
            topic.default,
            topic.valid,
            doc,
            update=Update.CLUSTER_WIDE,
            importance=importance,
        )
    stronger = topic.synonyms[position - 1].name if position else None
    is_weakest = position == len(topic.synonyms) - 1
    default: Any = topic.default
    if stronger is not None:
        doc = f"The default of {topic.name} in another unit, used when {stronger} is not set."
    valid: Validator[Any] | None = _RANGES.get(synonym.name)
    return Option(
        synonym.name,
        topic.kind if synonym.factor == 1 else INT,
        default // synonym.factor if is_weakest else None,
        valid,
        doc,
        update=Update.READ_ONLY if position else Update.CLUSTER_WIDE,
        importance=Importance.HIGH,
    )


def _fill(namespace: dict[str, Any]) -> None:
    namespace["__doc__"] = "Broker-wide defaults of topic options."
    namespace["__module__"] = __name__
    for declared in derived_options():
        namespace[declared.name.replace(".", "_")] = declared


LogDefaultOptions: Final[type[Section]] = types.new_class("LogDefaultOptions", (Section,), {}, _fill)
