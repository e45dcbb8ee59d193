"""Client quotas: DescribeClientQuotas, AlterClientQuotas."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, boolean, float64, int8, int16, int32, message, string, struct


@struct
class ComponentData:
    entity_type: str = string()
    match_type: int = int8()
    match: str | None = string(nullable="0+")


@message(kind=Kind.REQUEST, api_key=48, versions="0-1", flexible="1+")
class DescribeClientQuotasRequest:
    """Describe the quotas of entities that match all components."""

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
    """The quotas; null entries if the request failed."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    entries: list[DescribeClientQuotasEntryResult] | None = array(of=DescribeClientQuotasEntryResult, nullable="0+")


@struct
class OpData:
    key: str = string()
    value: float = float64()
    remove: bool = boolean()


@struct
class AlterClientQuotasEntry:
    entity: list[EntityData] = array(of=EntityData)
    ops: list[OpData] = array(of=OpData)


@message(kind=Kind.REQUEST, api_key=49, versions="0-1", flexible="1+")
class AlterClientQuotasRequest:
    """Alter quotas; each entry is one entity with its changes."""

    entries: list[AlterClientQuotasEntry] = array(of=AlterClientQuotasEntry)
    validate_only: bool = boolean(doc="Only validate the request.")


@struct
class AlterClientQuotasEntryResult:
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    entity: list[EntityData] = array(of=EntityData)


@message(kind=Kind.RESPONSE, api_key=49, versions="0-1", flexible="1+")
class AlterClientQuotasResponse:
    """The result for each entity."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    entries: list[AlterClientQuotasEntryResult] = array(of=AlterClientQuotasEntryResult)
