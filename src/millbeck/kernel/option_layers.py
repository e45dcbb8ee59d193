"""Precedence of configuration sources: the effective value of an option that several sources set.

In descending precedence: the topic's or group's own value, this broker's dynamic value, the cluster's dynamic value,
the server's file, the default. Within a source an option's own name precedes its synonyms, and those have their own
order (``log.retention.ms`` before ``.minutes`` before ``.hours``). On a topic or group, options are set only by their
own name; on the broker they are set by the names of their synonyms.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Generic, NamedTuple, TypeVar, cast

from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.option_declarations import REQUIRED, Option, Scope
from millbeck.kernel.option_kinds import ProvidedText

T = TypeVar("T")


class ConfigSource(IntEnum):
    """The source of a value, with the numbers of DescribeConfigs."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8


_OVERRIDE_SOURCE = {Scope.TOPIC: ConfigSource.DYNAMIC_TOPIC_CONFIG, Scope.GROUP: ConfigSource.GROUP_CONFIG}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigLayers:
    """The configured texts by name, one mapping per source."""

    overrides: Mapping[str, str] = field(default_factory=dict)
    """The topic's or group's own values; not used for broker options."""
    dynamic_broker: Mapping[str, str] = field(default_factory=dict)
    dynamic_default: Mapping[str, str] = field(default_factory=dict)
    static: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)
    """`OptionSet.default_texts` of the broker's options, for the defaults of synonyms."""

    def broker_sources(self) -> tuple[tuple[Mapping[str, str], ConfigSource], ...]:
        return (
            (self.dynamic_broker, ConfigSource.DYNAMIC_BROKER_CONFIG),
            (self.dynamic_default, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
            (self.static, ConfigSource.STATIC_BROKER_CONFIG),
            (self.defaults, ConfigSource.DEFAULT_CONFIG),
        )


class SynonymValue(NamedTuple):
    """One entry of the chain of synonyms: name, text (None when sensitive) and source."""

    name: str
    text: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedOption(Generic[T]):
    value: T
    source: ConfigSource
    synonyms: tuple[SynonymValue, ...]
    """All sources that have a value, in order of precedence."""
    is_hidden: bool
    """Whether the value must not be shown: a password, or from a config provider."""


class _Link(NamedTuple):
    name: str
    text: str
    source: ConfigSource
    factor: int | None
    """The factor of the synonym; None when the text was set under the option's own name."""


def resolve_option(declared: Option[T], layers: ConfigLayers) -> ResolvedOption[T]:
    """The effective value, its source, and the synonyms that DescribeConfigs returns. Raises `InvalidConfig`."""
    links = list(_links(declared, layers))
    if not links:
        return ResolvedOption(
            value=_default_of(declared), source=ConfigSource.DEFAULT_CONFIG, synonyms=(), is_hidden=declared.sensitive
        )
    shown = (SynonymValue(link.name, _shown(declared, link), link.source) for link in links)
    return ResolvedOption(
        value=_value_of(declared, links[0]),
        source=links[0].source,
        synonyms=tuple(shown),
        is_hidden=_shown(declared, links[0]) is None,
    )


def resolve_value(declared: Option[T], layers: ConfigLayers) -> T:
    """The effective value, without its source. Raises `InvalidConfig`."""
    for link in _links(declared, layers):
        return _value_of(declared, link)
    return _default_of(declared)


def _links(declared: Option[Any], layers: ConfigLayers) -> Iterator[_Link]:
    """All configured values, in order of precedence."""
    name = declared.name
    override_source = _OVERRIDE_SOURCE.get(declared.scope)
    if override_source is not None and name in layers.overrides:
        yield _Link(name, layers.overrides[name], override_source, None)
    for texts, source in layers.broker_sources():
        if not texts:
            continue
        if override_source is None and name in texts:
            yield _Link(name, texts[name], source, None)
        for synonym, factor in declared.synonyms:
            if synonym in texts:
                yield _Link(synonym, texts[synonym], source, factor)


def _shown(declared: Option[Any], link: _Link) -> str | None:
    return None if declared.sensitive or isinstance(link.text, ProvidedText) else link.text


def _value_of(declared: Option[T], link: _Link) -> T:
    if link.factor is None:
        return declared.parse(link.text)
    # A synonym's text is validated by the synonym's own option, whose validator may differ.
    value = declared.convert(link.text)
    if link.factor == 1:
        return value
    number = cast(int, value)
    return cast(T, number * link.factor if number >= 0 else -1)


def _default_of(declared: Option[T]) -> T:
    if declared.default is REQUIRED:
        raise InvalidConfig(f"The configuration {declared.name} has no default and must be set")
    return declared.default
