"""AlterPartition: a leader asks the controller to change its in-sync replicas."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, int8, int16, int32, int64, message, struct, uuid


@struct
class BrokerState:
    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)


@struct
class AlterPartitionPartition:
    partition_index: int = int32()
    leader_epoch: int = int32()
    new_isr: list[int] = array(of=int32, versions="2")
    new_isr_with_epochs: list[BrokerState] = array(of=BrokerState, versions="3+")
    leader_recovery_state: int = int8()
    partition_epoch: int = int32()


@struct
class AlterPartitionTopic:
    topic_id: bytes = uuid()
    partitions: list[AlterPartitionPartition] = array(of=AlterPartitionPartition)


@message(kind=Kind.REQUEST, api_key=56, versions="2-3", flexible="0+")
class AlterPartitionRequest:
    """Version 2 names topics by id, version 3 gives each replica's broker epoch."""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    topics: list[AlterPartitionTopic] = array(of=AlterPartitionTopic)


@struct
class AlterPartitionPartitionResult:
    partition_index: int = int32()
    error_code: int = int16()
    leader_id: int = int32()
    leader_epoch: int = int32()
    isr: list[int] = array(of=int32)
    leader_recovery_state: int = int8()
    partition_epoch: int = int32()


@struct
class AlterPartitionTopicResult:
    topic_id: bytes = uuid()
    partitions: list[AlterPartitionPartitionResult] = array(of=AlterPartitionPartitionResult)


@message(kind=Kind.RESPONSE, api_key=56, versions="2-3", flexible="0+")
class AlterPartitionResponse:
    """The state that the controller settled on."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    error_code: int = int16()
    topics: list[AlterPartitionTopicResult] = array(of=AlterPartitionTopicResult)
