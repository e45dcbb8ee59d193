"""Dead letters: what Kafka Connect's headers say of a record, and which letters were sent back already.

Which letters were redriven is kept in a consumer group, together with the records that were sent: the committed offset
is the first letter that was not, and its metadata has the runs of letters behind it that were.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from millbeck.pipeline.connect.errors import ConnectError

PREFIX: Final = "__connect.errors."
METADATA_MAX: Final = 4000
FIELDS: Final = {
    "topic": "topic",
    "partition": "partition",
    "offset": "offset",
    "connector": "connector.name",
    "task": "task.id",
    "stage": "stage",
    "class": "class.name",
    "exception": "exception.class.name",
    "message": "exception.message",
    "stacktrace": "exception.stacktrace",
}
"""Names of a letter's fields, and of Kafka's headers without the prefix."""

Headers = Iterable[tuple[str, bytes | None]]


def letter_fields(headers: Headers) -> dict[str, str]:
    """What the headers say, by `FIELDS`; a field without a header is empty. Of a header that is there twice, the last
    counts: a record that failed again is told by its latest failure.
    """
    given = {
        name.removeprefix(PREFIX): (value or b"").decode(errors="replace")
        for name, value in headers
        if name.startswith(PREFIX)
    }
    return {field: given.get(header, "") for field, header in FIELDS.items()}


def without_letter_headers(headers: Headers) -> list[tuple[str, bytes | None]]:
    """The headers that the record had of its own."""
    return [(name, value) for name, value in headers if not name.startswith(PREFIX)]


def matches(fields: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether each field has its text somewhere; numbers must be equal."""
    return all(
        fields[field] == text if field in ("partition", "offset", "task", "topic") else text in fields[field]
        for field, text in wanted.items()
    )


@dataclass(frozen=True, slots=True)
class Redriven:
    """The letters of one partition that were sent back: all before ``position``, and those in ``runs`` (first and last
    offset of each).
    """

    position: int = 0
    runs: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of_note(cls, position: int, metadata: str) -> Redriven:
        """What a committed offset says; metadata of anybody else says nothing."""
        try:
            found = json.loads(metadata)["redriven"]
            runs = tuple((int(first), int(last)) for first, last in found)
        except (ValueError, TypeError, KeyError, RecursionError):
            runs = ()
        return cls(position, runs)

    def has(self, offset: int) -> bool:
        return offset < self.position or any(first <= offset <= last for first, last in self.runs)

    @classmethod
    def of_letters(cls, letters: Iterable[tuple[int, bool]], end: int) -> Redriven:
        """From letters in order, each with whether it was sent back, up to ``end``, the offset behind the last one."""
        position: int | None = None
        runs: list[tuple[int, int]] = []
        is_open = False
        for offset, is_done in letters:
            if not is_done:
                position = offset if position is None else position
                is_open = False
            elif position is not None:
                runs.append((runs.pop()[0] if is_open else offset, offset))
                is_open = True
        return cls(end if position is None else position, tuple(runs))

    def metadata(self) -> str:
        """Raises `ConnectError` when there are too many runs to keep."""
        text = json.dumps({"redriven": self.runs}, separators=(",", ":")) if self.runs else ""
        if len(text) > METADATA_MAX:
            raise ConnectError(
                f"{len(self.runs)} runs of redriven letters between others are too many to keep: redrive the older ones"
            )
        return text
