"""Counters of share groups on this broker, for the metrics."""

from __future__ import annotations

from dataclasses import dataclass, field

from millbeck.coordinator.share.states import AcknowledgeType


@dataclass(slots=True)
class GroupCounters:
    """Totals of one share group since the node started."""

    acquired_records: int = 0
    acknowledgements: dict[AcknowledgeType, int] = field(default_factory=dict)
    dead_letters: int = 0
    dead_letter_requests: int = 0
    dead_letter_failures: int = 0


@dataclass(slots=True)
class ShareCounters:
    fetches: int = 0
    failed_fetches: int = 0
    acknowledge_requests: int = 0
    failed_acknowledgements: int = 0
    by_group: dict[str, GroupCounters] = field(default_factory=dict)

    def of_group(self, group_id: str) -> GroupCounters:
        found = self.by_group.get(group_id)
        if found is None:
            found = self.by_group[group_id] = GroupCounters()
        return found

    def acknowledged(self, group_id: str, kind: int, count: int) -> None:
        counts = self.of_group(group_id).acknowledgements
        known = AcknowledgeType(kind)
        counts[known] = counts.get(known, 0) + count
