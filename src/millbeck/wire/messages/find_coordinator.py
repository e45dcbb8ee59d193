"""FindCoordinator: the broker that hosts a group, a transactional id or a share partition."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, int8, int16, int32, message, string, struct


@message(kind=Kind.REQUEST, api_key=10, versions="0-6", flexible="3+")
class FindCoordinatorRequest:
    """Version 4 asks for many keys at once, version 6 for share partitions too."""

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
    error_message: str | None = string(nullable="0+")


@message(kind=Kind.RESPONSE, api_key=10, versions="0-6", flexible="3+")
class FindCoordinatorResponse:
    """One coordinator in fields of its own up to version 3, a list from version 4."""

    throttle_time_ms: int = int32(versions="1+", ignorable=True, doc="How long a quota holds this client back.")
    error_code: int = int16(versions="0-3")
    error_message: str | None = string(versions="1-3", nullable="0+", ignorable=True)
    node_id: int = int32(versions="0-3")
    host: str = string(versions="0-3")
    port: int = int32(versions="0-3")
    coordinators: list[Coordinator] = array(of=Coordinator, versions="4+")
