"""Cluster metadata: ApiVersions, Metadata, DescribeCluster, DescribeTopicPartitions."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, boolean, int8, int16, int32, int64, message, nested, string, struct, uuid


@message(kind=Kind.REQUEST, api_key=18, versions="0-4", flexible="3+")
class ApiVersionsRequest:
    """Request the supported APIs. From version 3 it has the client's software name and version."""

    client_software_name: str = string(versions="3+", ignorable=True)
    client_software_version: str = string(versions="3+", ignorable=True)


@struct
class ApiVersion:
    api_key: int = int16()
    min_version: int = int16()
    max_version: int = int16()


@struct
class SupportedFeatureKey:
    name: str = string()
    min_version: int = int16()
    max_version: int = int16()


@struct
class FinalizedFeatureKey:
    name: str = string()
    max_version_level: int = int16()
    min_version_level: int = int16()


@message(kind=Kind.RESPONSE, api_key=18, versions="0-4", flexible="3+")
class ApiVersionsResponse:
    """The APIs served, and the supported and finalized features. A version too new is answered in version 0 with error
    35."""

    error_code: int = int16()
    api_keys: list[ApiVersion] = array(of=ApiVersion)
    throttle_time_ms: int = int32(versions="1+", ignorable=True, doc="Throttle time due to a quota violation.")
    supported_features: list[SupportedFeatureKey] = array(of=SupportedFeatureKey, versions="3+", tag=0, ignorable=True)
    finalized_features_epoch: int = int64(
        versions="3+",
        tag=1,
        default=-1,
        ignorable=True,
        doc="Increases with every change of finalized features; -1 if unknown.",
    )
    finalized_features: list[FinalizedFeatureKey] = array(of=FinalizedFeatureKey, versions="3+", tag=2, ignorable=True)
    zk_migration_ready: bool = boolean(
        versions="3+", tag=3, ignorable=True, doc="Used in ZooKeeper migrations; always false."
    )


@struct
class MetadataRequestTopic:
    topic_id: bytes = uuid(versions="10+", ignorable=True)
    name: str | None = string(nullable="10+")


@message(kind=Kind.REQUEST, api_key=3, versions="0-13", flexible="9+")
class MetadataRequest:
    """Request all topics (null, or an empty list in version 0), none (an empty list) or those listed.

    Version 10 adds topic ids, version 12 lookup by id alone.
    """

    topics: list[MetadataRequestTopic] | None = array(of=MetadataRequestTopic, nullable="1+")
    allow_auto_topic_creation: bool = boolean(
        versions="4+", default=True, doc="Create missing topics, if the broker allows it."
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
    offline_replicas: list[int] = array(of=int32, versions="5+", ignorable=True, doc="Offline replicas.")


@struct
class MetadataResponseTopic:
    error_code: int = int16()
    name: str | None = string(nullable="12+")
    topic_id: bytes = uuid(versions="10+", ignorable=True)
    is_internal: bool = boolean(versions="1+", ignorable=True)
    partitions: list[MetadataResponsePartition] = array(of=MetadataResponsePartition)
    topic_authorized_operations: int = int32(
        versions="8+", default=-2147483648, doc="Bit field by operation; minimum int if not requested."
    )


@message(kind=Kind.RESPONSE, api_key=3, versions="0-13", flexible="9+")
class MetadataResponse:
    """Brokers and topics as known to this node. Version 13 adds a top-level error (KIP-1102)."""

    throttle_time_ms: int = int32(versions="3+", ignorable=True, doc="Throttle time due to a quota violation.")
    brokers: list[MetadataResponseBroker] = array(of=MetadataResponseBroker)
    cluster_id: str | None = string(versions="2+", nullable="0+", default=None, ignorable=True)
    controller_id: int = int32(
        versions="1+", default=-1, ignorable=True, doc="A broker that accepts administrative requests."
    )
    topics: list[MetadataResponseTopic] = array(of=MetadataResponseTopic)
    cluster_authorized_operations: int = int32(
        versions="8-10", default=-2147483648, doc="Bit field by operation; minimum int if not requested."
    )
    error_code: int = int16(versions="13+", ignorable=True)


@message(kind=Kind.REQUEST, api_key=60, versions="0-2", flexible="0+")
class DescribeClusterRequest:
    """Describe the cluster; version 1 requests brokers or controllers, version 2 also fenced brokers."""

    include_cluster_authorized_operations: bool = boolean()
    endpoint_type: int = int8(versions="1+", default=1, doc="1 brokers, 2 controllers.")
    include_fenced_brokers: bool = boolean(versions="2+")


@struct
class DescribeClusterBroker:
    broker_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable="0+", default=None)
    is_fenced: bool = boolean(versions="2+")


@message(kind=Kind.RESPONSE, api_key=60, versions="0-2", flexible="0+")
class DescribeClusterResponse:
    """The nodes of the requested type."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    endpoint_type: int = int8(versions="1+", default=1, doc="1 brokers, 2 controllers.")
    cluster_id: str = string()
    controller_id: int = int32(default=-1)
    brokers: list[DescribeClusterBroker] = array(of=DescribeClusterBroker)
    cluster_authorized_operations: int = int32(
        default=-2147483648, doc="Bit field by operation; minimum int if not requested."
    )


@struct
class DescribeTopicPartitionsTopic:
    name: str = string()


@struct
class Cursor:
    topic_name: str = string()
    partition_index: int = int32()


@message(kind=Kind.REQUEST, api_key=75, versions="0", flexible="0+")
class DescribeTopicPartitionsRequest:
    """Describe topics in pages; an empty list requests all. Topics are returned in order of name, from the cursor
    on."""

    topics: list[DescribeTopicPartitionsTopic] = array(of=DescribeTopicPartitionsTopic)
    response_partition_limit: int = int32(default=2000, doc="Maximum partitions per page.")
    cursor: Cursor | None = nested(of=Cursor, nullable="0+", default=None, doc="Page start; null for the first.")


@struct
class DescribeTopicPartitionsResponsePartition:
    error_code: int = int16()
    partition_index: int = int32()
    leader_id: int = int32()
    leader_epoch: int = int32(default=-1, ignorable=True)
    replica_nodes: list[int] = array(of=int32)
    isr_nodes: list[int] = array(of=int32)
    eligible_leader_replicas: list[int] | None = array(
        of=int32, nullable="0+", default=None, doc="Eligible leader replicas outside the ISR."
    )
    last_known_elr: list[int] | None = array(of=int32, nullable="0+", default=None)
    offline_replicas: list[int] = array(of=int32, ignorable=True, doc="Offline replicas.")


@struct
class DescribeTopicPartitionsResponseTopic:
    error_code: int = int16()
    name: str | None = string(nullable="0+")
    topic_id: bytes = uuid(ignorable=True)
    is_internal: bool = boolean(ignorable=True)
    partitions: list[DescribeTopicPartitionsResponsePartition] = array(of=DescribeTopicPartitionsResponsePartition)
    topic_authorized_operations: int = int32(
        default=-2147483648, doc="Bit field by operation; minimum int if not requested."
    )


@message(kind=Kind.RESPONSE, api_key=75, versions="0", flexible="0+")
class DescribeTopicPartitionsResponse:
    """One page; ``next_cursor`` is null after the last."""

    throttle_time_ms: int = int32(ignorable=True, doc="Throttle time due to a quota violation.")
    topics: list[DescribeTopicPartitionsResponseTopic] = array(of=DescribeTopicPartitionsResponseTopic)
    next_cursor: Cursor | None = nested(of=Cursor, nullable="0+", default=None)
