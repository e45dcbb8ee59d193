"""Admin calls for client quotas: describe and alter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from millbeck.client.admin.outcomes import Outcomes, for_each
from millbeck.client.admin.routing import call_controller
from millbeck.client.cluster import Cluster
from millbeck.client.retry import Deadline
from millbeck.kernel.errors import ApiError, from_code

QuotaEntity = tuple[tuple[str, str | None], ...]
"""Pairs of type (user, client-id, ip) and name, sorted by type; None is the default of that type."""
_ANY: Final = 2


async def describe_client_quotas(
    cluster: Cluster, types: Iterable[str], *, timeout_s: float | None
) -> dict[QuotaEntity, dict[str, float]]:
    """The quotas of the entities that include these types; without types, of all entities."""
    from millbeck.wire.messages.quotas import ComponentData, DescribeClientQuotasRequest, DescribeClientQuotasResponse

    request = DescribeClientQuotasRequest(components=[ComponentData(each, _ANY, None) for each in types])

    async def attempt(deadline: Deadline) -> dict[QuotaEntity, dict[str, float]]:
        response = await cluster.request(request, DescribeClientQuotasResponse, deadline=deadline)
        if response.error_code:
            raise from_code(response.error_code, response.error_message or "")
        found = {
            tuple(sorted((part.entity_type, part.entity_name) for part in entry.entity)): {
                value.key: value.value for value in entry.values
            }
            for entry in response.entries or ()
        }
        return dict(sorted(found.items(), key=lambda item: repr(item[0])))

    return await cluster.retrying(attempt, timeout_s=timeout_s)


async def alter_client_quotas(
    cluster: Cluster, changes: Mapping[QuotaEntity, Mapping[str, float | None]], *, timeout_s: float | None
) -> Outcomes[QuotaEntity, QuotaEntity]:
    """Set quotas by entity; None removes one."""
    from millbeck.wire.messages.quotas import (
        AlterClientQuotasEntry,
        AlterClientQuotasRequest,
        AlterClientQuotasResponse,
        EntityData,
        OpData,
    )

    async def attempt(wanted: list[QuotaEntity], deadline: Deadline) -> dict[QuotaEntity, QuotaEntity | ApiError]:
        entries = [
            AlterClientQuotasEntry(
                [EntityData(*part) for part in entity],
                [OpData(key, value or 0.0, value is None) for key, value in changes[entity].items()],
            )
            for entity in wanted
        ]
        request = AlterClientQuotasRequest(entries=entries)
        response = await call_controller(cluster, request, AlterClientQuotasResponse, deadline)
        return {
            entity: from_code(result.error_code, result.error_message or "") if result.error_code else entity
            for entity, result in zip(wanted, response.entries, strict=True)
        }

    return await for_each(cluster, changes, attempt, timeout_s=timeout_s)
