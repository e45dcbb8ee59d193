"""A schema with everything that identifies it: type, text, references, metadata, rules."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from json.encoder import encode_basestring
from typing import Any, Final, NamedTuple

from millbeck.client.schemas.log_records import Json, UnreadableRecord, encode_json, positive

AVRO: Final = "AVRO"
JSON: Final = "JSON"
PROTOBUF: Final = "PROTOBUF"


class Reference(NamedTuple):
    """A reference to a version of a subject; ``name`` is the name by which the text imports it."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema; equal schemas of a context have the same id.

    ``metadata`` and ``rule_set`` are JSON texts, since a value must be immutable; they are not interpreted.
    """

    schema_type: str
    text: str
    references: tuple[Reference, ...] = ()
    metadata: str | None = None
    rule_set: str | None = None
    _digest: bytes = field(default=b"", init=False, repr=False, compare=False)

    @property
    def digest(self) -> bytes:
        """A digest that identifies the content."""
        if not self._digest:
            found = hashlib.md5(self._content(), usedforsecurity=False).digest()
            object.__setattr__(self, "_digest", found)
        return self._digest

    def _content(self) -> bytes:
        if (
            self.schema_type == AVRO
            and self.text.isprintable()
            and not (self.references or self.metadata or self.rule_set)
        ):
            # The usual case, as the line below writes it.
            return f'["AVRO",{encode_basestring(self.text)},[],null,null]'.encode()
        references = [list(each) for each in self.references]
        return encode_json([self.schema_type, self.text, references, self.metadata, self.rule_set])

    @property
    def guid(self) -> str:
        """The guid, which identifies the content in any registry."""
        return _guid(self.digest)

    @property
    def properties(self) -> Mapping[str, str]:
        """The properties of the metadata."""
        found = None if self.metadata is None else json.loads(self.metadata).get("properties")
        return found if isinstance(found, dict) else {}

    def same_text(self, other: Schema) -> bool:
        """Whether the two schemas are equal apart from metadata and rules."""
        return (self.schema_type, self.text, self.references) == (other.schema_type, other.text, other.references)

    def with_data(self, *, metadata: str | None, rule_set: str | None) -> Schema:
        return replace(self, metadata=metadata, rule_set=rule_set)

    def members(self) -> Json:
        """The members of the schema in values of the log and in answers; members with default values are omitted."""
        members: Json = {}
        if self.schema_type != AVRO:
            members["schemaType"] = self.schema_type
        if self.references:
            members["references"] = [each._asdict() for each in self.references]
        if self.metadata is not None:
            members["metadata"] = json.loads(self.metadata)
        if self.rule_set is not None:
            members["ruleSet"] = json.loads(self.rule_set)
        members["schema"] = self.text
        return members

    @classmethod
    def from_members(cls, members: Json) -> Schema:
        """Parse a value of the log; raises `UnreadableRecord`."""
        text, schema_type = members.get("schema"), members.get("schemaType") or AVRO
        if not isinstance(text, str) or not isinstance(schema_type, str):
            raise UnreadableRecord("no schema")
        return cls(
            schema_type,
            text,
            references_of(members.get("references")),
            json_text(members.get("metadata")),
            json_text(members.get("ruleSet")),
        )


def _guid(digest: bytes) -> str:
    digits = digest.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def digest_of(guid: str) -> bytes:
    """The digest that a guid was made of; empty if it is none of this registry's."""
    try:
        digest = bytes.fromhex(guid.replace("-", ""))
    except ValueError:
        return b""
    return digest if _guid(digest) == guid else b""


def references_of(listed: Any) -> tuple[Reference, ...]:
    if not isinstance(listed, list | None):
        raise UnreadableRecord("references are not a list")
    references: list[Reference] = []
    for each in listed or ():
        if not isinstance(each, dict):
            raise UnreadableRecord("a reference is not an object")
        name, subject = each.get("name"), each.get("subject")
        if not isinstance(name, str) or not isinstance(subject, str):
            raise UnreadableRecord("a reference has no name or subject")
        references.append(Reference(name, subject, positive(each.get("version"), "version")))
    return tuple(references)


def json_text(value: Any) -> str | None:
    """Metadata or rules as text; None for an absent or empty object."""
    if not isinstance(value, dict | None):
        raise UnreadableRecord("metadata or rules are not an object")
    return encode_json(value).decode() if value else None
