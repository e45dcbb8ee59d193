"""The schemas that a topic may have, after the records of the schema registry's topic so far.

Only the default context counts, since an id in a record does not name its context. A soft-deleted version is not
accepted any more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from millbeck.client.schemas.log_records import Json, KeyType, UnreadableRecord, decode_json, decode_key, positive
from millbeck.storage.config import STRATEGIES

_CONTEXT_PREFIX: Final = ":."
_TOPIC_NAME, _RECORD_NAME, _TOPIC_RECORD_NAME = STRATEGIES
_TEXT_LENGTH_MAX: Final = 1024 * 1024
_PACKAGE: Final = re.compile(r"^\s*package\s+([\w.]+)\s*;", re.MULTILINE)
_MESSAGE: Final = re.compile(r"\bmessage\s+(\w+)")


@dataclass(slots=True)
class RegisteredVersion:
    subject: str
    schema_id: int
    guid: bytes | None
    record_name: str
    """The name of its record, if the subject is named after it, else an empty text."""
    is_deleted: bool


class RegisteredSchemas:
    def __init__(self) -> None:
        self._subjects: dict[str, dict[int, RegisteredVersion]] = {}
        self._aliases: dict[str, str] = {}

    def replay(self, key: bytes | None, value: bytes | None) -> bool:
        """Apply the next record; returns whether it may change what a topic accepts. A record that cannot be read is
        skipped, as registries do."""
        try:
            return key is not None and self._replay(key, value)
        except UnreadableRecord:
            return False

    def _replay(self, raw: bytes, value: bytes | None) -> bool:
        key = decode_key(raw)
        subject = key.subject
        if subject is None or subject.startswith(_CONTEXT_PREFIX):
            return False
        match key.keytype:
            case KeyType.SCHEMA:
                self._subjects.get(subject, {}).pop(key.version, None)
                if value is not None:
                    found = _version(subject, decode_json(value))
                    self._subjects.setdefault(subject, {})[key.version] = found
            case KeyType.CONFIG:
                alias = None if value is None else decode_json(value).get("alias")
                self._aliases.pop(subject, None)
                if isinstance(alias, str) and alias:
                    self._aliases[subject] = alias
            case KeyType.DELETE_SUBJECT if value is not None:
                last = positive(decode_json(value).get("version"), "version")
                for number, version in self._subjects.get(subject, {}).items():
                    version.is_deleted = version.is_deleted or number <= last
            case KeyType.CLEAR_SUBJECT if value is not None:
                self._subjects.pop(subject, None)
            case _:
                return False
        return True

    def of_topic(self, topic: str, strategy: str, *, is_key: bool) -> tuple[frozenset[int], frozenset[bytes]]:
        """The ids and guids of the schemas that keys or values of the topic may have."""
        versions = [each for each in self._versions(topic, strategy, is_key=is_key) if not each.is_deleted]
        return (
            frozenset(each.schema_id for each in versions),
            frozenset(each.guid for each in versions if each.guid is not None),
        )

    def _versions(self, topic: str, strategy: str, *, is_key: bool) -> Iterable[RegisteredVersion]:
        strategy = strategy.rpartition(".")[2]
        if strategy == _TOPIC_NAME:
            subject = subject_of(topic, strategy, is_key=is_key)
            return self._subjects.get(self._aliases.get(subject, subject), {}).values()
        prefix = f"{topic}-" if strategy == _TOPIC_RECORD_NAME else ""
        every = (version for versions in self._subjects.values() for version in versions.values())
        return (each for each in every if each.record_name and each.subject == prefix + each.record_name)


def subject_of(topic: str, strategy: str, *, is_key: bool) -> str:
    """The subject for messages, with a placeholder for a record's name."""
    match strategy.rpartition(".")[2]:
        case "TopicNameStrategy":
            return f"{topic}-{'key' if is_key else 'value'}"
        case "RecordNameStrategy":
            return "a subject with the name of the record"
    return f"{topic}-RECORD, where RECORD is the name of the record"


def _version(subject: str, members: Json) -> RegisteredVersion:
    guid = members.get("guid")
    return RegisteredVersion(
        subject,
        positive(members.get("id"), "id"),
        _guid_bytes(guid) if isinstance(guid, str) else None,
        _record_name(subject, members.get("schemaType") or "AVRO", members.get("schema")),
        members.get("deleted") is True,
    )


def _guid_bytes(guid: str) -> bytes | None:
    try:
        return bytes.fromhex(guid.replace("-", ""))
    except ValueError:
        return None


def _record_name(subject: str, schema_type: Any, text: Any) -> str:
    """The name of the schema's record, if the subject is that name or ends with it; else an empty text."""
    if not isinstance(text, str) or len(text) > _TEXT_LENGTH_MAX:
        return ""
    names = _message_names(text) if schema_type == "PROTOBUF" else _json_names(schema_type, text)
    return next((each for each in names if each and (subject == each or subject.endswith(f"-{each}"))), "")


def _json_names(schema_type: Any, text: str) -> list[str]:
    """The full name of an Avro type, or the title of a JSON Schema."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return []
    if not isinstance(found, dict):
        return []
    name, space = found.get("title" if schema_type == "JSON" else "name"), found.get("namespace")
    if not isinstance(name, str):
        return []
    return (
        [f"{space}.{name}"]
        if schema_type != "JSON" and isinstance(space, str) and space and "." not in name
        else [name]
    )


def _message_names(text: str) -> list[str]:
    """The full names of the messages of a .proto; nested ones are known by their own name in the package."""
    package = _PACKAGE.search(text)
    prefix = f"{package[1]}." if package else ""
    return [prefix + name for name in dict.fromkeys(_MESSAGE.findall(text))]
