"""DeleteTopics."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, int16, int32, message, string, struct, uuid


@struct
class DeleteTopicState:
    name: str | None = string(nullable="0+", default=None)
    topic_id: bytes = uuid()


@message(kind=Kind.REQUEST, api_key=20, versions="1-6", flexible="4+")
class DeleteTopicsRequest:
    """By name up to version 5; by name or id from version 6."""

    topics: list[DeleteTopicState] = array(of=DeleteTopicState, versions="6+")
    topic_names: list[str] = array(of=string, versions="0-5", ignorable=True)
    timeout_ms: int = int32()


@struct
class DeletableTopicResult:
    name: str | None = string(nullable="6+")
    topic_id: bytes = uuid(versions="6+", ignorable=True)
    error_code: int = int16()
    error_message: str | None = string(versions="5+", nullable="0+", default=None, ignorable=True)


@message(kind=Kind.RESPONSE, api_key=20, versions="1-6", flexible="4+")
class DeleteTopicsResponse:
    """The outcome for each topic."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    responses: list[DeletableTopicResult] = array(of=DeletableTopicResult)
