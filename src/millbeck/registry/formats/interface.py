"""The interface of a schema format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol, Self


class Form(Enum):
    """The forms of a schema's text."""

    CANONICAL = "canonical"
    """The stored form: equal for texts that differ only in their layout."""
    NORMALIZED = "normalized"
    """The normalised form: equal also for texts that differ in insignificant order and spelling."""
    COMPARED = "compared"
    """The form for comparisons: equal for two texts that count as the same schema, regardless of spelling."""
    RESOLVED = "resolved"
    """The form with the referenced schemas included."""
    SERIALIZED = "serialized"
    """The serialized form of Protobuf: the descriptor of the file, in base64."""


class Imported(NamedTuple):
    """A referenced schema; ``name`` is its name in the text that refers to it."""

    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a schema, checked before it is processed."""

    text_length_max: int = 1024 * 1024
    depth_max: int = 100
    name_length_max: int = 1000
    reference_count_max: int = 1000
    piece_count_max: int = 100_000
    """The maximum number of types, fields and symbols, including those of referenced schemas."""


class Incompatibility(NamedTuple):
    """One reason why a reader cannot read a writer's data."""

    kind: str
    path: str
    """The place in the reader's schema, as a JSON pointer."""
    sentence: str
    """The difference, and what would be accepted."""
    detail: str
    """The part that differs."""

    def __str__(self) -> str:
        return (
            f"{{errorType:'{self.kind}', description:'{self.sentence}', additionalInfo:'{self.detail}', "
            f"path:'{self.path}'}}"
        )


class Roles(NamedTuple):
    """The names of the two compared schemas in messages."""

    reader: str
    writer: str


NEW_READS_OLD = Roles("new", "old")
OLD_READS_NEW = Roles("old", "new")


class Policy(Enum):
    """The strictness of comparisons: the setting ``compatibilityPolicy``."""

    STRICT = "STRICT"
    LENIENT = "LENIENT"
    """For JSON Schema: undeclared properties are assumed to be absent."""


class ParsedSchema(Protocol):
    def text(self, form: Form) -> str:
        """The text in the given form; for a form that the format does not have, the stored text."""

    def problems_reading(self, writer: Self, roles: Roles, policy: Policy = Policy.STRICT) -> list[Incompatibility]:
        """The reasons why this schema cannot read data written with ``writer``; empty if it can."""


class SchemaFormat(Protocol):
    name: str
    """The format's ``schemaType``."""

    def parse(self, text: str, imported: Sequence[Imported], *, is_new: bool = True) -> ParsedSchema:
        """Parse a schema. Raises `InvalidSchema` or `SchemaTooLarge`.

        A schema that is already registered was accepted by some implementation: mistakes that do not prevent its use
        are tolerated.
        """
