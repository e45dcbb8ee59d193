from __future__ import annotations

from dataclasses import replace

import pytest

from millbeck.controller import Controller
from millbeck.metadata.image import MetadataImage
from millbeck.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

CASES = {
    "no change": (FeatureUpdateKey("metadata.version", 30), False, 0, ""),
    "feature that is not implemented": (FeatureUpdateKey("group.version", 1), True, 95, "supports versions 0-0"),
    "level of the future": (FeatureUpdateKey("metadata.version", 31), True, 95, "supports versions 7-30"),
    "level of the past": (FeatureUpdateKey("metadata.version", 6, upgrade_type=3), True, 95, "supports versions 7-30"),
    "unknown feature": (FeatureUpdateKey("no.such", 1), True, 95, "not known"),
    "negative": (FeatureUpdateKey("metadata.version", -1), True, 95, "less than 0"),
    "unknown kind": (FeatureUpdateKey("metadata.version", 30, upgrade_type=9), True, 42, "upgrade type"),
    "downgrade called upgrade": (FeatureUpdateKey("metadata.version", 25), True, 95, "Can't downgrade the version"),
    "downgrade, validated": (FeatureUpdateKey("metadata.version", 25, upgrade_type=2), True, 0, ""),
    "downgrade, for real": (
        FeatureUpdateKey("metadata.version", 25, upgrade_type=2),
        False,
        96,
        "does not change finalized versions",
    ),
    "removal of what is not there": (FeatureUpdateKey("group.version", 0), False, 0, ""),
}


@pytest.mark.parametrize(("update", "validate_only", "code", "words"), CASES.values(), ids=CASES.keys())
def test_updates_are_checked_and_never_made(
    controller: Controller,
    one_broker: MetadataImage,
    update: FeatureUpdateKey,
    validate_only: bool,
    code: int,
    words: str,
) -> None:
    request = UpdateFeaturesRequest(feature_updates=[update], validate_only=validate_only)
    single = controller.update_features(one_broker, request, version=1)
    [answer] = single.response.results
    assert (answer.error_code, single.response.error_code, single.records) == (code, 0, [])
    assert words in (answer.error_message or "")
    whole = controller.update_features(one_broker, request, version=2)
    assert (whole.response.error_code, whole.records) == (code, [])
    assert words in (whole.response.error_message or "")


def test_version_0_asks_for_a_downgrade_its_own_way(controller: Controller, one_broker: MetadataImage) -> None:
    update = FeatureUpdateKey("metadata.version", 25, allow_downgrade=True)
    request = UpdateFeaturesRequest(feature_updates=[update], validate_only=True)
    assert controller.update_features(one_broker, request, version=0).response.results[0].error_code == 0
    update.allow_downgrade = False
    assert controller.update_features(one_broker, request, version=0).response.results[0].error_code == 95


def test_an_upgrade_marked_as_downgrade_is_refused(controller: Controller, one_broker: MetadataImage) -> None:
    old = replace(one_broker, features=replace(one_broker.features, levels={"metadata.version": 25}))
    request = UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey("metadata.version", 30, upgrade_type=2)])
    answer = controller.update_features(old, request, version=1).response.results[0]
    assert (answer.error_code, "newer version" in (answer.error_message or "")) == (95, True)
