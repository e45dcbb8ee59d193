"""Broker-wide defaults of topic options (``log.segment.bytes`` for ``segment.bytes``), derived from the topic options.

A topic option's synonyms are the broker options that stand in for it. One with the same unit has the topic option's
type, default and range. Where a topic option has several, only the strongest can be changed while the broker runs, and
only the weakest has a default: that is how ``log.retention.ms`` can override ``log.retention.hours`` by being set.
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
"""Of options with a unit of their own; the others of those take any number."""
_DECLARED_ELSEWHERE: Final = tuple(declared.name for declared in LogUpkeepOptions.options)


def derived_options() -> Iterator[Option[Any]]:
    """Every broker option that is a topic option's default and not declared for itself."""
    for topic in TOPIC_OPTIONS:
        for position, synonym in enumerate(topic.synonyms):
            if synonym.name not in _DECLARED_ELSEWHERE:
                yield _derived(topic, synonym, position)


def _derived(topic: Option[Any], synonym: Synonym, position: int) -> Option[Any]:
    doc = f"What {topic.name} is for topics that do not set it themselves. {topic.doc}"
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
        doc = f"What {topic.name} is for topics that do not set it, in other units, unless {stronger} is set."
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
