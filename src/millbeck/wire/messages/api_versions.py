"""ApiVersions: which requests and features this node speaks. Its response always travels under header version 0."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, boolean, int16, int32, int64, message, string, struct


@message(kind=Kind.REQUEST, api_key=18, versions="0-4", flexible="3+")
class ApiVersionsRequest:
    """Ask what the node supports. From version 3 the client says who it is."""

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
    """What is served, and the features known and in force. A request too new is answered in version 0 with error 35."""

    error_code: int = int16()
    api_keys: list[ApiVersion] = array(of=ApiVersion)
    throttle_time_ms: int = int32(versions="1+", ignorable=True, doc="How long a quota holds this client back.")
    supported_features: list[SupportedFeatureKey] = array(of=SupportedFeatureKey, versions="3+", tag=0, ignorable=True)
    finalized_features_epoch: int = int64(
        versions="3+",
        tag=1,
        default=-1,
        ignorable=True,
        doc="Grows with every change of finalized features; -1 when unknown.",
    )
    finalized_features: list[FinalizedFeatureKey] = array(of=FinalizedFeatureKey, versions="3+", tag=2, ignorable=True)
    zk_migration_ready: bool = boolean(
        versions="3+", tag=3, ignorable=True, doc="Of the ZooKeeper era; always false here."
    )
