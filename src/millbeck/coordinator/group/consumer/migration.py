"""Converts groups between the classic and the consumer protocol while in use (``group.consumer.migration.policy``).

Upgrade: when a member joins a classic group with ConsumerGroupHeartbeat, the existing members become classic members of
a consumer group that starts with their generation and assignments. Downgrade: when the last member of the consumer
protocol leaves, the remaining members become a classic group again, with their target assignments, and rebalance.
"""

from __future__ import annotations

from millbeck.coordinator.config import ClassicGroupOptions
from millbeck.coordinator.group import records
from millbeck.coordinator.group.classic.group import ClassicGroup
from millbeck.coordinator.group.classic.member import ClassicMember
from millbeck.coordinator.group.classic.subscription import CONSUMER_PROTOCOL_TYPE
from millbeck.coordinator.group.consumer import payloads, writing
from millbeck.coordinator.group.consumer.cluster_view import ClusterView
from millbeck.coordinator.group.consumer.group import ConsumerGroup
from millbeck.coordinator.group.consumer.member import ClassicTerms, ConsumerMember
from millbeck.coordinator.group.records import GroupMetadataKey, GroupMetadataValue, GroupRecord
from millbeck.coordinator.protocol_config import ConsumerProtocolOptions
from millbeck.kernel import errors
from millbeck.wire.errors import DecodeError

UPGRADES = ("bidirectional", "upgrade")
DOWNGRADES = ("bidirectional", "downgrade")


def may_upgrade(group: ClassicGroup, options: ConsumerProtocolOptions) -> bool:
    return (
        options.migration_policy in UPGRADES and group.uses_consumer_protocol and len(group.members) <= options.size_max
    )


def upgrade(group: ClassicGroup, cluster: ClusterView) -> list[GroupRecord]:
    """The records of the upgrade; raises GroupIdNotFound if an embedded protocol payload cannot be decoded."""
    try:
        members = [_upgraded(member, group, cluster) for member in group.members.values()]
    except DecodeError as error:
        raise errors.GroupIdNotFound(
            f"Cannot upgrade the classic group {group.group_id} to consumer group because the embedded consumer "
            "protocol is malformed."
        ) from error
    group_id, epoch = group.group_id, group.generation_id
    found = [records.group_tombstone(group_id)]
    found += [writing.member_record(group_id, member) for member in members]
    found.append(writing.group_record(group_id, epoch=epoch, metadata_hash=0))
    found += [writing.target_record(group_id, member.member_id, member.assigned) for member in members]
    found.append(writing.target_epoch_record(group_id, epoch))
    found += [writing.current_record(group_id, member) for member in members]
    return found


def _upgraded(member: ClassicMember, group: ClassicGroup, cluster: ClusterView) -> ConsumerMember:
    name = member.protocols[0][0] if group.protocol_name is None else group.protocol_name
    subscription = payloads.read_subscription(member.metadata(name))
    return ConsumerMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=subscription.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topic_names=tuple(sorted(set(subscription.topics))),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic=ClassicTerms(
            session_timeout_ms=member.session_timeout_ms,
            # The selected protocol first: the member's responses are encoded in it.
            protocols=tuple(sorted(member.protocols, key=lambda protocol: protocol[0] != name)),
        ),
        epoch=group.generation_id,
        previous_epoch=group.generation_id,
        assigned=payloads.read_assignment(member.assignment, cluster),
    )


def may_downgrade(
    group: ConsumerGroup,
    leaving: ConsumerMember | None,
    options: ConsumerProtocolOptions,
    classic: ClassicGroupOptions,
) -> bool:
    """Whether the group should be downgraded after a member leaves or changes its protocol."""
    staying = _staying(group, leaving)
    return (
        (leaving is None or not leaving.uses_classic_protocol)
        and bool(staying)
        and all(member.uses_classic_protocol for member in staying)
        and options.migration_policy in DOWNGRADES
        and len(staying) <= classic.size_max
    )


def _staying(group: ConsumerGroup, leaving: ConsumerMember | None) -> list[ConsumerMember]:
    return [member for member in group.members.values() if leaving is None or member.member_id != leaving.member_id]


def downgrade(
    group: ConsumerGroup, leaving: ConsumerMember | None, cluster: ClusterView, now_ms: int
) -> list[GroupRecord]:
    """The records of the downgrade; raises GroupIdNotFound if an embedded protocol payload cannot be decoded."""
    classic = ClassicGroup(group.group_id, now_ms=now_ms)
    for member in _staying(group, leaving):
        assert member.classic is not None
        classic.add(
            ClassicMember(
                member_id=member.member_id,
                instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                session_timeout_ms=member.classic.session_timeout_ms,
                protocols=member.classic.protocols,
            ),
            CONSUMER_PROTOCOL_TYPE,
        )
    classic.generation_id = group.epoch
    classic.protocol_name = classic.select_protocol()
    try:
        assignments = {
            member_id: payloads.write_assignment(
                group.targets.get(member_id, {}), payloads.version_of(member.metadata(classic.protocol_name)), cluster
            )
            for member_id, member in classic.members.items()
        }
    except DecodeError as error:
        raise errors.GroupIdNotFound(f"Cannot downgrade the consumer group {group.group_id}: {error}.") from error
    record = classic.metadata_record(assignments)
    assert isinstance(record.key, GroupMetadataKey)
    assert isinstance(record.value, GroupMetadataValue)
    return [*writing.group_tombstones(group), record]
