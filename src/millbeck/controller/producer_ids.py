"""AllocateProducerIds: assigns blocks of producer ids to brokers, each id only once."""

from __future__ import annotations

from typing import NamedTuple

from millbeck.controller.result import Result
from millbeck.kernel.errors import StaleBrokerEpoch, UnknownServerError
from millbeck.metadata.image import MetadataImage
from millbeck.metadata.records import ProducerIdsRecord

BLOCK_SIZE = 1000
_LAST_ID = 2**63 - 1


class ProducerIdBlock(NamedTuple):
    """A block of ``size`` producer ids that starts at ``first``."""

    first: int
    size: int

    @property
    def next_first(self) -> int:
        return self.first + self.size


def allocate_producer_ids(image: MetadataImage, broker_id: int, broker_epoch: int) -> Result[ProducerIdBlock]:
    """The next block, for a broker that is registered with that epoch."""
    broker = image.cluster.broker(broker_id)
    if broker is None or broker.epoch != broker_epoch:
        raise StaleBrokerEpoch(f"Broker {broker_id} is not registered with epoch {broker_epoch}.")
    block = ProducerIdBlock(max(image.producer_ids.next_producer_id, 0), BLOCK_SIZE)
    if block.first > _LAST_ID - BLOCK_SIZE:
        raise UnknownServerError("All producer ids have been allocated.")
    record = ProducerIdsRecord(broker_id=broker_id, broker_epoch=broker_epoch, next_producer_id=block.next_first)
    return Result(response=block, records=[record])
