"""Groups of every type: FindCoordinator, ListGroups, DeleteGroups."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, int8, int16, int32, message, string, struct


@message(kind=Kind.REQUEST, api_key=10, versions="0-6", flexible="3+")
class FindCoordinatorRequest:
    """Find coordinators; version 4 has several keys, version 6 adds share partitions."""

    key: str = string(versions="0-3")
    key_type: int = int8(versions="1+", doc="0 group, 1 transactional id, 2 share partition.")
    coordinator_keys: list[str] = array(of=string, versions="4+")


@struct
class Coordinator:
    key: str = string()
    node_id: int = int32()
    host: str = string()
    port: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", ignorable=True)


@message(kind=Kind.RESPONSE, api_key=10, versions="0-6", flexible="3+")
class FindCoordinatorResponse:
    """One coordinator up to version 3, a list from version 4."""

    throttle_time_ms: int = int32(versions="1+", ignorable=True, doc="Throttle time due to a quota violation.")
    error_code: int = int16(versions="0-3")
    error_message: str | None = string(versions="1-3", nullable="0+", ignorable=True)
    node_id: int = int32(versions="0-3")
    host: str = string(versions="0-3")
    port: int = int32(versions="0-3")
    coordinators: list[Coordinator] = array(of=Coordinator, versions="4+")


@message(kind=Kind.REQUEST, api_key=16, versions="0-5", flexible="3+")
class ListGroupsRequest:
    """List groups; empty filters match all. Version 4 filters by state, version 5 by type."""

    states_filter: list[str] = array(of=string, versions="4+")
    types_filter: list[str] = array(of=string, versions="5+")


@struct
class ListedGroup:
    group_id: str = string()
    protocol_type: str = string()
    group_state: str = string(versions="4+", ignorable=True)
    group_type: str = string(versions="5+", ignorable=True)


@message(kind=Kind.RESPONSE, api_key=16, versions="0-5", flexible="3+")
class ListGroupsResponse:
    """One entry per group."""

    throttle_time_ms: int = int32(versions="1+", ignorable=True, doc="Throttle time due to a quota violation.")
    error_code: int = int16()
    groups: list[ListedGroup] = array(of=ListedGroup)


@message(kind=Kind.REQUEST, api_key=42, versions="0-2", flexible="2+")
class DeleteGroupsRequest:
    """Delete groups of any type."""

    groups_names: list[str] = array(of=string)


@struct
class DeletableGroupResult:
    group_id: str = string()
    error_code: int = int16()


@message(kind=Kind.RESPONSE, api_key=42, versions="0-2", flexible="2+")
class DeleteGroupsResponse:
    """The result for each group."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    results: list[DeletableGroupResult] = array(of=DeletableGroupResult)
