from __future__ import annotations

from millbeck.metadata.image.features import FeaturesImage


def test_an_absent_feature_is_at_level_zero() -> None:
    image = FeaturesImage(levels={"group.version": 1})
    assert (image.level("group.version"), image.level("share.version"), image.metadata_version) == (1, 0, 0)


def test_the_metadata_version_is_written_first() -> None:
    image = FeaturesImage(levels={"a.version": 1, "metadata.version": 30, "z.version": 2})
    assert [record.name for record in image.records()] == ["metadata.version", "a.version", "z.version"]
