"""The declaration of one option: all properties of a setting in one object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, Generic, NamedTuple, TypedDict, TypeVar, Unpack, overload

from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.option_kinds import HIDDEN, PASSWORD, OptionKind, ProvidedText
from millbeck.kernel.validators import Validator

T = TypeVar("T")

_SHOWN_LENGTH_MAX = 200


class Scope(Enum):
    BROKER = "broker"
    TOPIC = "topic"
    GROUP = "group"
    CLIENT = "client"


class Update(Enum):
    """Whether a broker option can be changed while the broker runs; topic and group options always can."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class Importance(Enum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Synonym(NamedTuple):
    """A broker option that gives another option's value; it is multiplied by ``factor`` (hours to ms), -1 stays -1."""

    name: str
    factor: int = 1


class Required(Enum):
    REQUIRED = "required"


REQUIRED: Final = Required.REQUIRED
"""Used as a default: the option has no default and must be set."""


class OptionKeywords(TypedDict, total=False):
    """The keyword arguments of `option` other than name, kind, default, validator and doc."""

    scope: Scope
    update: Update
    importance: Importance
    synonyms: Sequence[Synonym]
    """The options that are used when this one is not set, in order of precedence."""
    sensitive: bool
    """Whether the value is hidden in output; passwords are always sensitive."""
    internal: bool
    """Whether the option is omitted from docs and listings; it works nevertheless."""


@dataclass(slots=True, eq=False, repr=False)
class Option(Generic[T]):
    """One declared setting. On a section's class it is the declaration, on an instance the value."""

    name: str
    kind: OptionKind[Any]
    default: T | Required
    valid: Validator[Any] | None
    doc: str
    scope: Scope = field(default=Scope.BROKER, kw_only=True)
    update: Update = field(default=Update.READ_ONLY, kw_only=True)
    importance: Importance = field(default=Importance.MEDIUM, kw_only=True)
    synonyms: Sequence[Synonym] = field(default=(), kw_only=True)
    sensitive: bool = field(default=False, kw_only=True)
    internal: bool = field(default=False, kw_only=True)
    attribute: str = field(default="", init=False)

    def __post_init__(self) -> None:
        assert self.doc, f"option {self.name} has no doc"
        self.synonyms = tuple(self.synonyms)
        self.sensitive = self.sensitive or self.kind is PASSWORD
        if self.valid is not None and self.default is not None and self.default is not REQUIRED:
            assert self.valid.accepts(self.default), (
                f"default {self.default!r} of {self.name} is not {self.valid.allowed}"
            )

    def __set_name__(self, owner: type, attribute: str) -> None:
        assert not self.attribute, f"option {self.name} is declared twice"
        self.attribute = attribute

    @overload
    def __get__(self, instance: None, owner: type) -> Option[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> Option[T] | T:
        # There is no __set__, so the instance's own dict takes precedence: this runs on the class only.
        assert instance is None, f"{self.name} has no value"
        return self

    def parse(self, text: str) -> T:
        """Parse and validate a text. Raises `InvalidConfig` with the setting, the text and the allowed values."""
        value = self.convert(text)
        if self.valid is not None and not self.valid.accepts(value):
            raise self._refusal(text, f"the value must be {self.valid.allowed}")
        return value

    def convert(self, text: str) -> T:
        """Like `parse`, without the validator."""
        try:
            value: T = self.kind.parse(text)
        except ValueError as problem:
            raise self._refusal(text, str(problem)) from None
        return value

    def text(self, value: T) -> str | None:
        """The text of a value; None for null. A password's text is a placeholder."""
        return None if value is None else self.kind.text(value)

    @property
    def default_text(self) -> str | None:
        """The default as text; None when it is null, secret or required."""
        return None if self.default is REQUIRED or self.sensitive else self.text(self.default)

    def _refusal(self, text: str, problem: str) -> InvalidConfig:
        shown = text if len(text) <= _SHOWN_LENGTH_MAX else text[:_SHOWN_LENGTH_MAX] + "..."
        shown = HIDDEN if self.sensitive or isinstance(text, ProvidedText) else shown
        return InvalidConfig(f"Invalid value {shown} for configuration {self.name}: {problem}")

    def __repr__(self) -> str:
        return f"<option {self.name}: {self.kind}>"


@overload
def option(
    name: str,
    kind: OptionKind[T],
    default: Required,
    *,
    doc: str,
    valid: Validator[T] | None = None,
    **details: Unpack[OptionKeywords],
) -> Option[T]: ...
@overload
def option(
    name: str,
    kind: OptionKind[T],
    default: None,
    *,
    doc: str,
    valid: Validator[T] | None = None,
    **details: Unpack[OptionKeywords],
) -> Option[T | None]: ...
@overload
def option(
    name: str,
    kind: OptionKind[T],
    default: T,
    *,
    doc: str,
    valid: Validator[T] | None = None,
    **details: Unpack[OptionKeywords],
) -> Option[T]: ...
def option(
    name: str,
    kind: OptionKind[Any],
    default: Any,
    *,
    doc: str,
    valid: Validator[Any] | None = None,
    **details: Unpack[OptionKeywords],
) -> Option[Any]:
    """Declare an option. A default of None makes its value optional; `REQUIRED` means that it must be set."""
    return Option(name, kind, default, valid, doc, **details)
