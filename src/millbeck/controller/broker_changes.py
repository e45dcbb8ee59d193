"""What becomes of partitions when a broker comes, goes, or loses a directory.

Each function returns records, with the broker's own change among them, and changes nothing. The broker's change comes
where Kafka puts it: a broker is taken out of its partitions before it is fenced, and given leadership after it is back.
All are decided on the image as it is; `after` is for what must see the effect of what came before.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from millbeck.controller.config_rules import ConfigRules
from millbeck.controller.election_rules import ElectionRules, partitions_where
from millbeck.kernel.errors import StaleBrokerEpoch
from millbeck.kernel.ids import Uuid
from millbeck.metadata.delta import advance
from millbeck.metadata.image import BrokerRegistration, MetadataImage
from millbeck.metadata.records import (
    NO_LEADER,
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    UnregisterBrokerRecord,
)

FENCE = 1
UNFENCE = -1
BEGIN_SHUTDOWN = 1


def checked_broker(image: MetadataImage, broker_id: int, epoch: int) -> BrokerRegistration:
    """The broker's registration; `StaleBrokerEpoch` when another process has the id by now, or none."""
    broker = image.cluster.broker(broker_id)
    if broker is None:
        raise StaleBrokerEpoch(f"No broker registration found for broker id {broker_id}")
    if broker.epoch != epoch:
        raise StaleBrokerEpoch(f"Expected broker epoch {broker.epoch}, but got broker epoch {epoch}")
    return broker


def fenced(image: MetadataImage, rules: ConfigRules, broker: BrokerRegistration) -> list[MetadataRecord]:
    """The broker leads nothing and is in sync nowhere, but where nobody else is."""
    records = _without(image, rules, broker.broker_id)
    records.append(BrokerRegistrationChangeRecord(broker_id=broker.broker_id, broker_epoch=broker.epoch, fenced=FENCE))
    return records


def partly_fenced(
    image: MetadataImage, rules: ConfigRules, broker: BrokerRegistration, *, partitions_max: int
) -> list[MetadataRecord]:
    """As `fenced`, for so many partitions at once; the broker itself is fenced with the last of them.

    Each partition's change is right by itself, and until the broker is fenced it only loses what a broker that is
    still alive wins back. So between two parts anything else may be decided, and the next part is decided on that.
    """
    broker_id, tracks = broker.broker_id, image.features.tracks_eligible_leaders
    left = partitions_where(
        image,
        lambda partition: (
            partition.leader == broker_id
            or (broker_id in partition.isr and (len(partition.isr) > 1 or tracks or partition.leader != NO_LEADER))
        ),
    )
    some = list(islice(left, partitions_max + 1))
    records: list[MetadataRecord] = []
    if len(some) > partitions_max:
        records = ElectionRules(image, rules, removed=broker_id).changes(some[:-1])
    return records or fenced(image, rules, broker)


def unfenced(image: MetadataImage, rules: ConfigRules, broker: BrokerRegistration) -> list[MetadataRecord]:
    """The broker may lead; it does at once where nobody else can."""
    change = BrokerRegistrationChangeRecord(broker_id=broker.broker_id, broker_epoch=broker.epoch, fenced=UNFENCE)
    elections = ElectionRules(image, rules, added=broker.broker_id)
    leaderless = partitions_where(
        image, lambda partition: partition.leader == NO_LEADER and broker.broker_id in partition.replicas
    )
    return [change, *elections.changes(leaderless)]


def shutting_down(image: MetadataImage, rules: ConfigRules, broker: BrokerRegistration) -> list[MetadataRecord]:
    """The broker hands over what it leads and leaves every ISR it is not alone in; it is not fenced yet."""
    records: list[MetadataRecord] = []
    if not broker.in_controlled_shutdown:
        records.append(
            BrokerRegistrationChangeRecord(
                broker_id=broker.broker_id, broker_epoch=broker.epoch, in_controlled_shutdown=BEGIN_SHUTDOWN
            )
        )
    return records + _without(image, rules, broker.broker_id)


def restarted(image: MetadataImage, rules: ConfigRules, broker_id: int, *, is_clean: bool) -> list[MetadataRecord]:
    """A new process has the id: what the old one led is led by others, or by nobody until the new one is unfenced.

    After an unclean end the new process may lack what the old one acknowledged: then it is neither in sync nor
    eligible anywhere. Where eligible leaders are not tracked it makes no difference.
    """
    return _without(image, rules, broker_id) if is_clean else _forgotten(image, rules, broker_id)


def unregistered(image: MetadataImage, rules: ConfigRules, broker: BrokerRegistration) -> list[MetadataRecord]:
    """The broker is gone for good, and no longer counts anywhere."""
    records = _forgotten(image, rules, broker.broker_id)
    records.append(UnregisterBrokerRecord(broker_id=broker.broker_id, broker_epoch=broker.epoch))
    return records


def directories_lost(
    image: MetadataImage, rules: ConfigRules, broker: BrokerRegistration, offline: Sequence[Uuid]
) -> list[MetadataRecord]:
    """What was in the directories is led by others, and not in sync here; nothing for those known to be lost."""
    lost = [directory for directory in broker.directories if directory in offline]
    if not lost:
        return []
    elections = ElectionRules(image, rules, removed=broker.broker_id)
    records = elections.changes(
        partitions_where(
            image,
            lambda partition: broker.broker_id in partition.replicas and partition.directory(broker.broker_id) in lost,
        )
    )
    left = [directory for directory in broker.directories if directory not in lost]
    if left:
        # A broker without any directory ends by itself; the record has no way to say that none is left.
        records.append(
            BrokerRegistrationChangeRecord(broker_id=broker.broker_id, broker_epoch=broker.epoch, log_dirs=left)
        )
    return records


def leads_any(image: MetadataImage, broker_id: int) -> bool:
    return any(
        partition.leader == broker_id
        for topic in image.topics.by_id.values()
        for partition in topic.partitions.values()
    )


def after(image: MetadataImage, records: list[MetadataRecord]) -> MetadataImage:
    """The image that a decision's first records make, for deciding the rest of it."""
    if not records:
        return image
    offset = image.offset + len(records)
    return advance(image, records, offset=offset, epoch=image.epoch, timestamp_ms=image.timestamp_ms)[0]


def _without(image: MetadataImage, rules: ConfigRules, broker_id: int) -> list[MetadataRecord]:
    elections = ElectionRules(image, rules, removed=broker_id)
    return elections.changes(
        partitions_where(image, lambda partition: broker_id in partition.isr or partition.leader == broker_id)
    )


def _forgotten(image: MetadataImage, rules: ConfigRules, broker_id: int) -> list[MetadataRecord]:
    elections = ElectionRules(image, rules, unclean=broker_id)
    return elections.changes(
        partitions_where(
            image,
            lambda partition: (
                broker_id in partition.isr
                or broker_id in partition.eligible_leader_replicas
                or partition.leader == broker_id
            ),
        )
    )
