"""What the registry asks of a schema format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol, Self


class Form(Enum):
    """The forms in which a schema's text is asked for."""

    CANONICAL = "canonical"
    """As it is stored: the same for texts that differ only in their layout."""
    NORMALIZED = "normalized"
    """The same for texts that also differ in order and spelling that means nothing."""
    COMPARED = "compared"
    """Equal for two texts that count as one schema, however they are spelled."""
    RESOLVED = "resolved"
    """With the referenced schemas inside."""
    SERIALIZED = "serialized"
    """Protobuf: the descriptor of the file, in base64."""


class Imported(NamedTuple):
    """A referenced schema, ``name`` being how the text that refers to it names it."""

    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a schema may be, checked before work is done on it."""

    text_length_max: int = 1024 * 1024
    depth_max: int = 100
    name_length_max: int = 1000
    reference_count_max: int = 1000
    piece_count_max: int = 100_000
    """Types, fields and symbols, those of referenced schemas included."""


class Incompatibility(NamedTuple):
    """One reason why a reader cannot read what a writer has written."""

    kind: str
    path: str
    """Where in the reader's schema, as a JSON pointer."""
    sentence: str
    """What differs and what would be accepted."""
    detail: str
    """The piece that differs."""

    def __str__(self) -> str:
        return (
            f"{{errorType:'{self.kind}', description:'{self.sentence}', additionalInfo:'{self.detail}', "
            f"path:'{self.path}'}}"
        )


class Roles(NamedTuple):
    """How messages call the two schemas that are compared."""

    reader: str
    writer: str


NEW_READS_OLD = Roles("new", "old")
OLD_READS_NEW = Roles("old", "new")


class Policy(Enum):
    """How strictly schemas are compared: the setting ``compatibilityPolicy``."""

    STRICT = "STRICT"
    LENIENT = "LENIENT"
    """JSON Schema: properties that nobody has declared are taken not to be there."""


class ParsedSchema(Protocol):
    def text(self, form: Form) -> str:
        """The text in a form; a form that the format does not have is the text as it is stored."""

    def problems_reading(self, writer: Self, roles: Roles, policy: Policy = Policy.STRICT) -> list[Incompatibility]:
        """Why this schema, as a reader's, cannot read what ``writer`` has written; empty if it can."""


class SchemaFormat(Protocol):
    name: str
    """Its ``schemaType``."""

    def parse(self, text: str, imported: Sequence[Imported], *, is_new: bool = True) -> ParsedSchema:
        """Raises `InvalidSchema` or `SchemaTooLarge`.

        A schema that is not new was accepted by some release, here or elsewhere: mistakes that do not keep it from
        being used are let pass.
        """
