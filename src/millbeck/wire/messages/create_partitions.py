"""CreatePartitions: grow topics."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, boolean, int16, int32, message, string, struct


@struct
class CreatePartitionsAssignment:
    broker_ids: list[int] = array(of=int32, doc="The first is the preferred leader.")


@struct
class CreatePartitionsTopic:
    name: str = string()
    count: int = int32(doc="How many there shall be in all.")
    assignments: list[CreatePartitionsAssignment] | None = array(of=CreatePartitionsAssignment, nullable="0+")


@message(kind=Kind.REQUEST, api_key=37, versions="0-3", flexible="2+")
class CreatePartitionsRequest:
    """Null assignments leave placement to the controller."""

    topics: list[CreatePartitionsTopic] = array(of=CreatePartitionsTopic)
    timeout_ms: int = int32()
    validate_only: bool = boolean(doc="Check the request and change nothing.")


@struct
class CreatePartitionsTopicResult:
    name: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


@message(kind=Kind.RESPONSE, api_key=37, versions="0-3", flexible="2+")
class CreatePartitionsResponse:
    """The outcome for each topic."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    results: list[CreatePartitionsTopicResult] = array(of=CreatePartitionsTopicResult)
