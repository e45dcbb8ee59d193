"""Records that a pipeline skips, set by ``millbeck pipeline skip``.

They are stored beside the status of its run. From its next start the pipeline ignores them. So it can pass a record
that cannot be decoded, or on which a function of the topology fails.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple, Self

from millbeck.pipeline.errors import DefinitionError

SKIPS_MAX: Final = 100
"""The maximum number of skipped records, because each costs a comparison per record; the oldest ones, which the query
has passed, are dropped."""
_FORM: Final = re.compile(r"([A-Za-z0-9._-]{1,249}):(\d{1,9}):(\d{1,18})")


class SkippedRecord(NamedTuple):
    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic}:{self.partition}:{self.offset}"

    @classmethod
    def parse(cls, text: str) -> Self:
        found = _FORM.fullmatch(text)
        if found is None:
            raise DefinitionError(f"{text!r} is not a record: expected TOPIC:PARTITION:OFFSET, such as orders:0:1234")
        return cls(found[1], int(found[2]), int(found[3]))


class Skips:
    """The file ``skips.json`` of a run's directory."""

    def __init__(self, directory: Path) -> None:
        self._file = directory / "skips.json"

    def read(self) -> list[SkippedRecord]:
        """Read the file; raises `DefinitionError` if it is damaged, so that skipped records are not processed again."""
        try:
            found = json.loads(self._file.read_text(encoding="utf-8"))
            return [SkippedRecord.parse(text) for text in found]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, TypeError) as error:
            raise DefinitionError(f"{self._file} cannot be read: {error}; repair or remove it") from error

    def add(self, records: Sequence[SkippedRecord]) -> list[SkippedRecord]:
        """Add records; returns all skipped ones."""
        kept = list(dict.fromkeys([*self.read(), *records]))[-SKIPS_MAX:]
        fresh = self._file.with_suffix(".new")
        fresh.write_text(json.dumps([str(record) for record in kept]), encoding="utf-8")
        fresh.replace(self._file)
        return kept
