"""AddOffsetsToTxn: a group's offsets join a transaction."""

from __future__ import annotations

from millbeck.wire.schema import Kind, int16, int32, int64, message, string


@message(kind=Kind.REQUEST, api_key=25, versions="0-4", flexible="3+")
class AddOffsetsToTxnRequest:
    """Not sent by producers that use transactions version 2."""

    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    group_id: str = string()


@message(kind=Kind.RESPONSE, api_key=25, versions="0-4", flexible="3+")
class AddOffsetsToTxnResponse:
    """The outcome for the whole request."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    error_code: int = int16()
