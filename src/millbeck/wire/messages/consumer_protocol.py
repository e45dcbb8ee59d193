"""What consumers of a classic group tell each other through it; the broker seldom looks inside. Never flexible."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, bytes_, int32, message, string, struct


@struct
class ConsumerTopicPartitions:
    topic: str = string()
    partitions: list[int] = array(of=int32)


@message(kind=Kind.DATA, versions="0-3")
class ConsumerProtocolSubscription:
    """A member's wishes, in its JoinGroup metadata. The bytes begin with the version as an int16 of its own."""

    topics: list[str] = array(of=string)
    user_data: bytes | None = bytes_(nullable="0+", default=None)
    owned_partitions: list[ConsumerTopicPartitions] = array(
        of=ConsumerTopicPartitions,
        versions="1+",
        ignorable=True,
        doc="What the member had before, for sticky strategies.",
    )
    generation_id: int = int32(versions="2+", default=-1, ignorable=True, doc="The generation in which it had them.")
    rack_id: str | None = string(versions="3+", nullable="0+", default=None, ignorable=True)


@message(kind=Kind.DATA, versions="0-3")
class ConsumerProtocolAssignment:
    """A member's partitions, in its SyncGroup assignment. The bytes begin with the version as an int16 of its own."""

    assigned_partitions: list[ConsumerTopicPartitions] = array(of=ConsumerTopicPartitions)
    user_data: bytes | None = bytes_(nullable="0+", default=None)
