"""UpdateFeatures: upgrades, and within limits downgrades, of the cluster's feature levels.

All updates of a request are made or none. A level must be supported by every registered broker and controller, and
every voter must have registered. ``metadata.version`` can be downgraded only if no metadata is lost; a forced downgrade
is not supported. ``kraft.version`` belongs to the quorum: it is validated here, stored in the quorum's control records,
and never decreases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from millbeck.controller.config_rules import ConfigRules
from millbeck.controller.eligible_leaders import records_for_tracking, records_for_untracking
from millbeck.controller.result import Result
from millbeck.kernel.errors import ApiError, InvalidUpdateVersion
from millbeck.metadata.features import (
    CONTROLLER_REGISTRATION_FROM,
    DEPENDENCIES,
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    SUPPORTED_FEATURES,
    FeatureRange,
    downgrade_loses_metadata,
    release_name,
)
from millbeck.metadata.image import MetadataImage
from millbeck.metadata.records import FeatureLevelRecord, MetadataRecord
from millbeck.wire.messages.nodes import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)


class UpgradeType(IntEnum):
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumFeatures:
    """Facts from the quorum: its ``kraft.version``, and the voters that must support a new one."""

    kraft_version: int = 0
    voters: Sequence[int] = ()
    node_id: int | None = None
    """The id of this node, which need not have registered, because its supported features are known."""


def update_features(
    image: MetadataImage,
    request: UpdateFeaturesRequest,
    rules: ConfigRules,
    *,
    version: int,
    quorum: QuorumFeatures,
    supported: Mapping[str, FeatureRange] = SUPPORTED_FEATURES,
) -> Result[UpdateFeaturesResponse]:
    """Update feature levels; the request's ``version`` determines the downgrade field and results per feature."""
    current = {**image.features.levels, KRAFT_VERSION: quorum.kraft_version}
    wanted = current | {update.feature: update.max_version_level for update in request.feature_updates}
    try:
        for update in request.feature_updates:
            _check(image, update, version, quorum, current, supported)
        _check_dependencies(wanted, [update.feature for update in request.feature_updates])
        records = _records(image, rules, current, wanted)
    except ApiError as error:
        message = f"The update failed for all features since the following feature had an error: {error.message}"
        return Result(response=UpdateFeaturesResponse(error_code=error.code, error_message=message))
    results = [UpdatableFeatureResult(feature=update.feature, error_message=None) for update in request.feature_updates]
    response = UpdateFeaturesResponse(error_message=None, results=results if version < 2 else [])
    if request.validate_only:
        return Result(response=response)
    kraft_version = wanted[KRAFT_VERSION]
    return Result(
        response=response,
        records=records,
        kraft_version=None if kraft_version == quorum.kraft_version else kraft_version,
    )


def _check(
    image: MetadataImage,
    update: FeatureUpdateKey,
    version: int,
    quorum: QuorumFeatures,
    current: Mapping[str, int],
    supported: Mapping[str, FeatureRange],
) -> None:
    level, feature = update.max_version_level, update.feature
    kind = _kind(update, version)
    if level < 0:
        raise _invalid(feature, level, "A feature version cannot be less than 0.")
    reason = _reason_not_supported(image, feature, level, quorum, supported)
    if reason is not None:
        raise _invalid(feature, level, reason)
    before = current.get(feature, 0)
    if level < before and kind is UpgradeType.UPGRADE:
        raise _invalid(
            feature,
            level,
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade.",
        )
    if level > before and kind is not UpgradeType.UPGRADE:
        raise _invalid(feature, level, "Can't downgrade to a newer version.")
    if level >= before:
        return
    if feature == KRAFT_VERSION:
        raise _invalid(feature, level, f"Its version is {before} and cannot be decreased.")
    if feature == METADATA_VERSION and downgrade_loses_metadata(before, level):
        raise InvalidUpdateVersion(
            f"Invalid metadata.version {level}. "
            + (
                "Unsafe metadata downgrade is not supported in this version."
                if kind is UpgradeType.UNSAFE_DOWNGRADE
                else "Refusing to perform the requested downgrade because it might delete metadata information."
            )
        )


def _kind(update: FeatureUpdateKey, version: int) -> UpgradeType:
    if version == 0:
        return UpgradeType.SAFE_DOWNGRADE if update.allow_downgrade else UpgradeType.UPGRADE
    try:
        return UpgradeType(update.upgrade_type)
    except ValueError:
        raise _invalid(
            update.feature, update.max_version_level, "The controller does not support the given upgrade type."
        ) from None


def _reason_not_supported(
    image: MetadataImage,
    feature: str,
    level: int,
    quorum: QuorumFeatures,
    supported: Mapping[str, FeatureRange],
) -> str | None:
    local = supported.get(feature)
    if local is None:
        return f"Feature {feature} is not known to this controller."
    nodes = [("Local controller", local)]
    nodes += [
        (f"Broker {broker_id}", broker.features.get(feature, FeatureRange(0, 0)))
        for broker_id, broker in sorted(image.cluster.brokers.items())
    ]
    controllers = image.cluster.controllers
    nodes += [
        (f"Controller {controller_id}", controller.features.get(feature, FeatureRange(0, 0)))
        for controller_id, controller in sorted(controllers.items())
        if controller_id != quorum.node_id
    ]
    for node, levels in nodes:
        if level not in levels:
            return f"{node} only supports versions {levels.min_level}-{levels.max_level}"
    if image.features.metadata_version >= CONTROLLER_REGISTRATION_FROM:
        for voter in sorted(quorum.voters):
            if voter != quorum.node_id and voter not in controllers:
                return f"controller {voter} has not registered, and may not support this feature"
    return None


def _check_dependencies(wanted: Mapping[str, int], updated: Sequence[str]) -> None:
    for (feature, level), metadata_version in DEPENDENCIES.items():
        if wanted.get(feature, 0) >= level and wanted.get(METADATA_VERSION, 0) < metadata_version:
            to_blame = feature if feature in updated else METADATA_VERSION
            raise _invalid(
                to_blame,
                wanted[to_blame],
                f"{feature}={wanted[feature]} needs metadata.version {release_name(metadata_version)} or newer.",
            )


def _records(
    image: MetadataImage, rules: ConfigRules, current: Mapping[str, int], wanted: Mapping[str, int]
) -> list[MetadataRecord]:
    records: list[MetadataRecord] = [
        FeatureLevelRecord(name=feature, feature_level=level)
        for feature, level in wanted.items()
        if feature != KRAFT_VERSION and level != current.get(feature, 0)
    ]
    before = current.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0)
    after = wanted.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0)
    if before == 0 and after > 0:
        records += records_for_tracking(image, rules)
    elif before > 0 and after == 0:
        records += records_for_untracking(image)
    return records


def _invalid(feature: str, level: int, problem: str) -> InvalidUpdateVersion:
    return InvalidUpdateVersion(f"Invalid update version {level} for feature {feature}. {problem}")
