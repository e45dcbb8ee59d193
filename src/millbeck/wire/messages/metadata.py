"""Metadata: brokers, topics, and who leads which partition."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, boolean, int16, int32, message, string, struct, uuid


@struct
class MetadataRequestTopic:
    topic_id: bytes = uuid(versions="10+", ignorable=True)
    name: str | None = string(nullable="10+")


@message(kind=Kind.REQUEST, api_key=3, versions="0-13", flexible="9+")
class MetadataRequest:
    """Ask for all topics (null, or an empty list in version 0), for none (an empty list) or for those listed.

    Version 10 brings topic ids, version 12 lookup by id alone.
    """

    topics: list[MetadataRequestTopic] | None = array(of=MetadataRequestTopic, nullable="1+")
    allow_auto_topic_creation: bool = boolean(
        versions="4+", default=True, doc="Create what does not exist, if the broker is set up to."
    )
    include_cluster_authorized_operations: bool = boolean(versions="8-10")
    include_topic_authorized_operations: bool = boolean(versions="8+")


@struct
class MetadataResponseBroker:
    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(versions="1+", nullable="0+", default=None, ignorable=True)


@struct
class MetadataResponsePartition:
    error_code: int = int16()
    partition_index: int = int32()
    leader_id: int = int32()
    leader_epoch: int = int32(versions="7+", default=-1, ignorable=True)
    replica_nodes: list[int] = array(of=int32)
    isr_nodes: list[int] = array(of=int32)
    offline_replicas: list[int] = array(
        of=int32, versions="5+", ignorable=True, doc="Replicas whose broker or directory is down."
    )


@struct
class MetadataResponseTopic:
    error_code: int = int16()
    name: str | None = string(nullable="12+")
    topic_id: bytes = uuid(versions="10+", ignorable=True)
    is_internal: bool = boolean(versions="1+", ignorable=True)
    partitions: list[MetadataResponsePartition] = array(of=MetadataResponsePartition)
    topic_authorized_operations: int = int32(
        versions="8+", default=-2147483648, doc="Bit field by operation; the least integer when not asked for."
    )


@message(kind=Kind.RESPONSE, api_key=3, versions="0-13", flexible="9+")
class MetadataResponse:
    """The cluster as this node sees it. Version 13 adds an error for the whole answer (KIP-1102)."""

    throttle_time_ms: int = int32(versions="3+", ignorable=True, doc="How long a quota holds this client back.")
    brokers: list[MetadataResponseBroker] = array(of=MetadataResponseBroker)
    cluster_id: str | None = string(versions="2+", nullable="0+", default=None, ignorable=True)
    controller_id: int = int32(
        versions="1+", default=-1, ignorable=True, doc="A broker that takes administrative requests."
    )
    topics: list[MetadataResponseTopic] = array(of=MetadataResponseTopic)
    cluster_authorized_operations: int = int32(
        versions="8-10", default=-2147483648, doc="Bit field by operation; the least integer when not asked for."
    )
    error_code: int = int16(versions="13+", ignorable=True)
