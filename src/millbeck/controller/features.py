"""UpdateFeatures, which in this release only says what would be possible.

A level that no node supports is refused with the range that is. A change that would be possible is confirmed when the
request only wants to validate it, and refused otherwise.
"""

from __future__ import annotations

from millbeck.controller.result import Result
from millbeck.kernel.errors import ApiError, FeatureUpdateFailed, InvalidRequest, InvalidUpdateVersion
from millbeck.metadata.features import KRAFT_VERSION, METADATA_VERSION, SUPPORTED_FEATURES, release_of
from millbeck.metadata.image import MetadataImage
from millbeck.wire.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

UPGRADE = 1
SAFE_DOWNGRADE = 2
UNSAFE_DOWNGRADE = 3


def update_features(
    image: MetadataImage, request: UpdateFeaturesRequest, *, version: int
) -> Result[UpdateFeaturesResponse]:
    """``version`` of the request decides how a downgrade is asked for, and whether features answer one by one."""
    results: list[UpdatableFeatureResult] = []
    refusal: ApiError | None = None
    for update in request.feature_updates:
        try:
            _check(image, update, version, validate_only=request.validate_only)
            results.append(UpdatableFeatureResult(feature=update.feature, error_message=None))
        except ApiError as error:
            refusal = refusal or error
            results.append(
                UpdatableFeatureResult(feature=update.feature, error_code=error.code, error_message=error.message)
            )
    response = UpdateFeaturesResponse(error_message=None, results=results)
    # From version 2 on it is all or nothing, with one outcome for the whole request.
    if refusal is not None and version >= 2:
        response.error_code = refusal.code
        response.error_message = refusal.message
        response.results = []
    return Result(response=response)


def _check(image: MetadataImage, update: FeatureUpdateKey, version: int, *, validate_only: bool) -> None:
    level = update.max_version_level
    kind = update.upgrade_type
    if version == 0:
        kind = SAFE_DOWNGRADE if update.allow_downgrade else UPGRADE
    if kind not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        raise InvalidRequest("The controller does not support the given upgrade type.")
    if level < 0:
        raise _invalid(update, "A feature version cannot be less than 0.")
    supported = SUPPORTED_FEATURES.get(update.feature)
    if supported is None:
        raise _invalid(update, f"Feature {update.feature} is not known to this controller.")
    if level not in supported:
        raise _invalid(update, f"This release supports versions {supported.min_level}-{supported.max_level}.")
    current = image.features.level(update.feature)
    if level < current and kind == UPGRADE:
        raise _invalid(
            update,
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade.",
        )
    if level > current and kind != UPGRADE:
        raise _invalid(update, "Can't downgrade to a newer version.")
    if level == current or (validate_only and update.feature != KRAFT_VERSION):
        return
    name = f" ({release_of(current)})" if update.feature == METADATA_VERSION else ""
    raise FeatureUpdateFailed(
        f"Feature {update.feature} is at version {current}{name}; this release does not change finalized versions."
    )


def _invalid(update: FeatureUpdateKey, problem: str) -> InvalidUpdateVersion:
    return InvalidUpdateVersion(
        f"Invalid update version {update.max_version_level} for feature {update.feature}. {problem}"
    )
