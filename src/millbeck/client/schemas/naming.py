"""The subject name strategies of Confluent's clients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from millbeck.client.schemas.model import subject_of
from millbeck.kernel.errors import InvalidConfig

Strategy = Callable[[str, str, str], str]
"""A strategy: returns the subject for a topic, a part (key or value) and the full name of a record."""


def _by_record(topic: str, part: str, record: str) -> str:
    return record


def _by_topic_and_record(topic: str, part: str, record: str) -> str:
    return f"{topic}-{record}"


def _by_topic(topic: str, part: str, record: str) -> str:
    return subject_of(topic, part)


_STRATEGIES: Final[dict[str, Strategy]] = {
    "TopicNameStrategy": _by_topic,
    "RecordNameStrategy": _by_record,
    "TopicRecordNameStrategy": _by_topic_and_record,
}


def strategy_named(name: str) -> Strategy:
    """The strategy with this name, which may be that of a Java class; raises `InvalidConfig`."""
    found = _STRATEGIES.get(name.rpartition(".")[2])
    if found is None:
        raise InvalidConfig(f"subject.name.strategy: {name[:100]} is not one of {', '.join(_STRATEGIES)}")
    return found
