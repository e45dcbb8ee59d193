"""AlterConfigs: replace all settings of a resource. Superseded by IncrementalAlterConfigs, still sent by clients."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, boolean, int8, int16, int32, message, string, struct


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
    """Whatever is not listed returns to its default."""

    resources: list[AlterConfigsResource] = array(of=AlterConfigsResource)
    validate_only: bool = boolean(doc="Check the request and change nothing.")


@struct
class AlterConfigsResourceResponse:
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resource_type: int = int8(doc="2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group.")
    resource_name: str = string()


@message(kind=Kind.RESPONSE, api_key=33, versions="0-2", flexible="2+")
class AlterConfigsResponse:
    """The outcome for each resource."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    responses: list[AlterConfigsResourceResponse] = array(of=AlterConfigsResourceResponse)
