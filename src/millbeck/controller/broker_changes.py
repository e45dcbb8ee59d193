"""The partition changes when a broker is fenced, unfenced or unregistered, shuts down, or loses a directory.

Each function returns records, including the change of the broker's registration, and changes nothing. The order is
Kafka's: a broker is removed from its partitions before it is fenced, and elected leader after it is unfenced. All
decisions are based on the image they get; `after` makes the image that includes earlier records of the same decision.
Passes over all partitions are done in steps.
"""

from __future__ import annotations

from collections.abc import Sequence

from millbeck.controller.config_rules import ConfigRules
from millbeck.controller.election_rules import ElectionContext, TopicPartitionRegistration, find_partitions
from millbeck.controller.result import RECORDS_AT_ONCE, Steps
from millbeck.kernel.errors import StaleBrokerEpoch
from millbeck.kernel.ids import Uuid
from millbeck.metadata.delta import IncrementalReplay
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


def check_broker_epoch(image: MetadataImage, broker_id: int, epoch: int) -> BrokerRegistration:
    """The broker's registration. Raises `StaleBrokerEpoch` if the id is registered with another epoch or not at all."""
    broker = image.cluster.broker(broker_id)
    if broker is None:
        raise StaleBrokerEpoch(f"No broker registration found for broker id {broker_id}")
    if broker.epoch != epoch:
        raise StaleBrokerEpoch(f"Expected broker epoch {broker.epoch}, but got broker epoch {epoch}")
    return broker


def fenced(image: MetadataImage, rules: ConfigRules, broker: BrokerRegistration) -> Steps[list[MetadataRecord]]:
    """Fence a broker: it loses all leaderships and leaves every ISR in which it is not alone."""
    records = yield from _without(image, rules, broker.broker_id)
    records.append(BrokerRegistrationChangeRecord(broker_id=broker.broker_id, broker_epoch=broker.epoch, fenced=FENCE))
    return records


def records_for_partial_fencing(
    image: MetadataImage, rules: ConfigRules, broker: BrokerRegistration, *, partitions_max: int
) -> Steps[list[MetadataRecord]]:
    """As `fenced`, for a limited number of partitions; the broker itself is fenced with the last ones.

    Each partition's change is valid on its own. Until the broker is fenced, it only loses what a broker that is still
    alive gets back: its place in ISRs, and by `regained` the partitions that no other replica can lead. So other
    decisions may be made between two parts, and the next part is based on them.
    """
    broker_id, tracks = broker.broker_id, image.features.tracks_eligible_leaders
    left = find_partitions(
        image,
        lambda partition: (
            partition.leader == broker_id
            or (broker_id in partition.isr and (len(partition.isr) > 1 or tracks or partition.leader != NO_LEADER))
        ),
    )
    some: list[TopicPartitionRegistration] = []
    for placed in left:
        if placed is None:
            yield
            continue
        some.append(placed)
        if len(some) > partitions_max:
            break
    records: list[MetadataRecord] = []
    if len(some) > partitions_max:
        records = yield from ElectionContext(image, rules, removed=broker_id).changes(some[:-1])
    return records or (yield from fenced(image, rules, broker))


def unfenced(image: MetadataImage, rules: ConfigRules, broker: BrokerRegistration) -> Steps[list[MetadataRecord]]:
    """Unfence a broker; it becomes leader of partitions that no other replica can lead."""
    change = BrokerRegistrationChangeRecord(broker_id=broker.broker_id, broker_epoch=broker.epoch, fenced=UNFENCE)
    return [change, *(yield from regained(image, rules, broker))]


def regained(image: MetadataImage, rules: ConfigRules, broker: BrokerRegistration) -> Steps[list[MetadataRecord]]:
    """Elect the unfenced broker where no other replica can lead."""
    elections = ElectionContext(image, rules, added=broker.broker_id)
    leaderless = find_partitions(
        image, lambda partition: partition.leader == NO_LEADER and broker.broker_id in partition.replicas
    )
    return (yield from elections.changes(leaderless))


def records_for_controlled_shutdown(
    image: MetadataImage, rules: ConfigRules, broker: BrokerRegistration
) -> Steps[list[MetadataRecord]]:
    """Move leaderships away and remove the broker from every ISR in which it is not alone, without fencing it."""
    records: list[MetadataRecord] = []
    if not broker.in_controlled_shutdown:
        records.append(
            BrokerRegistrationChangeRecord(
                broker_id=broker.broker_id, broker_epoch=broker.epoch, in_controlled_shutdown=BEGIN_SHUTDOWN
            )
        )
    return records + (yield from _without(image, rules, broker.broker_id))


def restarted(
    image: MetadataImage, rules: ConfigRules, broker_id: int, *, is_clean: bool
) -> Steps[list[MetadataRecord]]:
    """Handle a registration of a new process: partitions led by the old process get other leaders, or none until the
    broker is unfenced.

    After an unclean shutdown the new process may lack records that the old one acknowledged, so it is neither in sync
    nor eligible for any partition. Where eligible leaders are not tracked, this makes no difference.
    """
    return (yield from (_without if is_clean else _forgotten)(image, rules, broker_id))


def unregistered(image: MetadataImage, rules: ConfigRules, broker: BrokerRegistration) -> Steps[list[MetadataRecord]]:
    """Unregister a broker: remove it from every ISR and list of eligible leaders."""
    records = yield from _forgotten(image, rules, broker.broker_id)
    records.append(UnregisterBrokerRecord(broker_id=broker.broker_id, broker_epoch=broker.epoch))
    return records


def records_for_offline_directories(
    image: MetadataImage, rules: ConfigRules, broker: BrokerRegistration, offline: Sequence[Uuid]
) -> Steps[list[MetadataRecord]]:
    """Elect other leaders for replicas in failed directories and remove them from the ISR; skips known failures."""
    lost = [directory for directory in broker.directories if directory in offline]
    if not lost:
        return []
    elections = ElectionContext(image, rules, removed=broker.broker_id)
    records = yield from elections.changes(
        find_partitions(
            image,
            lambda partition: broker.broker_id in partition.replicas and partition.directory(broker.broker_id) in lost,
        )
    )
    left = [directory for directory in broker.directories if directory not in lost]
    if left:
        # A broker without any directory stops by itself; the record cannot express that none is left.
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


def after(image: MetadataImage, records: list[MetadataRecord]) -> Steps[MetadataImage]:
    """The image that includes the first records of a decision, for its remaining part."""
    if not records:
        return image
    fold = IncrementalReplay(image)
    for start in range(0, len(records), RECORDS_AT_ONCE):
        fold.add(records[start : start + RECORDS_AT_ONCE])
        yield
    offset = image.offset + len(records)
    return fold.finish(offset=offset, epoch=image.epoch, timestamp_ms=image.timestamp_ms)[0]


def _without(image: MetadataImage, rules: ConfigRules, broker_id: int) -> Steps[list[MetadataRecord]]:
    elections = ElectionContext(image, rules, removed=broker_id)
    return (
        yield from elections.changes(
            find_partitions(image, lambda partition: broker_id in partition.isr or partition.leader == broker_id)
        )
    )


def _forgotten(image: MetadataImage, rules: ConfigRules, broker_id: int) -> Steps[list[MetadataRecord]]:
    elections = ElectionContext(image, rules, unclean=broker_id)
    return (
        yield from elections.changes(
            find_partitions(
                image,
                lambda partition: (
                    broker_id in partition.isr
                    or broker_id in partition.eligible_leader_replicas
                    or partition.leader == broker_id
                ),
            )
        )
    )
