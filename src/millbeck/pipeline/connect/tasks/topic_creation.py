"""The topics of a source: which settings they are made with (``topic.creation.*``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from millbeck.pipeline.connect.config.definitions import LIST
from millbeck.pipeline.connect.errors import ConfigError
from millbeck.pipeline.connect.model.java_patterns import PatternError, compiled

_PREFIX: Final = "topic.creation."
_DEFAULT: Final = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicShape:
    """How a topic is made; -1 is the brokers' default."""

    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = field(default_factory=dict)


class TopicCreation:
    """Groups of topics, the first that includes a topic and does not exclude it counts. Raises `ConfigError`."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.is_used = any(name.startswith(f"{_PREFIX}{_DEFAULT}.") for name in settings)
        self._settings = settings
        groups = LIST.parse(settings.get(f"{_PREFIX}groups", ""))
        self._groups = [group for group in groups if group and group != _DEFAULT]

    def shape(self, topic: str) -> TopicShape | None:
        """None: the brokers make it, if they are set so (auto.create.topics.enable)."""
        if not self.is_used:
            return None
        for group in self._groups:
            if self._matches(group, "include", topic) and not self._matches(group, "exclude", topic):
                return self._shape(group)
        return self._shape(_DEFAULT)

    def _matches(self, group: str, word: str, topic: str) -> bool:
        setting = f"{_PREFIX}{group}.{word}"
        for pattern in LIST.parse(self._settings.get(setting, "")):
            try:
                if pattern and compiled(pattern).fullmatch(topic) is not None:
                    return True
            except PatternError as error:
                raise ConfigError.of(setting, pattern, f"Invalid regex: {error}") from None
        return False

    def _shape(self, group: str) -> TopicShape:
        prefix = f"{_PREFIX}{group}."
        own = {name.removeprefix(prefix): text for name, text in self._settings.items() if name.startswith(prefix)}
        defaults = f"{_PREFIX}{_DEFAULT}."
        return TopicShape(
            partitions=_number(prefix, "partitions", own, self._settings.get(f"{defaults}partitions")),
            replication_factor=_number(
                prefix, "replication.factor", own, self._settings.get(f"{defaults}replication.factor")
            ),
            configs={name: text for name, text in own.items()
                     if name not in ("partitions", "replication.factor", "include", "exclude")},
        )  # fmt: skip


def _number(prefix: str, name: str, own: Mapping[str, str], default: str | None) -> int:
    text = own.get(name, default)
    if text is None:
        return -1
    try:
        found = int(text)
    except ValueError:
        found = 0
    if found == -1 or found > 0:
        return found
    raise ConfigError.of(f"{prefix}{name}", text, "Value must be -1 (the brokers' default) or larger than 0")
