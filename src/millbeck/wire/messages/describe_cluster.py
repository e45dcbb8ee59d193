"""DescribeCluster: the nodes, for administrators."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, boolean, int8, int16, int32, message, string, struct


@message(kind=Kind.REQUEST, api_key=60, versions="0-2", flexible="0+")
class DescribeClusterRequest:
    """Version 1 asks for brokers or controllers, version 2 for fenced brokers too."""

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
    """The nodes of the type that was asked for."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    endpoint_type: int = int8(versions="1+", default=1, doc="1 brokers, 2 controllers.")
    cluster_id: str = string()
    controller_id: int = int32(default=-1)
    brokers: list[DescribeClusterBroker] = array(of=DescribeClusterBroker)
    cluster_authorized_operations: int = int32(
        default=-2147483648, doc="Bit field by operation; the least integer when not asked for."
    )
