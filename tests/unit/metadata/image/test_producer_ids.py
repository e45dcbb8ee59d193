from __future__ import annotations

from millbeck.metadata.image.producer_ids import ProducerIdsImage
from millbeck.metadata.records import ProducerIdsRecord


def test_nothing_is_written_before_the_first_block() -> None:
    assert list(ProducerIdsImage().records()) == []


def test_the_next_block_is_written() -> None:
    record = ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=3000)
    assert list(ProducerIdsImage(next_producer_id=3000).records()) == [record]
