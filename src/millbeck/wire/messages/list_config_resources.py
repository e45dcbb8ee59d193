"""ListConfigResources: what has settings of its own."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, int8, int16, int32, message, string, struct


@message(kind=Kind.REQUEST, api_key=74, versions="0-1", flexible="0+")
class ListConfigResourcesRequest:
    """No types asks for all. Version 0 knows client metrics subscriptions only."""

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
    """Type 16, the client metrics subscription, is what version 0 implies."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    error_code: int = int16()
    config_resources: list[ConfigResource] = array(of=ConfigResource)
