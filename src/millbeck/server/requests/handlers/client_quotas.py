"""DescribeClientQuotas, AlterClientQuotas: quotas of users, client ids, both together, and addresses.

Behaviour
- Brokers forward AlterClientQuotas to the active controller. DescribeClientQuotas is answered by any node from its own
  metadata, so it may lag behind a change that was just acknowledged.
- A filter has one component per entity type: a name, the default entity, or any of both. With ``strict`` an entity has
  exactly these types; otherwise it may have more.
- Host names are refused as addresses; Kafka resolves them.
"""

from __future__ import annotations

from typing import Final

from millbeck.controller.client_quotas import CLIENT_ID, IP, USER
from millbeck.kernel.errors import ApiError, ClusterAuthorizationFailed, InvalidRequest, UnsupportedVersion
from millbeck.metadata.image.client_quotas import QuotaEntity
from millbeck.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from millbeck.server.loop.tasks import TimeSlices
from millbeck.server.network.call import Call
from millbeck.server.network.route import Need, handles
from millbeck.wire.messages.quotas import (
    AlterClientQuotasEntryResult,
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    ComponentData,
    DescribeClientQuotasEntryResult,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    ValueData,
)

EXACT: Final = 0
DEFAULT: Final = 1
MATCH_TYPES: Final = {EXACT: "EXACT", DEFAULT: "DEFAULT", 2: "SPECIFIED"}


def describe_error(
    request: DescribeClientQuotasRequest | None, version: int, error: ApiError
) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(error_code=error.code, error_message=error.message, entries=None)


@handles(48, needs=[Need(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER)], error_reply=describe_error)
async def handle_describe_client_quotas(
    call: Call, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    if not call.may(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME):
        raise ClusterAuthorizationFailed
    wanted = _checked(request.components)
    slices = TimeSlices(call.broker.environment.clock)
    entries = []
    for entity, quotas in call.broker.image.client_quotas.by_entity.items():
        if _matches(entity, wanted, is_strict=request.strict):
            parts = [EntityData(kind, name) for kind, name in entity]
            entries.append(DescribeClientQuotasEntryResult(parts, [ValueData(*each) for each in quotas.items()]))
        await slices.yield_to_loop()
    return DescribeClientQuotasResponse(entries=entries)


def _checked(components: list[ComponentData]) -> dict[str, ComponentData]:
    wanted: dict[str, ComponentData] = {}
    for component in components:
        kind = component.entity_type
        if not kind:
            raise InvalidRequest("Invalid empty entity type.")
        if kind in wanted:
            raise InvalidRequest(f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in (USER, CLIENT_ID, IP):
            raise UnsupportedVersion(f"Unsupported entity type {kind}")
        _check_match(component)
        wanted[kind] = component
    if IP in wanted and len(wanted) > 1:
        raise InvalidRequest(
            "Invalid entity filter component combination. IP filter component should not be used with user or clientId "
            "filter component."
        )
    return wanted


def _check_match(component: ComponentData) -> None:
    name = MATCH_TYPES.get(component.match_type)
    if name is None:
        raise InvalidRequest(f"Unknown match type {component.match_type}")
    if component.match_type == EXACT and component.match is None:
        raise InvalidRequest("Request specified MATCH_TYPE_EXACT, but set match string to null.")
    if component.match_type != EXACT and component.match is not None:
        raise InvalidRequest(f"Request specified MATCH_TYPE_{name}, but also specified a match string.")


def _matches(entity: QuotaEntity, wanted: dict[str, ComponentData], *, is_strict: bool) -> bool:
    names = dict(entity)
    if is_strict and len(names) != len(wanted):
        return False
    for kind, component in wanted.items():
        if kind not in names:
            return False
        if component.match_type == EXACT and names[kind] != component.match:
            return False
        if component.match_type == DEFAULT and names[kind] is not None:
            return False
    return True


def alter_error(
    request: AlterClientQuotasRequest | None, version: int, error: ApiError
) -> AlterClientQuotasResponse | None:
    if request is None:
        return None
    results = [AlterClientQuotasEntryResult(error.code, error.message, entry.entity) for entry in request.entries]
    return AlterClientQuotasResponse(entries=results)


@handles(49, needs=[Need(Operation.ALTER_CONFIGS, ResourceType.CLUSTER)], error_reply=alter_error)
async def handle_alter_client_quotas(call: Call, request: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
    if not call.may(Operation.ALTER_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME):
        raise ClusterAuthorizationFailed
    broker = call.broker
    return await broker.quorum.submit(lambda image: broker.controller.alter_client_quotas(image, request), by=call)
