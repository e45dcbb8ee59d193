"""AlterClientQuotas: the quotas of users, client ids and addresses. An unchanged quota writes no record."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Final

from millbeck.controller.result import Result
from millbeck.kernel.errors import ApiError, InvalidRequest
from millbeck.metadata.image import MetadataImage
from millbeck.metadata.image.client_quotas import QuotaEntity
from millbeck.metadata.records import ClientQuotaRecord, MetadataRecord, QuotaEntityPart
from millbeck.wire.messages.quotas import (
    AlterClientQuotasEntry,
    AlterClientQuotasEntryResult,
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    OpData,
)

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
CONNECTION_CREATION_RATE: Final = "connection_creation_rate"
CLIENT_KEYS: Final = (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE, CONTROLLER_MUTATION_RATE)
"""The quotas of users and client ids."""
_WHOLE_NUMBERS_MAX: Final[Mapping[str, tuple[str, float]]] = {
    PRODUCER_BYTE_RATE: ("a LONG", 2.0**63),
    CONSUMER_BYTE_RATE: ("a LONG", 2.0**63),
    CONNECTION_CREATION_RATE: ("an INT", 2.0**31 - 1),
}
"""The quotas that must be whole numbers, each with Kafka's name of the type and its maximum."""
_FRACTION_MIN: Final = 1e-6


def alter_client_quotas(image: MetadataImage, request: AlterClientQuotasRequest) -> Result[AlterClientQuotasResponse]:
    """Alter or refuse each entity separately."""
    results: list[AlterClientQuotasEntryResult] = []
    records: list[MetadataRecord] = []
    for entry in request.entries:
        try:
            changes = _changes(image, entry)
        except ApiError as error:
            results.append(AlterClientQuotasEntryResult(error.code, error.message, entry.entity))
        else:
            results.append(AlterClientQuotasEntryResult(0, None, entry.entity))
            records += changes
    return Result(response=AlterClientQuotasResponse(entries=results), records=[] if request.validate_only else records)


def _changes(image: MetadataImage, entry: AlterClientQuotasEntry) -> list[MetadataRecord]:
    entity = _checked_entity(entry.entity)
    wanted: dict[str, float | None] = {}
    for op in entry.ops:
        if op.key in wanted:
            raise InvalidRequest(f"{op.key} is listed twice for the entity")
        wanted[op.key] = _checked(entity, op)
    current = image.client_quotas.by_entity.get(entity, {})
    parts = [QuotaEntityPart(entity_type=kind, entity_name=name) for kind, name in entity]
    return [
        ClientQuotaRecord(entity=parts, key=key, value=value or 0.0, remove=value is None)
        for key, value in wanted.items()
        if current.get(key) != value
    ]


def _checked_entity(parts: list[EntityData]) -> QuotaEntity:
    named: dict[str, str | None] = {}
    for part in parts:
        if part.entity_type not in (USER, CLIENT_ID, IP):
            raise InvalidRequest(f"Unhandled client quota entity type: {part.entity_type}")
        if part.entity_name == "":
            raise InvalidRequest(f"Empty {part.entity_type} not supported")
        named[part.entity_type] = part.entity_name
    if not named:
        raise InvalidRequest("Invalid empty client quota entity")
    if IP in named and len(named) > 1:
        raise InvalidRequest("Invalid quota entity combination, IP entity should not be combined with User or ClientId")
    address = named.get(IP)
    if address is not None:
        _check_address(address)
    return tuple(sorted(named.items()))


def _check_address(text: str) -> None:
    # Kafka also resolves names, which would wait for a name server here.
    try:
        ip_address(text)
    except ValueError:
        raise InvalidRequest(f"{text} is not a valid IP or resolvable host.") from None


def _checked(entity: QuotaEntity, op: OpData) -> float | None:
    """The new value; None if the quota is removed."""
    if op.remove:
        return None
    keys = (CONNECTION_CREATION_RATE,) if entity[0][0] == IP else CLIENT_KEYS
    if op.key not in keys:
        raise InvalidRequest(f"Invalid configuration key {op.key}")
    if not op.value > 0:
        raise InvalidRequest(f"Quota {op.key} must be greater than 0")
    if op.key in _WHOLE_NUMBERS_MAX:
        type_name, value_max = _WHOLE_NUMBERS_MAX[op.key]
        if op.value > value_max:
            raise InvalidRequest(f"Proposed value for {op.key} is too large for {type_name}.")
        if abs(op.value % 1.0) > _FRACTION_MIN:
            raise InvalidRequest(f"{op.key} cannot be a fractional value.")
    return op.value
