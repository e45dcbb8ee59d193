"""Heartbeat: a member of a classic group is alive."""

from __future__ import annotations

from millbeck.wire.schema import Kind, int16, int32, message, string


@message(kind=Kind.REQUEST, api_key=12, versions="0-4", flexible="4+")
class HeartbeatRequest:
    """Version 3 brings static members."""

    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string(
        versions="3+", nullable="0+", default=None, doc="The name of a static member."
    )


@message(kind=Kind.RESPONSE, api_key=12, versions="0-4", flexible="4+")
class HeartbeatResponse:
    """Zero, or what the member has to do next, such as join again."""

    throttle_time_ms: int = int32(versions="1+", ignorable=True, doc="How long a quota holds this client back.")
    error_code: int = int16()
