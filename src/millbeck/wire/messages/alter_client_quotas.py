"""AlterClientQuotas: set and remove quotas."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, boolean, float64, int16, int32, message, string, struct


@struct
class EntityData:
    entity_type: str = string()
    entity_name: str | None = string(nullable="0+")


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
    """Each entry is one entity with its changes."""

    entries: list[AlterClientQuotasEntry] = array(of=AlterClientQuotasEntry)
    validate_only: bool = boolean(doc="Check the request and change nothing.")


@struct
class AlterClientQuotasEntryResult:
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    entity: list[EntityData] = array(of=EntityData)


@message(kind=Kind.RESPONSE, api_key=49, versions="0-1", flexible="1+")
class AlterClientQuotasResponse:
    """The outcome for each entity."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    entries: list[AlterClientQuotasEntryResult] = array(of=AlterClientQuotasEntryResult)
