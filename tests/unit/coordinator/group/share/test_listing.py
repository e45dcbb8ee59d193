from __future__ import annotations

from millbeck.coordinator.group.share import listing
from millbeck.coordinator.group.share.group import ShareGroup, ShareMember
from millbeck.kernel.errors import GroupIdNotFound
from tests.unit.coordinator.group.share.share_world import MadeUpTopics, id_of

GROUP = ShareGroup(
    group_id="g",
    epoch=4,
    assignment_epoch=3,
    members={"m": ShareMember(member_id="m", epoch=3, assigned={id_of("t"): (0,), id_of("gone"): (1,)})},
)


def test_filters_let_through_what_they_name() -> None:
    groups = [GROUP, ShareGroup(group_id="e")]
    assert [each.group_id for each in listing.list_groups(groups, [], ["Share"])] == ["g", "e"]
    assert [each.group_id for each in listing.list_groups(groups, ["empty"], [])] == ["e"]
    assert listing.list_groups(groups, [], ["classic"]) == []


def test_a_group_is_described_with_the_topics_that_exist() -> None:
    described = listing.describe("g", GROUP, MadeUpTopics(t=1), "simple")
    assert (described.group_epoch, described.assignment_epoch, described.group_state) == (4, 3, "Stable")
    assert [each.topic_name for each in described.members[0].assignment.topic_partitions] == ["t"]
    missing = listing.describe("x", None, MadeUpTopics(), "simple")
    assert (missing.error_code, missing.group_state) == (GroupIdNotFound.code, "")
