"""AllocateProducerIds: a broker takes a block of producer ids."""

from __future__ import annotations

from millbeck.wire.schema import Kind, int16, int32, int64, message


@message(kind=Kind.REQUEST, api_key=67, versions="0", flexible="0+")
class AllocateProducerIdsRequest:
    """Any broker with a live registration may ask."""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)


@message(kind=Kind.RESPONSE, api_key=67, versions="0", flexible="0+")
class AllocateProducerIdsResponse:
    """The block: its first id and its length."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    error_code: int = int16()
    producer_id_start: int = int64()
    producer_id_len: int = int32()
