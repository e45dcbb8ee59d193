"""Keys and values of the topic ``_schemas``, in the JSON that Confluent's registry writes.

A key's identity is its type, subject and version (`LogKey`). Its bytes may differ: releases wrote the members in a
different order and with magic 0 or 1, and compaction compares bytes. So a delete writes tombstones for every byte form
seen.

    {"keytype":"SCHEMA","subject":"orders-value","version":1,"magic":1}
        {"subject":"orders-value","version":1,"id":1,"guid":"…","schema":"…","deleted":false}
    {"keytype":"CONFIG","subject":null,"magic":0}                      {"compatibilityLevel":"FULL"}
    {"keytype":"MODE","subject":"orders-value","magic":0}              {"mode":"READONLY"}
    {"keytype":"CONTEXT","tenant":"default","context":".lab","magic":0}
        {"tenant":"default","context":".lab"}
    {"keytype":"DELETE_SUBJECT","subject":"orders-value","magic":0}    {"subject":"orders-value","version":3}
    {"keytype":"CLEAR_SUBJECT","subject":"orders-value","magic":0}     {"subject":"orders-value"}
    {"keytype":"NOOP","magic":0}                                       null
"""

from __future__ import annotations

import json
import re
from enum import StrEnum
from typing import Any, Final, NamedTuple

Json = dict[str, Any]

TENANT: Final = "default"
_MAGICS: Final = (0, 1)
_VERSION_MAX: Final = 2**31 - 1
_USUAL_KEY: Final = re.compile(
    rb'\{"keytype":"SCHEMA","subject":"([^"\\\x00-\x1f]*)","version":([1-9][0-9]{0,9}),"magic":1\}'
)
_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)
_CONTROL_CHARACTER: Final = re.compile(r"(?<!\\)((?:\\\\)*)\\u([0-9a-f]{4})")


class UnreadableRecord(Exception):
    """A record that is not in the format of any registry release."""


class KeyType(StrEnum):
    SCHEMA = "SCHEMA"
    CONFIG = "CONFIG"
    MODE = "MODE"
    CONTEXT = "CONTEXT"
    DELETE_SUBJECT = "DELETE_SUBJECT"
    CLEAR_SUBJECT = "CLEAR_SUBJECT"
    NOOP = "NOOP"


_KEY_TYPES: Final = {each.value: each for each in KeyType}


class LogKey(NamedTuple):
    """The identity of a key. ``subject`` is the context's name in a CONTEXT key; None means all subjects."""

    keytype: KeyType
    subject: str | None = None
    version: int = 0


class LogRecord(NamedTuple):
    """A record to write; the value None is a tombstone."""

    key: bytes
    value: bytes | None


def encode_json(value: object) -> bytes:
    """Compact JSON as Jackson prints it: members in their order, UTF-8, control characters in upper-case hex."""
    text = _ENCODER.encode(value)
    if "\\u" in text:
        text = _CONTROL_CHARACTER.sub(lambda found: f"{found[1]}\\u{found[2].upper()}", text)
    return text.encode("utf-8", "surrogatepass")


def decode_json(raw: bytes) -> Json:
    try:
        found = json.loads(raw.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as error:
        raise UnreadableRecord(f"not JSON: {error}") from None
    if not isinstance(found, dict):
        raise UnreadableRecord(f"not a JSON object: {raw[:80]!r}")
    return found


def encode_key(key: LogKey) -> bytes:
    """Encode a key in the byte form of current releases."""
    match key.keytype:
        case KeyType.NOOP:
            members: Json = {"keytype": "NOOP"}
        case KeyType.CONTEXT:
            members = {"keytype": "CONTEXT", "tenant": TENANT, "context": key.subject}
        case KeyType.SCHEMA:
            members = {"keytype": "SCHEMA", "subject": key.subject, "version": key.version}
        case _:
            members = {"keytype": key.keytype.value, "subject": key.subject}
    magic = 1 if key.keytype is KeyType.SCHEMA else 0
    return encode_json({**members, "magic": magic})


def is_usual_key(raw: bytes) -> bool:
    """Whether this is the key of a version as `encode_key` makes it."""
    return _USUAL_KEY.fullmatch(raw) is not None


def decode_key(raw: bytes) -> LogKey:
    usual = _USUAL_KEY.fullmatch(raw)
    if usual is not None:
        return LogKey(KeyType.SCHEMA, usual[1].decode("utf-8", "surrogatepass"), positive(int(usual[2]), "version"))
    members = decode_json(raw)
    keytype = _KEY_TYPES.get(str(members.get("keytype")))
    if keytype is None:
        raise UnreadableRecord(f"unknown keytype in {raw[:80]!r}")
    if members.get("magic") not in _MAGICS:
        raise UnreadableRecord(f"unknown magic in {raw[:80]!r}")
    if keytype is KeyType.NOOP:
        return LogKey(keytype)
    subject = members.get("context" if keytype is KeyType.CONTEXT else "subject")
    may_be_null = keytype in (KeyType.CONFIG, KeyType.MODE)
    if not isinstance(subject, str) and not (subject is None and may_be_null):
        raise UnreadableRecord(f"no subject in {raw[:80]!r}")
    if keytype is not KeyType.SCHEMA:
        return LogKey(keytype, subject)
    return LogKey(keytype, subject, positive(members.get("version"), "version"))


def positive(value: object, what: str) -> int:
    """Check a version or id that was read."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= _VERSION_MAX:
        raise UnreadableRecord(f"{value!r} is not a valid {what}")
    return value
