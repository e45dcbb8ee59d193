"""UpdateFeatures: raise or lower finalized feature levels."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, boolean, int8, int16, int32, message, string, struct


@struct
class FeatureUpdateKey:
    feature: str = string()
    max_version_level: int = int16()
    allow_downgrade: bool = boolean(versions="0")
    upgrade_type: int = int8(
        versions="1+", default=1, doc="1 upgrade, 2 downgrade that loses nothing, 3 downgrade that may."
    )


@message(kind=Kind.REQUEST, api_key=57, versions="0-2", flexible="0+")
class UpdateFeaturesRequest:
    """Level 0 removes a feature. Version 1 tells kinds of downgrade apart and can just validate."""

    timeout_ms: int = int32(default=60000)
    feature_updates: list[FeatureUpdateKey] = array(of=FeatureUpdateKey)
    validate_only: bool = boolean(versions="1+", doc="Check the request and change nothing.")


@struct
class UpdatableFeatureResult:
    feature: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


@message(kind=Kind.RESPONSE, api_key=57, versions="0-2", flexible="0+")
class UpdateFeaturesResponse:
    """Version 2 keeps only the overall outcome."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    results: list[UpdatableFeatureResult] = array(of=UpdatableFeatureResult, versions="0-1", ignorable=True)
