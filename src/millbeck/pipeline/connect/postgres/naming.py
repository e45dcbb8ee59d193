"""Names of topics and schemas."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from millbeck.pipeline.connect.postgres.tables import TableId

_NOT_IN_TOPICS: Final = re.compile(r"[^A-Za-z0-9._-]")
_TOPIC_LENGTH_MAX: Final = 249


def topic_name(text: str) -> str:
    """A name that a topic can have: underscores for what cannot be in it."""
    name = _NOT_IN_TOPICS.sub("_", text)[:_TOPIC_LENGTH_MAX]
    return "_" * len(name) if name in (".", "..") else name


def adjusted(name: str, mode: str, *, keeps_dots: bool) -> str:
    """A name as ``schema.name.adjustment.mode`` and ``field.name.adjustment.mode`` have it: for Avro, or as it is."""
    if mode == "none" or not name:
        return name
    is_unicode = mode == "avro_unicode"

    def replaced(character: str) -> str:
        return f"_u{ord(character):04x}" if is_unicode else "_"

    letters = "" if is_unicode else "_"
    made: list[str] = []
    for place, character in enumerate(name):
        is_letter = character.isascii() and (character.isalpha() or character in letters)
        is_digit = character.isascii() and character.isdigit()
        if is_letter or (place and (is_digit or (keeps_dots and character == "."))):
            made.append(character)
        else:
            made.append(replaced(character) + (character if is_digit and not is_unicode else ""))
    return "".join(made)


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    prefix: str
    delimiter: str = "."
    heartbeat_prefix: str = "__debezium-heartbeat"
    transaction: str = "transaction"
    schema_mode: str = "none"
    field_mode: str = "none"

    def topic(self, table: TableId) -> str:
        return topic_name(self.delimiter.join((self.prefix, table.schema, table.name)))

    @property
    def heartbeat_topic(self) -> str:
        return self.delimiter.join((self.heartbeat_prefix, self.prefix))

    @property
    def transaction_topic(self) -> str:
        return self.delimiter.join((self.prefix, self.transaction))

    @property
    def message_topic(self) -> str:
        return f"{self.prefix}.message"

    def schema_name(self, name: str) -> str:
        return adjusted(name, self.schema_mode, keeps_dots=True)

    def field_name(self, name: str) -> str:
        return adjusted(name, self.field_mode, keeps_dots=False)
