"""Validation of the schema ids in produced records: the topic options ``confluent.key.schema.validation`` and
``confluent.value.schema.validation``.

`native.schema_ids` looks at each record; only a batch in which it finds one that is not accepted is read record by
record here: an id may also be a guid in a header, and an error names the records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from millbeck.kernel.errors import InvalidRecord, RecordError
from millbeck.records.native.read import read_records
from millbeck.records.native.schema_ids import ID_BYTES, NOTHING_REFUSED, first_refused

KEY_HEADER: Final = "__key_schema_id"
VALUE_HEADER: Final = "__value_schema_id"
GUID_MAGIC: Final = 1
GUID_BYTES: Final = 16
_ERRORS_MAX: Final = 100


class SchemaIdRefused(InvalidRecord):
    """Some records do not have the id of a schema that the topic accepts."""

    def __init__(self, message: str, record_errors: list[RecordError], *, may_be_new: bool) -> None:
        super().__init__(message, record_errors)
        self.may_be_new = may_be_new
        """Whether every refused record has an id, which may be of a schema that was registered a moment ago."""


@dataclass(frozen=True, slots=True)
class AcceptedIds:
    """The schemas that keys or values of a topic may have."""

    option: str
    """The topic option that asks for the validation."""
    subject: str
    """The subject of the schemas, for messages."""
    ids: frozenset[int] = frozenset()
    guids: frozenset[bytes] = frozenset()

    def problem(self, part: str, data: bytes | None, header: bytes | None) -> tuple[str, bool]:
        """What is wrong with a key or value, or an empty text, and whether it has an id."""
        if data is None:
            return "", True
        if header is not None and len(header) > GUID_BYTES and header[0] == GUID_MAGIC:
            guid = header[1 : 1 + GUID_BYTES]
            return "" if guid in self.guids else self._unknown(part, f"guid {guid.hex()}"), True
        if header is not None:
            data = header
        if len(data) < ID_BYTES or data[0]:
            return f"its {part} does not begin with a zero byte and the id of a schema ({self.option}=true)", False
        number = int.from_bytes(data[1:ID_BYTES], "big")
        return "" if number in self.ids else self._unknown(part, f"id {number}"), True

    def _unknown(self, part: str, name: str) -> str:
        return (
            f"its {part} has the schema {name}, which is no version of {self.subject} ({self.option}=true): register "
            "the schema first"
        )


@dataclass(frozen=True, slots=True)
class SchemaRules:
    """The schemas that records of a topic may have; None accepts anything."""

    keys: AcceptedIds | None = None
    values: AcceptedIds | None = None

    def check(self, payload: bytes, start: int, count: int) -> None:
        """Check the records of a (decompressed) batch that is otherwise valid; raises `SchemaIdRefused`."""
        keys, values = self.keys, self.values
        found = first_refused(
            payload, start, count, None if keys is None else keys.ids, None if values is None else values.ids
        )
        if found != NOTHING_REFUSED:
            self._check_each(payload, start, count)

    def _check_each(self, payload: bytes, start: int, count: int) -> None:
        errors: list[RecordError] = []
        may_be_new = True
        for index, record in enumerate(read_records(payload, start, count, 0, 0, -1)):
            for problem, has_id in self._problems(record.key, record.value, dict(record.headers)):
                errors.append(RecordError(index, problem))
                may_be_new = may_be_new and has_id
            if len(errors) >= _ERRORS_MAX:
                break
        if errors:
            first = errors[0]
            raise SchemaIdRefused(
                f"one or more records were rejected; record {first.batch_index}: {first.message}",
                errors,
                may_be_new=may_be_new,
            )

    def _problems(self, key: object, value: object, headers: Mapping[str, bytes | None]) -> Iterator[tuple[str, bool]]:
        for part, accepted, data, header in (
            ("key", self.keys, key, headers.get(KEY_HEADER)),
            ("value", self.values, value, headers.get(VALUE_HEADER)),
        ):
            if accepted is not None:
                assert data is None or isinstance(data, bytes)
                problem, has_id = accepted.problem(part, data, header)
                if problem:
                    yield problem, has_id
