"""All cluster metadata in one value, with its offset in the metadata log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from millbeck.metadata.image.client_quotas import ClientQuotasImage
from millbeck.metadata.image.cluster import ClusterImage
from millbeck.metadata.image.configs import ConfigsImage
from millbeck.metadata.image.credentials import AclsImage, DelegationTokensImage, ScramImage
from millbeck.metadata.image.features import FeaturesImage
from millbeck.metadata.image.producer_ids import ProducerIdsImage
from millbeck.metadata.image.topics import TopicsImage
from millbeck.metadata.records import MetadataRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataImage:
    """The state of the metadata log up to ``offset``, the offset of the last record (-1: none).

    ``epoch`` and ``timestamp_ms`` are those of the batch with that record. ``open_transaction`` has the records of a
    metadata transaction that has not ended: they have no effect yet, and no snapshot can be made of such an image.
    """

    offset: int = -1
    epoch: int = -1
    timestamp_ms: int = -1
    features: FeaturesImage = field(default_factory=FeaturesImage)
    cluster: ClusterImage = field(default_factory=ClusterImage)
    topics: TopicsImage = field(default_factory=TopicsImage)
    configs: ConfigsImage = field(default_factory=ConfigsImage)
    client_quotas: ClientQuotasImage = field(default_factory=ClientQuotasImage)
    producer_ids: ProducerIdsImage = field(default_factory=ProducerIdsImage)
    acls: AclsImage = field(default_factory=AclsImage)
    scram: ScramImage = field(default_factory=ScramImage)
    delegation_tokens: DelegationTokensImage = field(default_factory=DelegationTokensImage)
    open_transaction: tuple[MetadataRecord, ...] | None = None

    def records(self) -> Iterator[MetadataRecord]:
        """The state as records, in the order in which Kafka writes a snapshot."""
        assert self.open_transaction is None, "no snapshot can be made during a metadata transaction"
        yield from self.features.records()
        yield from self.cluster.records()
        yield from self.topics.records()
        yield from self.configs.records()
        yield from self.client_quotas.records()
        yield from self.producer_ids.records()
        yield from self.acls.records()
        yield from self.scram.records()
        yield from self.delegation_tokens.records()


EMPTY = MetadataImage()
