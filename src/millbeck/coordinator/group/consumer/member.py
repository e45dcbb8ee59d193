"""One member of a consumer group, built from its records. Immutable: each change makes a new value.

States
    STABLE                 has the target assignment of its epoch
    UNREVOKED_PARTITIONS   was asked to revoke partitions and has not confirmed it; stays at its epoch until then
    UNRELEASED_PARTITIONS  is at the target's epoch and waits for partitions other members have not released yet
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum

from millbeck.coordinator.group.consumer import assignment
from millbeck.coordinator.group.consumer.assignment import Assignment
from millbeck.coordinator.group.consumer.records import (
    AssignedTopic,
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    HeldTopic,
)
from millbeck.kernel.ids import Uuid

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
LEAVE_STATIC_EPOCH = -2


class MemberState(IntEnum):
    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicTerms:
    """Settings of a member that uses the classic protocol."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    """(name, metadata), in the member's order of preference."""

    @property
    def protocol_name(self) -> str:
        return self.protocols[0][0]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerMember:
    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: tuple[str, ...] = ()
    """The subscribed topic names, ascending and without duplicates."""
    regex: str | None = None
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    classic: ClassicTerms | None = None
    """The settings of a classic member; None for a member that sends ConsumerGroupHeartbeat."""
    epoch: int = JOIN_EPOCH
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: Assignment = field(default_factory=dict)
    revoking: Assignment = field(default_factory=dict)
    """Partitions the member must revoke and may still be using."""
    assignment_epochs: Mapping[tuple[Uuid, int], int] = field(default_factory=dict)
    """The member epoch at which each partition was assigned (KIP-1251); a missing entry means the current epoch."""

    @property
    def uses_classic_protocol(self) -> bool:
        return self.classic is not None

    def assignment_epoch(self, topic_id: Uuid, partition: int) -> int | None:
        """The member epoch at which a partition it may be using was assigned; None for other partitions."""
        if partition in self.assigned.get(topic_id, ()) or partition in self.revoking.get(topic_id, ()):
            return self.assignment_epochs.get((topic_id, partition), self.epoch)
        return None

    def is_reconciled_to(self, target_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == target_epoch

    def with_metadata(self, value: ConsumerGroupMemberMetadataValue) -> ConsumerMember:
        stored = value.classic_member_metadata
        classic = None
        # No protocols: earlier versions of Millbeck left the field out where Kafka writes null.
        if stored is not None and stored.supported_protocols:
            classic = ClassicTerms(
                session_timeout_ms=stored.session_timeout_ms,
                protocols=tuple((each.name, each.metadata) for each in stored.supported_protocols),
            )
        return replace(
            self,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topic_names=tuple(sorted(set(value.subscribed_topic_names))),
            regex=value.subscribed_topic_regex,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            assignor=value.server_assignor,
            classic=classic,
        )

    def with_current(self, value: ConsumerGroupCurrentMemberAssignmentValue) -> ConsumerMember:
        known = value.state in (MemberState.STABLE, MemberState.UNREVOKED_PARTITIONS, MemberState.UNRELEASED_PARTITIONS)
        return replace(
            self,
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=MemberState(value.state) if known else MemberState.UNKNOWN,
            assigned=assignment.from_wire(value.assigned_partitions),
            revoking=assignment.from_wire(value.partitions_pending_revocation),
            assignment_epochs={
                (topic.topic_id, partition): epoch
                for topic in (*value.assigned_partitions, *value.partitions_pending_revocation)
                for partition, epoch in zip(topic.partitions, topic.assignment_epochs or (), strict=False)
            },
        )

    def metadata_value(self) -> ConsumerGroupMemberMetadataValue:
        classic = None
        if self.classic is not None:
            classic = ClassicMemberMetadata(
                self.classic.session_timeout_ms,
                [ClassicProtocol(name, metadata) for name, metadata in self.classic.protocols],
            )
        return ConsumerGroupMemberMetadataValue(
            instance_id=self.instance_id,
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            subscribed_topic_names=list(self.topic_names),
            subscribed_topic_regex=self.regex,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            server_assignor=self.assignor,
            classic_member_metadata=classic,
        )

    def current_value(self) -> ConsumerGroupCurrentMemberAssignmentValue:
        return ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=self.epoch,
            previous_member_epoch=self.previous_epoch,
            state=int(self.state),
            assigned_partitions=self._held(self.assigned),
            partitions_pending_revocation=self._held(self.revoking),
        )

    def _held(self, held: Assignment) -> list[HeldTopic]:
        epochs = self.assignment_epochs
        return [
            HeldTopic(topic_id, list(partitions), [epochs.get((topic_id, each), self.epoch) for each in partitions])
            for topic_id, partitions in held.items()
        ]


def wire_topics(assigned: Assignment) -> list[AssignedTopic]:
    return [AssignedTopic(topic_id, list(partitions)) for topic_id, partitions in assigned.items()]
