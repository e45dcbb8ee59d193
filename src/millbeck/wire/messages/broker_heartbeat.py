"""BrokerHeartbeat: a broker is alive, and asks to be fenced, unfenced or shut down."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, boolean, int16, int32, int64, message, uuid


@message(kind=Kind.REQUEST, api_key=63, versions="0-2", flexible="0+")
class BrokerHeartbeatRequest:
    """Version 1 reports failed directories, version 2 those that take no new partitions."""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    current_metadata_offset: int = int64()
    want_fence: bool = boolean()
    want_shut_down: bool = boolean()
    offline_log_dirs: list[bytes] = array(of=uuid, versions="1+", tag=0)
    cordoned_log_dirs: list[bytes] | None = array(of=uuid, versions="2+", nullable="0+", tag=1, default=None)


@message(kind=Kind.RESPONSE, api_key=63, versions="0-2", flexible="0+")
class BrokerHeartbeatResponse:
    """The state that the controller sees the broker in."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    error_code: int = int16()
    is_caught_up: bool = boolean()
    is_fenced: bool = boolean(default=True)
    should_shut_down: bool = boolean()
