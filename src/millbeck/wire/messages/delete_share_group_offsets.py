"""DeleteShareGroupOffsets: forget topics of a share group."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, int16, int32, message, string, struct, uuid


@struct
class DeleteShareGroupOffsetsRequestTopic:
    topic_name: str = string()


@message(kind=Kind.REQUEST, api_key=92, versions="0", flexible="0+")
class DeleteShareGroupOffsetsRequest:
    """The group must be empty."""

    group_id: str = string()
    topics: list[DeleteShareGroupOffsetsRequestTopic] = array(of=DeleteShareGroupOffsetsRequestTopic)


@struct
class DeleteShareGroupOffsetsResponseTopic:
    topic_name: str = string()
    topic_id: bytes = uuid()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


@message(kind=Kind.RESPONSE, api_key=92, versions="0", flexible="0+")
class DeleteShareGroupOffsetsResponse:
    """The outcome for each topic."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    responses: list[DeleteShareGroupOffsetsResponseTopic] = array(of=DeleteShareGroupOffsetsResponseTopic)
