"""CreateTopics."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, boolean, int8, int16, int32, message, string, struct, uuid


@struct
class CreatableReplicaAssignment:
    partition_index: int = int32()
    broker_ids: list[int] = array(of=int32, doc="The first is the preferred leader.")


@struct
class CreatableTopicConfig:
    name: str = string()
    value: str | None = string(nullable="0+")


@struct
class CreatableTopic:
    name: str = string()
    num_partitions: int = int32(doc="-1 for the broker's default, or when assignments are given.")
    replication_factor: int = int16(doc="-1 for the broker's default, or when assignments are given.")
    assignments: list[CreatableReplicaAssignment] = array(of=CreatableReplicaAssignment, doc="Placement by hand.")
    configs: list[CreatableTopicConfig] = array(of=CreatableTopicConfig)


@message(kind=Kind.REQUEST, api_key=19, versions="2-7", flexible="5+")
class CreateTopicsRequest:
    """Create topics, or with ``validate_only`` just say whether that would work."""

    topics: list[CreatableTopic] = array(of=CreatableTopic)
    timeout_ms: int = int32(default=60000)
    validate_only: bool = boolean(doc="Check the request and change nothing.")


@struct
class CreatableTopicConfigs:
    name: str = string()
    value: str | None = string(nullable="0+")
    read_only: bool = boolean()
    config_source: int = int8(default=-1, doc="1 topic, 2 broker, 3 default broker, 4 server file, 5 default.")
    is_sensitive: bool = boolean(doc="The value is secret and therefore null.")


@struct
class CreatableTopicResult:
    name: str = string()
    topic_id: bytes = uuid(versions="7+", ignorable=True)
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    topic_config_error_code: int = int16(
        versions="5+", tag=0, ignorable=True, doc="Why the settings are missing from the answer."
    )
    num_partitions: int = int32(versions="5+", default=-1, ignorable=True)
    replication_factor: int = int16(versions="5+", default=-1, ignorable=True)
    configs: list[CreatableTopicConfigs] | None = array(
        of=CreatableTopicConfigs, versions="5+", nullable="0+", ignorable=True
    )


@message(kind=Kind.RESPONSE, api_key=19, versions="2-7", flexible="5+")
class CreateTopicsResponse:
    """Each topic as created. Version 5 adds its settings, version 7 its id."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    topics: list[CreatableTopicResult] = array(of=CreatableTopicResult)
