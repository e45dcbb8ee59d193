"""InitProducerId: an identity for an idempotent or transactional producer."""

from __future__ import annotations

from millbeck.wire.schema import Kind, boolean, int16, int32, int64, message, string


@message(kind=Kind.REQUEST, api_key=22, versions="0-6", flexible="2+")
class InitProducerIdRequest:
    """Version 3 lets a producer ask for a new epoch of its id (KIP-360). Version 6, unstable in Kafka, is for those who
    take part in a two-phase commit (KIP-939)."""

    transactional_id: str | None = string(nullable="0+", doc="Null for a producer that is only idempotent.")
    transaction_timeout_ms: int = int32()
    producer_id: int = int64(versions="3+", default=-1, doc="The id held so far, or -1.")
    producer_epoch: int = int16(versions="3+", default=-1)
    enable2_pc: bool = boolean(versions="6+", doc="Transactions without a timeout: somebody else decides them.")
    keep_prepared_txn: bool = boolean(
        versions="6+", doc="Leave an open transaction as it is, to be ended by the caller."
    )


@message(kind=Kind.RESPONSE, api_key=22, versions="0-6", flexible="2+")
class InitProducerIdResponse:
    """The id and epoch to produce with. Versions 4 and 5 only allow further error codes."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    error_code: int = int16()
    producer_id: int = int64(default=-1)
    producer_epoch: int = int16()
    ongoing_txn_producer_id: int = int64(versions="6+", default=-1, doc="Of the transaction that was kept, or -1.")
    ongoing_txn_producer_epoch: int = int16(versions="6+", default=-1)
