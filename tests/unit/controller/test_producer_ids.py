from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from millbeck.controller import Controller, ProducerIdBlock
from millbeck.kernel.errors import StaleBrokerEpoch, UnknownServerError
from millbeck.metadata.image import MetadataImage, ProducerIdsImage


def test_blocks_follow_each_other(
    controller: Controller, one_broker: MetadataImage, replayed: Callable[[MetadataImage, list[Any]], MetadataImage]
) -> None:
    epoch = one_broker.cluster.brokers[1].epoch
    image, blocks = one_broker, []
    for _ in range(3):
        result = controller.allocate_producer_ids(image, 1, epoch)
        image = replayed(image, result.records)
        blocks.append(result.response)
        assert image.producer_ids.next_producer_id == result.response.next_first
    assert blocks == [ProducerIdBlock(0, 1000), ProducerIdBlock(1000, 1000), ProducerIdBlock(2000, 1000)]


@pytest.mark.parametrize(("broker_id", "epoch_difference"), [(1, -1), (2, 0)], ids=["old epoch", "unknown broker"])
def test_only_a_registered_broker_gets_ids(
    controller: Controller, one_broker: MetadataImage, broker_id: int, epoch_difference: int
) -> None:
    epoch = one_broker.cluster.brokers[1].epoch + epoch_difference
    with pytest.raises(StaleBrokerEpoch):
        controller.allocate_producer_ids(one_broker, broker_id, epoch)


def test_ids_do_not_wrap(controller: Controller, one_broker: MetadataImage) -> None:
    image = replace(one_broker, producer_ids=ProducerIdsImage(next_producer_id=2**63 - 500))
    with pytest.raises(UnknownServerError):
        controller.allocate_producer_ids(image, 1, image.cluster.brokers[1].epoch)
