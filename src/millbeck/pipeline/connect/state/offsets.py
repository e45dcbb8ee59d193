"""The topic of sources' offsets (``connect-offsets``): from where each partition of a source is read on.

A key is JSON of ``["connector", {partition}]``, a value the offset's JSON object, or nothing once it is reset. The log
compacts by the bytes of a key, and Java writes the members of a partition in no certain order: what a partition was
first written with is kept and used again, so that an offset never has two keys.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

JsonObject = Mapping[str, Any]


class OffsetRecord(NamedTuple):
    key: bytes
    value: bytes | None


class SourceOffset(NamedTuple):
    partition: dict[str, Any]
    offset: dict[str, Any]


def _stored(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _canonical(connector: str, partition: JsonObject) -> str:
    return json.dumps([connector, partition], sort_keys=True)


@dataclass(slots=True)
class OffsetState:
    """The offsets of all sources."""

    _keys: dict[str, bytes] = field(default_factory=dict)
    _offsets: dict[str, dict[str, SourceOffset]] = field(default_factory=dict)
    """By connector and canonical key."""

    def replay(self, key: bytes | None, value: bytes | None) -> bool:
        """Apply a record of the topic; False for one that cannot be read, which is left out."""
        try:
            found = json.loads(key or b"")
            offset = None if value is None else json.loads(value)
        except (ValueError, RecursionError):
            return False
        is_key = isinstance(found, list) and len(found) == 2 and isinstance(found[0], str)
        if not is_key or not isinstance(found[1], dict) or not isinstance(offset, dict | None):
            return False
        connector, partition = found
        canonical = _canonical(connector, partition)
        offsets = self._offsets.setdefault(connector, {})
        if offset is None:
            offsets.pop(canonical, None)
        else:
            offsets[canonical] = SourceOffset(partition, offset)
        self._keys[canonical] = key or b""
        return True

    def offset_of(self, connector: str, partition: JsonObject) -> dict[str, Any] | None:
        found = self._offsets.get(connector, {}).get(_canonical(connector, partition))
        return None if found is None else found.offset

    def offsets_of(self, connector: str) -> Iterator[SourceOffset]:
        """All partitions of a connector, in a certain order."""
        yield from (found for _, found in sorted(self._offsets.get(connector, {}).items()))

    def record(self, connector: str, partition: JsonObject, offset: JsonObject | None) -> OffsetRecord:
        """The record that sets an offset; None resets it."""
        key = self._keys.get(_canonical(connector, partition)) or _stored([connector, partition])
        return OffsetRecord(key, None if offset is None else _stored(offset))
