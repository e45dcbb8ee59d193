"""DescribeConfigs: settings of topics, brokers, groups."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, boolean, int8, int16, int32, message, string, struct


@struct
class DescribeConfigsResource:
    resource_type: int = int8(doc="2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group.")
    resource_name: str = string()
    configuration_keys: list[str] | None = array(of=string, nullable="0+", doc="Null for all.")


@message(kind=Kind.REQUEST, api_key=32, versions="1-4", flexible="4+")
class DescribeConfigsRequest:
    """Null keys ask for all. Version 3 can bring types and documentation."""

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
    config_source: int = int8(default=-1, doc="1 topic, 2 broker, 3 default broker, 4 server file, 5 default.")
    is_sensitive: bool = boolean(doc="The value is secret and therefore null.")
    synonyms: list[DescribeConfigsSynonym] = array(
        of=DescribeConfigsSynonym, doc="Where the value could come from, strongest first."
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
    """Each setting with its source and, on request, what it would fall back to."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    results: list[DescribeConfigsResult] = array(of=DescribeConfigsResult)
