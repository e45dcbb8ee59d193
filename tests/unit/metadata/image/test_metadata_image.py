from __future__ import annotations

import pytest

from millbeck.metadata.image import EMPTY, FeaturesImage, MetadataImage, ProducerIdsImage
from millbeck.metadata.records import FeatureLevelRecord


def test_an_empty_image_says_nothing() -> None:
    assert list(EMPTY.records()) == []
    assert (EMPTY.offset, EMPTY.epoch) == (-1, -1)
    assert MetadataImage() == EMPTY


def test_the_features_come_first() -> None:
    image = MetadataImage(
        features=FeaturesImage(levels={"metadata.version": 30}), producer_ids=ProducerIdsImage(next_producer_id=1000)
    )
    first, second = image.records()
    assert first == FeatureLevelRecord(name="metadata.version", feature_level=30)
    assert type(second).__name__ == "ProducerIdsRecord"


def test_an_image_inside_a_transaction_is_no_snapshot() -> None:
    with pytest.raises(AssertionError, match="during a metadata transaction"):
        list(MetadataImage(open_transaction=()).records())
