"""Features, their levels and the releases that name them."""

from __future__ import annotations

import pytest

from millbeck.metadata.features import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    GROUP_VERSION,
    KRAFT_VERSION,
    LATEST_METADATA_VERSION,
    METADATA_VERSION,
    SHARE_VERSION,
    STREAMS_VERSION,
    SUPPORTED_FEATURES,
    TRANSACTION_VERSION,
    FeatureRange,
    downgrade_loses_metadata,
    metadata_version_of,
    release_name,
    supported_features,
)


def test_the_levels_are_those_of_kafka_4_3() -> None:
    assert SUPPORTED_FEATURES[METADATA_VERSION] == (7, 30)
    others = {name: levels for name, levels in SUPPORTED_FEATURES.items() if name != METADATA_VERSION}
    assert set(others) == {
        ELIGIBLE_LEADER_REPLICAS_VERSION,
        "group.version",
        "kraft.version",
        "share.version",
        "streams.version",
        "transaction.version",
    }
    assert others.pop(ELIGIBLE_LEADER_REPLICAS_VERSION) == (0, 1)
    assert others.pop(KRAFT_VERSION) == (0, 1)
    assert others.pop(GROUP_VERSION) == (0, 1)
    assert others.pop(TRANSACTION_VERSION) == (0, 2)
    assert others.pop(SHARE_VERSION) == (0, 1)
    assert others == {STREAMS_VERSION: FeatureRange(0, 1)}


def test_a_node_that_knows_less_knows_less_of_what_needs_it() -> None:
    assert supported_features(metadata_version_max=99) == supported_features() == SUPPORTED_FEATURES
    assert supported_features(metadata_version_max=29) == SUPPORTED_FEATURES | {METADATA_VERSION: FeatureRange(7, 29)}
    assert supported_features(metadata_version_max=22)[ELIGIBLE_LEADER_REPLICAS_VERSION] == (0, 0)


def test_levels_that_kafka_has_not_released_are_offered_when_they_are_asked_for() -> None:
    unstable = supported_features(has_unstable=True)
    assert {name: levels for name, levels in unstable.items() if levels != SUPPORTED_FEATURES[name]} == {
        TRANSACTION_VERSION: (0, 3),
        SHARE_VERSION: (0, 2),
    }


@pytest.mark.parametrize(
    ("current", "wanted", "loses"), [(30, 29, True), (29, 23, False), (23, 22, True), (22, 17, False), (30, 30, False)]
)
def test_going_back_loses_what_only_newer_levels_can_say(current: int, wanted: int, loses: bool) -> None:
    assert downgrade_loses_metadata(current, wanted) == loses


@pytest.mark.parametrize(("level", "release"), [(7, "3.3-IV3"), (17, "3.7-IV2"), (25, "4.0-IV3"), (30, "4.3-IV0")])
def test_releases_name_levels(level: int, release: str) -> None:
    assert release_name(level) == release
    assert metadata_version_of(release) == level


def test_a_release_without_its_step_is_its_newest() -> None:
    assert metadata_version_of("4.0") == 25
    assert metadata_version_of("4.3") == LATEST_METADATA_VERSION
    assert release_name(99) == "99"
    with pytest.raises(ValueError, match=r"unknown release '2\.8'"):
        metadata_version_of("2.8")


def test_a_range_contains_its_ends() -> None:
    levels = FeatureRange(1, 3)
    assert [level in levels for level in (0, 1, 2, 3, 4)] == [False, True, True, True, False]
    assert "1" not in levels
