"""Client quotas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from millbeck.metadata.records import ClientQuotaRecord, QuotaEntityPart

QuotaEntity = tuple[tuple[str, str | None], ...]
"""Sorted pairs of type (user, client-id, ip) and name; None is the default entity of that type."""


def quota_entity(parts: list[QuotaEntityPart]) -> QuotaEntity:
    return tuple(sorted(((part.entity_type, part.entity_name) for part in parts), key=lambda pair: pair[0]))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientQuotasImage:
    by_entity: Mapping[QuotaEntity, Mapping[str, float]] = field(default_factory=dict)

    def records(self) -> Iterator[ClientQuotaRecord]:
        for entity in sorted(self.by_entity, key=_order):
            quotas = self.by_entity[entity]
            parts = [QuotaEntityPart(entity_type=kind, entity_name=name) for kind, name in entity]
            for key in sorted(quotas):
                yield ClientQuotaRecord(entity=parts, key=key, value=quotas[key])


def _order(entity: QuotaEntity) -> list[tuple[str, bool, str]]:
    """Sort key of an entity: None is not comparable to a name, so the default comes first."""
    return [(kind, name is not None, name or "") for kind, name in entity]
