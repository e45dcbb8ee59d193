"""EndTxn: commit or abort."""

from __future__ import annotations

from millbeck.wire.schema import Kind, boolean, int16, int32, int64, message, string


@message(kind=Kind.REQUEST, api_key=26, versions="0-5", flexible="3+")
class EndTxnRequest:
    """Version 5 belongs to transactions version 2 (KIP-890)."""

    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    committed: bool = boolean()


@message(kind=Kind.RESPONSE, api_key=26, versions="0-5", flexible="3+")
class EndTxnResponse:
    """Version 5 carries the id and epoch to go on with."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    error_code: int = int16()
    producer_id: int = int64(versions="5+", default=-1, ignorable=True)
    producer_epoch: int = int16(versions="5+", default=-1, ignorable=True)
