"""Options: each setting is declared once, and everything else is derived from its declaration.

    class LogOptions(Section):
        segment_bytes = option("segment.bytes", INT, 1 * GIB, valid=at_least(1 * MIB), scope=Scope.TOPIC,
                               synonyms=[Synonym("log.segment.bytes")], doc="Roll the active segment at this size.")

    LogOptions.segment_bytes                  # the declaration: Option[int]
    LogOptions.resolve(layers).segment_bytes  # the effective value: int
    TOPIC_OPTIONS = OptionSet(LogOptions)     # all options of one scope, by Kafka's name

An instance of a section is an immutable snapshot; reading a value is an ordinary attribute access. `option_layers` has
the precedence of sources. An option that is declared twice, whose default its validator rejects or that has no doc
fails at import. This module re-exports the whole family: import from here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.option_declarations import REQUIRED, Importance, Option, Scope, Synonym, Update, option
from millbeck.kernel.option_kinds import (
    BOOLEAN,
    CLASS,
    DOUBLE,
    INT,
    LIST,
    LONG,
    PASSWORD,
    SHORT,
    STRING,
    OptionKind,
    Secret,
)
from millbeck.kernel.option_layers import (
    ConfigLayers,
    ConfigSource,
    ResolvedOption,
    SynonymValue,
    resolve_option,
    resolve_value,
)
from millbeck.kernel.validators import (
    Validator,
    all_of,
    at_least,
    between,
    distinct,
    each_of,
    matching,
    non_empty,
    one_of,
)

__all__ = [
    "BOOLEAN",
    "CLASS",
    "DOUBLE",
    "INT",
    "LIST",
    "LONG",
    "PASSWORD",
    "REQUIRED",
    "SHORT",
    "STRING",
    "ConfigLayers",
    "ConfigSource",
    "Importance",
    "Option",
    "OptionKind",
    "OptionSet",
    "ResolvedOption",
    "Scope",
    "Secret",
    "Section",
    "Synonym",
    "SynonymValue",
    "Update",
    "Validator",
    "all_of",
    "at_least",
    "between",
    "distinct",
    "each_of",
    "matching",
    "non_empty",
    "one_of",
    "option",
    "resolve_option",
    "resolve_value",
]


class _OnceNamespace(dict[str, object]):
    """The namespace of a section's class body, in which an option cannot be assigned twice."""

    def __setitem__(self, key: str, value: object) -> None:
        assert not isinstance(self.get(key), Option), f"{key} is declared twice"
        super().__setitem__(key, value)


class _SectionType(type):
    @classmethod
    def __prepare__(cls, name: str, bases: tuple[type, ...], /, **keywords: Any) -> _OnceNamespace:
        return _OnceNamespace()


class Section(metaclass=_SectionType):
    """A group of related options; an instance has their values and is immutable."""

    options: tuple[Option[Any], ...] = ()

    def __init_subclass__(cls) -> None:
        own = [value for value in vars(cls).values() if isinstance(value, Option)]
        cls.options = (*cls.options, *own)
        names = {declared.name for declared in cls.options}
        assert len(names) == len(cls.options), f"{cls.__name__} declares an option twice"

    @classmethod
    def resolve(cls, layers: ConfigLayers) -> Self:
        """The section with its effective values. Raises `InvalidConfig`."""
        return cls._of_values({declared.attribute: resolve_value(declared, layers) for declared in cls.options})

    @classmethod
    def of(cls, **texts_by_attribute: str) -> Self:
        """The section with its defaults, except for the attributes given as text. Raises `InvalidConfig`."""
        names = {declared.attribute: declared.name for declared in cls.options}
        texts = {names[attribute]: text for attribute, text in texts_by_attribute.items()}
        return cls.resolve(ConfigLayers(overrides=texts, static=texts))

    def replace(self, **values_by_attribute: object) -> Self:
        """A copy with other values, which are not validated: for values set by the code itself."""
        unknown = sorted(values_by_attribute.keys() - self.__dict__.keys())
        assert not unknown, f"{type(self).__name__} has no {unknown}"
        return self._of_values(self.__dict__ | values_by_attribute)

    @classmethod
    def _of_values(cls, values: dict[str, object]) -> Self:
        section = cls.__new__(cls)
        section.__dict__.update(values)
        return section

    def __setattr__(self, attribute: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; use replace()")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.__dict__ == self.__dict__

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        values = ((declared, self.__dict__[declared.attribute]) for declared in self.options)
        shown = (f"{declared.name}={'[hidden]' if declared.sensitive else repr(value)}" for declared, value in values)
        return f"{type(self).__name__}({', '.join(shown)})"


class OptionSet:
    """All options of one scope, keyed by their Kafka names, in declaration order."""

    def __init__(self, *sections: type[Section]) -> None:
        self.sections = sections
        self.by_name: dict[str, Option[Any]] = {}
        for section in sections:
            for declared in section.options:
                assert declared.name not in self.by_name, f"option {declared.name} is declared twice"
                self.by_name[declared.name] = declared

    def __contains__(self, name: object) -> bool:
        return name in self.by_name

    def __iter__(self) -> Iterator[Option[Any]]:
        return iter(self.by_name.values())

    def __len__(self) -> int:
        return len(self.by_name)

    def __getitem__(self, name: str) -> Option[Any]:
        """The declaration of an option. Raises `InvalidConfig` for an unknown name."""
        declared = self.by_name.get(name)
        if declared is None:
            raise InvalidConfig(f"Unknown configuration {name}")
        return declared

    def parse(self, name: str, text: str) -> Any:
        """Parse a setting's text. Raises `InvalidConfig` for an unknown name or an invalid value."""
        return self[name].parse(text)

    def default_texts(self) -> dict[str, str]:
        """The texts for `ConfigLayers.defaults`: every default that is not null, sensitive or required."""
        texts = ((declared.name, declared.default_text) for declared in self)
        return {name: text for name, text in texts if text is not None}
