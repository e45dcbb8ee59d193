"""Topics and their partitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from millbeck.kernel.ids import Uuid
from millbeck.metadata.fault import MetadataFault
from millbeck.metadata.image.directories import MIGRATING_DIRECTORY
from millbeck.metadata.records import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
)

RECOVERED = 0
RECOVERING = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRegistration:
    """The state of one partition. ``directories`` has one entry for each of ``replicas``, in the same order."""

    replicas: tuple[int, ...]
    directories: tuple[Uuid, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    eligible_leader_replicas: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    leader_recovery_state: int = RECOVERED

    @property
    def has_leader(self) -> bool:
        return self.leader != NO_LEADER

    @property
    def has_preferred_leader(self) -> bool:
        return self.leader == self.replicas[0]

    @property
    def is_being_reassigned(self) -> bool:
        return bool(self.removing_replicas or self.adding_replicas)

    def directory(self, broker_id: int) -> Uuid:
        """The log directory of a replica; raises MetadataFault if the broker is not a replica."""
        if broker_id not in self.replicas:
            raise MetadataFault(f"broker {broker_id} is not a replica; the replicas are {self.replicas}")
        return self.directories[self.replicas.index(broker_id)]

    @classmethod
    def from_record(cls, record: PartitionRecord) -> PartitionRegistration:
        return cls(
            replicas=tuple(record.replicas),
            directories=_directories(tuple(record.directories), len(record.replicas)),
            isr=tuple(record.isr),
            removing_replicas=tuple(record.removing_replicas),
            adding_replicas=tuple(record.adding_replicas),
            eligible_leader_replicas=tuple(record.eligible_leader_replicas or ()),
            last_known_elr=tuple(record.last_known_elr or ()),
            leader=record.leader,
            leader_recovery_state=record.leader_recovery_state,
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
        )

    def changed(self, record: PartitionChangeRecord) -> PartitionRegistration:
        """Return the partition after a change. A record with a leader bumps the leader epoch; every change bumps the
        partition epoch."""
        replicas = self.replicas if record.replicas is None else tuple(record.replicas)
        directories = self.directories if record.directories is None else tuple(record.directories)
        names_leader = record.leader != NO_LEADER_CHANGE
        return PartitionRegistration(
            replicas=replicas,
            directories=_directories(directories, len(replicas)),
            isr=_either(record.isr, self.isr),
            removing_replicas=_either(record.removing_replicas, self.removing_replicas),
            adding_replicas=_either(record.adding_replicas, self.adding_replicas),
            eligible_leader_replicas=_either(record.eligible_leader_replicas, self.eligible_leader_replicas),
            last_known_elr=_either(record.last_known_elr, self.last_known_elr),
            leader=record.leader if names_leader else self.leader,
            leader_recovery_state=(
                self.leader_recovery_state if record.leader_recovery_state < 0 else record.leader_recovery_state
            ),
            leader_epoch=self.leader_epoch + 1 if names_leader else self.leader_epoch,
            partition_epoch=self.partition_epoch + 1,
        )

    def to_record(self, topic_id: Uuid, partition_id: int) -> PartitionRecord:
        return PartitionRecord(
            partition_id=partition_id,
            topic_id=topic_id,
            replicas=list(self.replicas),
            isr=list(self.isr),
            removing_replicas=list(self.removing_replicas),
            adding_replicas=list(self.adding_replicas),
            leader=self.leader,
            leader_recovery_state=self.leader_recovery_state,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
            directories=list(self.directories),
            eligible_leader_replicas=list(self.eligible_leader_replicas) or None,
            last_known_elr=list(self.last_known_elr) or None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicImage:
    name: str
    topic_id: Uuid
    partitions: Mapping[int, PartitionRegistration] = field(default_factory=dict)

    def records(self) -> Iterator[TopicRecord | PartitionRecord]:
        yield TopicRecord(name=self.name, topic_id=self.topic_id)
        for partition_id in sorted(self.partitions):
            yield self.partitions[partition_id].to_record(self.topic_id, partition_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsImage:
    """Topics by id and by name."""

    by_id: Mapping[Uuid, TopicImage] = field(default_factory=dict)
    by_name: Mapping[str, TopicImage] = field(default_factory=dict)

    def named(self, name: str) -> TopicImage | None:
        return self.by_name.get(name)

    def with_id(self, topic_id: Uuid) -> TopicImage | None:
        return self.by_id.get(topic_id)

    def partition(self, name: str, partition_id: int) -> PartitionRegistration | None:
        topic = self.by_name.get(name)
        return None if topic is None else topic.partitions.get(partition_id)

    def records(self) -> Iterator[TopicRecord | PartitionRecord]:
        for name in sorted(self.by_name):
            yield from self.by_name[name].records()


def _either(changed: list[int] | None, old: tuple[int, ...]) -> tuple[int, ...]:
    return old if changed is None else tuple(changed)


def _directories(directories: tuple[Uuid, ...], replica_count: int) -> tuple[Uuid, ...]:
    """Directories of the replicas; records from before directories were tracked have none."""
    if len(directories) == replica_count:
        return directories
    if directories.count(MIGRATING_DIRECTORY) == len(directories):
        return (MIGRATING_DIRECTORY,) * replica_count
    raise MetadataFault(f"{len(directories)} directories for {replica_count} replicas")
