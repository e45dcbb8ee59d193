"""RemoveRaftVoter: a controller leaves the voters (KIP-853)."""

from __future__ import annotations

from millbeck.wire.schema import Kind, int16, int32, message, string, uuid


@message(kind=Kind.REQUEST, api_key=81, versions="0", flexible="0+")
class RemoveRaftVoterRequest:
    """A voter is a node and a directory."""

    cluster_id: str | None = string(nullable="0+")
    voter_id: int = int32()
    voter_directory_id: bytes = uuid()


@message(kind=Kind.RESPONSE, api_key=81, versions="0", flexible="0+")
class RemoveRaftVoterResponse:
    """The outcome."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
