"""IncrementalAlterConfigs: change single settings of a resource."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, boolean, int8, int16, int32, message, string, struct


@struct
class AlterableConfig:
    name: str = string()
    config_operation: int = int8(doc="0 set, 1 delete, 2 append, 3 subtract.")
    value: str | None = string(nullable="0+")


@struct
class AlterConfigsResource:
    resource_type: int = int8(doc="2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group.")
    resource_name: str = string()
    configs: list[AlterableConfig] = array(of=AlterableConfig)


@message(kind=Kind.REQUEST, api_key=44, versions="0-1", flexible="1+")
class IncrementalAlterConfigsRequest:
    """What is not listed stays as it is."""

    resources: list[AlterConfigsResource] = array(of=AlterConfigsResource)
    validate_only: bool = boolean(doc="Check the request and change nothing.")


@struct
class AlterConfigsResourceResponse:
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resource_type: int = int8(doc="2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group.")
    resource_name: str = string()


@message(kind=Kind.RESPONSE, api_key=44, versions="0-1", flexible="1+")
class IncrementalAlterConfigsResponse:
    """The outcome for each resource."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    responses: list[AlterConfigsResourceResponse] = array(of=AlterConfigsResourceResponse)
