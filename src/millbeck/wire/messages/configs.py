"""Configs of topics, brokers and groups: describe, alter, list."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, boolean, int8, int16, int32, message, string, struct


@struct
class DescribeConfigsResource:
    resource_type: int = int8(doc="2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group.")
    resource_name: str = string()
    configuration_keys: list[str] | None = array(of=string, nullable="0+", doc="Null for all.")


@message(kind=Kind.REQUEST, api_key=32, versions="1-4", flexible="4+")
class DescribeConfigsRequest:
    """Describe configs; null keys request all. Version 3 can return types and documentation."""

    resources: list[DescribeConfigsResource] = array(of=DescribeConfigsResource)
    include_synonyms: bool = boolean()
    include_documentation: bool = boolean(versions="3+")


@struct
class DescribeConfigsSynonym:
    name: str = string()
    value: str | None = string(nullable="0+")
    source: int = int8()


@struct
class DescribeConfigsResourceResult:
    name: str = string()
    value: str | None = string(nullable="0+")
    read_only: bool = boolean()
    config_source: int = int8(
        default=-1, ignorable=True, doc="1 topic, 2 broker, 3 default broker, 4 static broker file, 5 default."
    )
    is_sensitive: bool = boolean(doc="The value is sensitive and therefore null.")
    synonyms: list[DescribeConfigsSynonym] = array(
        of=DescribeConfigsSynonym, ignorable=True, doc="Sources of the value, highest precedence first."
    )
    config_type: int = int8(
        versions="3+",
        ignorable=True,
        doc="1 boolean, 2 string, 3 int, 4 short, 5 long, 6 double, 7 list, 8 class, 9 password.",
    )
    documentation: str | None = string(versions="3+", nullable="0+", ignorable=True)


@struct
class DescribeConfigsResult:
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resource_type: int = int8(doc="2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group.")
    resource_name: str = string()
    configs: list[DescribeConfigsResourceResult] = array(of=DescribeConfigsResourceResult)


@message(kind=Kind.RESPONSE, api_key=32, versions="1-4", flexible="4+")
class DescribeConfigsResponse:
    """Configs with their source and, if requested, synonyms."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    results: list[DescribeConfigsResult] = array(of=DescribeConfigsResult)


@struct
class AlterableConfig:
    name: str = string()
    value: str | None = string(nullable="0+")


@struct
class AlterConfigsResource:
    resource_type: int = int8(doc="2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group.")
    resource_name: str = string()
    configs: list[AlterableConfig] = array(of=AlterableConfig)


@message(kind=Kind.REQUEST, api_key=33, versions="0-2", flexible="2+")
class AlterConfigsRequest:
    """Replace all configs of the resources; those not listed return to their default."""

    resources: list[AlterConfigsResource] = array(of=AlterConfigsResource)
    validate_only: bool = boolean(doc="Only validate the request.")


@struct
class AlterConfigsResourceResponse:
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resource_type: int = int8(doc="2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group.")
    resource_name: str = string()


@message(kind=Kind.RESPONSE, api_key=33, versions="0-2", flexible="2+")
class AlterConfigsResponse:
    """The result for each resource."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    responses: list[AlterConfigsResourceResponse] = array(of=AlterConfigsResourceResponse)


@struct
class IncrementalAlterableConfig:
    name: str = string()
    config_operation: int = int8(doc="0 set, 1 delete, 2 append, 3 subtract.")
    value: str | None = string(nullable="0+")


@struct
class IncrementalAlterConfigsResource:
    resource_type: int = int8(doc="2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group.")
    resource_name: str = string()
    configs: list[IncrementalAlterableConfig] = array(of=IncrementalAlterableConfig)


@message(kind=Kind.REQUEST, api_key=44, versions="0-1", flexible="1+")
class IncrementalAlterConfigsRequest:
    """Change single configs; those not listed stay unchanged."""

    resources: list[IncrementalAlterConfigsResource] = array(of=IncrementalAlterConfigsResource)
    validate_only: bool = boolean(doc="Only validate the request.")


@message(kind=Kind.RESPONSE, api_key=44, versions="0-1", flexible="1+")
class IncrementalAlterConfigsResponse:
    """The result for each resource."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    responses: list[AlterConfigsResourceResponse] = array(of=AlterConfigsResourceResponse)


@message(kind=Kind.REQUEST, api_key=74, versions="0-1", flexible="0+")
class ListConfigResourcesRequest:
    """List config resources; empty types request all. Version 0 lists client metrics subscriptions only."""

    resource_types: list[int] = array(
        of=int8, versions="1+", doc="2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group."
    )


@struct
class ConfigResource:
    resource_name: str = string()
    resource_type: int = int8(
        versions="1+",
        default=16,
        ignorable=True,
        doc="2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group.",
    )


@message(kind=Kind.RESPONSE, api_key=74, versions="0-1", flexible="0+")
class ListConfigResourcesResponse:
    """The resources; version 0 implies type 16, client metrics subscriptions."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    error_code: int = int16()
    config_resources: list[ConfigResource] = array(of=ConfigResource)
