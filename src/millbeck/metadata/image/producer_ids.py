"""Allocated producer ids."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from millbeck.metadata.records import ProducerIdsRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerIdsImage:
    """The next producer id to allocate; -1 before the first block."""

    next_producer_id: int = -1

    def records(self) -> Iterator[ProducerIdsRecord]:
        if self.next_producer_id >= 0:
            yield ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=self.next_producer_id)
