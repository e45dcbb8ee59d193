"""Groups that change their protocol while they work, in both directions (``group.consumer.migration.policy``).

Up: when a member joins a classic group with a ConsumerGroupHeartbeat, its members become classic members of a consumer
group that begins with their generation and their assignments. Down: when the last member of the consumer protocol goes,
those that are left become a classic group again, with the assignments that were meant for them, and rebalance.
"""

from __future__ import annotations

from millbeck.coordinator.config import ClassicGroupOptions
from millbeck.coordinator.group import records
from millbeck.coordinator.group.classic.group import ClassicGroup
from millbeck.coordinator.group.classic.member import Member
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
    """The records that make a consumer group of a classic one; GroupIdNotFound when its payloads cannot be read."""
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


def _upgraded(member: Member, group: ClassicGroup, cluster: ClusterView) -> ConsumerMember:
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
            # The chosen one first: the member's answers are read and written in it.
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
    """Whether those that stay, when a member leaves or has changed its protocol, are better off as a classic group."""
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
    """The records that make a classic group of what is left; GroupIdNotFound when a payload cannot be read."""
    classic = ClassicGroup(group.group_id, now_ms=now_ms)
    for member in _staying(group, leaving):
        assert member.classic is not None
        classic.add(
            Member(
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
