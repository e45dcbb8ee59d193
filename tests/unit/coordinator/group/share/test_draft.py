from __future__ import annotations

from millbeck.coordinator.group.share.assignor import assign
from millbeck.coordinator.group.share.draft import Draft
from millbeck.coordinator.group.share.group import ShareGroup, StateTopics
from millbeck.coordinator.group.share.records import ShareGroupMetadataKey
from tests.unit.coordinator.group.share.share_world import MadeUpTopics, id_of


def _with_member() -> Draft:
    draft = Draft(ShareGroup(group_id="g"))
    is_new = draft.put_member(None, "m", rack_id=None, client_id="c", client_host="/h", subscribed_names=["t", "t"])
    assert is_new
    return draft


def test_a_draft_shows_what_its_records_say() -> None:
    draft = _with_member()
    draft.raise_epoch(5)
    assert draft.group.epoch == 1
    assert draft.group.members["m"].subscribed_names == ("t",)
    assert len(draft.records) == 2


def test_what_a_member_says_again_is_not_written_again() -> None:
    draft = _with_member()
    member = draft.group.members["m"]
    assert not draft.put_member(member, "m", rack_id=None, client_id="c", client_host="/h", subscribed_names=None)
    assert len(draft.records) == 1
    assert not draft.put_member(member, "m", rack_id="r", client_id="c", client_host="/h", subscribed_names=None)
    assert len(draft.records) == 2, "a rack is remembered, and changes nothing"
    assert draft.put_member(member, "m", rack_id=None, client_id="c", client_host="/h", subscribed_names=["u"])


def test_a_member_is_moved_to_its_target_once() -> None:
    draft = _with_member()
    draft.raise_epoch(0)
    draft.put_topics(StateTopics(names={id_of("t"): "t"}, initialized={id_of("t"): (0, 1)}))
    draft.assign(MadeUpTopics(t=2), 77, assign)
    assert draft.group.assignment_epoch == 1
    assert draft.move_to_target("m")
    assert draft.group.members["m"].assigned == {id_of("t"): (0, 1)}
    assert not draft.move_to_target("m")


def test_a_group_that_goes_leaves_nothing_behind() -> None:
    draft = _with_member()
    before = len(draft.records)
    draft.remove_group()
    tombstones = draft.records[before:]
    assert all(each.value is None for each in tombstones)
    assert isinstance(tombstones[-1].key, ShareGroupMetadataKey)
    assert len(tombstones) == 6
