"""AddRaftVoter: a controller joins the voters (KIP-853)."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, boolean, int16, int32, message, string, struct, uint16, uuid


@struct
class Listener:
    name: str = string()
    host: str = string()
    port: int = uint16()


@message(kind=Kind.REQUEST, api_key=80, versions="0-1", flexible="0+")
class AddRaftVoterRequest:
    """Version 1 can be answered before the change commits."""

    cluster_id: str | None = string(nullable="0+")
    timeout_ms: int = int32()
    voter_id: int = int32()
    voter_directory_id: bytes = uuid()
    listeners: list[Listener] = array(of=Listener)
    ack_when_committed: bool = boolean(versions="1+", default=True)


@message(kind=Kind.RESPONSE, api_key=80, versions="0-1", flexible="0+")
class AddRaftVoterResponse:
    """The outcome."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
