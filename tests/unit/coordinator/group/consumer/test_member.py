from __future__ import annotations

from dataclasses import replace

from millbeck.coordinator.group.consumer.member import ClassicTerms, ConsumerMember, MemberState
from millbeck.coordinator.group.consumer.records import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
)

ID = b"t" * 16
MEMBER = ConsumerMember(
    member_id="m",
    instance_id="i",
    rack_id="r",
    client_id="c",
    client_host="/h",
    topic_names=("a", "b"),
    regex="x.*",
    rebalance_timeout_ms=9,
    assignor="range",
    classic=ClassicTerms(session_timeout_ms=5, protocols=(("p", b"1"), ("q", b"2"))),
    epoch=4,
    previous_epoch=3,
    state=MemberState.UNREVOKED_PARTITIONS,
    assigned={ID: (1, 2)},
    revoking={ID: (3,)},
    assignment_epochs={(ID, 1): 2, (ID, 2): 4, (ID, 3): 1},
)


def test_a_member_is_what_its_records_say() -> None:
    again = ConsumerMember(member_id="m").with_metadata(MEMBER.metadata_value()).with_current(MEMBER.current_value())
    assert again == MEMBER
    assert again.uses_classic_protocol
    assert again.classic is not None
    assert again.classic.protocol_name == "p"


def test_a_member_of_the_consumer_protocol_stays_one() -> None:
    member = replace(MEMBER, classic=None)
    again = ConsumerMember(member_id="m").with_metadata(member.metadata_value())
    assert not again.uses_classic_protocol


def test_a_record_without_the_terms_of_a_classic_member_is_one_of_the_consumer_protocol() -> None:
    """As written before null was: a member of the classic protocol always has protocols."""
    value = ConsumerGroupMemberMetadataValue(client_id="c")
    assert value.classic_member_metadata is not None
    assert not ConsumerMember(member_id="m").with_metadata(value).uses_classic_protocol


def test_a_state_from_the_future_is_unknown() -> None:
    value = ConsumerGroupCurrentMemberAssignmentValue(4, 3, 9)
    assert ConsumerMember(member_id="m").with_current(value).state is MemberState.UNKNOWN


def test_only_a_stable_member_at_the_target_s_epoch_is_there() -> None:
    stable = ConsumerMember(member_id="m", epoch=4)
    assert stable.is_reconciled_to(4)
    assert not stable.is_reconciled_to(5)
    assert not MEMBER.is_reconciled_to(4)
