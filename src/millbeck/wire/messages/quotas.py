"""DescribeClientQuotas: quotas by user, client id and address."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, boolean, float64, int8, int16, int32, message, string, struct


@struct
class ComponentData:
    entity_type: str = string()
    match_type: int = int8()
    match: str | None = string(nullable="0+")


@message(kind=Kind.REQUEST, api_key=48, versions="0-1", flexible="1+")
class DescribeClientQuotasRequest:
    """All components must match."""

    components: list[ComponentData] = array(of=ComponentData)
    strict: bool = boolean()


@struct
class EntityData:
    entity_type: str = string()
    entity_name: str | None = string(nullable="0+")


@struct
class ValueData:
    key: str = string()
    value: float = float64()


@struct
class DescribeClientQuotasEntryResult:
    entity: list[EntityData] = array(of=EntityData)
    values: list[ValueData] = array(of=ValueData)


@message(kind=Kind.RESPONSE, api_key=48, versions="0-1", flexible="1+")
class DescribeClientQuotasResponse:
    """Null entries when the request failed."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    entries: list[DescribeClientQuotasEntryResult] | None = array(of=DescribeClientQuotasEntryResult, nullable="0+")
