"""The declaration of one option: everything there is to know about a setting, in one object."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, Final, Generic, NamedTuple, TypedDict, TypeVar, Unpack, overload

from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.option_kinds import PASSWORD, Kind
from millbeck.kernel.validators import Validator

T = TypeVar("T")

_SHOWN_LENGTH_MAX = 200


class Scope(Enum):
    BROKER = "broker"
    TOPIC = "topic"
    GROUP = "group"
    CLIENT = "client"


class Update(Enum):
    """How a broker option can be changed while the broker runs; topic and group options always can."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class Importance(Enum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Synonym(NamedTuple):
    """A broker option that stands in for another option; its value is multiplied (hours to ms), -1 stays -1."""

    name: str
    factor: int = 1


class Required(Enum):
    REQUIRED = "required"


REQUIRED: Final = Required.REQUIRED
"""As a default: the option has none and must be set."""


class Details(TypedDict, total=False):
    """What `option` takes beside name, kind, default, validator and doc."""

    scope: Scope
    update: Update
    importance: Importance
    synonyms: Sequence[Synonym]
    """The options that are asked when this one is not set, the strongest first."""
    sensitive: bool
    """Never shown; passwords always are sensitive."""
    internal: bool
    """Works, but is left out of docs and listings."""


class Option(Generic[T]):
    """One declared setting. On a section's class it is the declaration, on an instance it is the value."""

    __slots__ = (
        "attribute",
        "default",
        "doc",
        "importance",
        "internal",
        "kind",
        "name",
        "scope",
        "sensitive",
        "synonyms",
        "update",
        "valid",
    )

    def __init__(
        self,
        name: str,
        kind: Kind[Any],
        default: T | Required,
        valid: Validator[Any] | None,
        doc: str,
        *,
        scope: Scope = Scope.BROKER,
        update: Update = Update.READ_ONLY,
        importance: Importance = Importance.MEDIUM,
        synonyms: Sequence[Synonym] = (),
        sensitive: bool = False,
        internal: bool = False,
    ) -> None:
        assert doc, f"option {name} has no doc"
        self.name = name
        self.kind = kind
        self.default = default
        self.valid = valid
        self.doc = doc
        self.scope = scope
        self.update = update
        self.importance = importance
        self.synonyms = tuple(synonyms)
        self.sensitive = sensitive or kind is PASSWORD
        self.internal = internal
        self.attribute = ""
        if valid is not None and default is not None and default is not REQUIRED:
            assert valid.accepts(default), f"default {default!r} of {name} is not {valid.allowed}"

    def __set_name__(self, owner: type, attribute: str) -> None:
        assert not self.attribute, f"option {self.name} is declared twice"
        self.attribute = attribute

    @overload
    def __get__(self, instance: None, owner: type) -> Option[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> Option[T] | T:
        # There is no __set__, so a value in the instance's own dict is found first: this runs on the class only.
        assert instance is None, f"{self.name} has no value"
        return self

    def parse(self, text: str) -> T:
        """The value of a text; raises `InvalidConfig` that names the setting, the text and what is allowed."""
        value = self.convert(text)
        if self.valid is not None and not self.valid.accepts(value):
            raise self._refusal(text, f"the value must be {self.valid.allowed}")
        return value

    def convert(self, text: str) -> T:
        """Like `parse`, but asks the type only and not the validator."""
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
        shown = "[hidden]" if self.sensitive else shown
        return InvalidConfig(f"Invalid value {shown} for configuration {self.name}: {problem}")

    def __repr__(self) -> str:
        return f"<option {self.name}: {self.kind}>"


@overload
def option(
    name: str,
    kind: Kind[T],
    default: Required,
    *,
    doc: str,
    valid: Validator[T] | None = None,
    **details: Unpack[Details],
) -> Option[T]: ...
@overload
def option(
    name: str,
    kind: Kind[T],
    default: None,
    *,
    doc: str,
    valid: Validator[T] | None = None,
    **details: Unpack[Details],
) -> Option[T | None]: ...
@overload
def option(
    name: str,
    kind: Kind[T],
    default: T,
    *,
    doc: str,
    valid: Validator[T] | None = None,
    **details: Unpack[Details],
) -> Option[T]: ...
def option(
    name: str,
    kind: Kind[Any],
    default: Any,
    *,
    doc: str,
    valid: Validator[Any] | None = None,
    **details: Unpack[Details],
) -> Option[Any]:
    """Declare a setting. A default of None makes its value optional; `REQUIRED` means that it has to be set."""
    return Option(name, kind, default, valid, doc, **details)
