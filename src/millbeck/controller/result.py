"""What every decision returns: the records that make it true and the reply that is sent once they are committed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from millbeck.metadata.records import MetadataRecord

T = TypeVar("T")

RECORD_COUNT_MAX = 10_000
"""The most records a client's request may lead to; they are appended as one batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(Generic[T]):
    """``records`` take effect together when ``is_atomic``; otherwise they may be appended in several batches.

    ``kraft_version`` is the level that the quorum itself goes up to: its control records are the driver's to append.
    """

    response: T
    records: list[MetadataRecord] = field(default_factory=list)
    is_atomic: bool = True
    kraft_version: int | None = None
