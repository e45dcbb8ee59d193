from __future__ import annotations

from millbeck.coordinator.group.share import initialization
from millbeck.coordinator.group.share.context import PartitionStart
from millbeck.coordinator.group.share.draft import Draft
from millbeck.coordinator.group.share.group import ShareGroup
from tests.unit.coordinator.group.share.share_world import MadeUpTopics, id_of

T = id_of("t")


def _begun() -> Draft:
    draft = Draft(ShareGroup(group_id="g"))
    initialization.begin(draft, MadeUpTopics(t=2), ["t", "missing"])
    return draft


def test_partitions_begin_once() -> None:
    draft = _begun()
    assert draft.has_new_beginnings
    assert initialization.is_waiting(draft.group)
    assert initialization.beginnings(draft.group) == [PartitionStart(T, 0, -1), PartitionStart(T, 1, -1)]
    count = len(draft.records)
    initialization.begin(draft, MadeUpTopics(t=2), ["t"])
    assert len(draft.records) == count


def test_what_has_begun_waits_no_more() -> None:
    draft = _begun()
    assert initialization.complete(draft, [(T, 0)])
    assert not initialization.complete(draft, [(T, 0), (T, 9)])
    assert draft.group.topics.initialized == {T: (0,)}
    assert initialization.complete(draft, [(T, 1)])
    assert not initialization.is_waiting(draft.group)
    initialization.begin(draft, MadeUpTopics(t=3), ["t"])
    assert initialization.beginnings(draft.group) == [PartitionStart(T, 2, -1)]


def test_what_is_set_has_begun() -> None:
    draft = _begun()
    initialization.begun(draft, [(T, "t", 1)])
    assert draft.group.topics.initialized == {T: (1,)}
    assert draft.group.topics.initializing == {T: (0,)}


def test_what_is_deleted_does_not_begin_before_it_is_gone() -> None:
    draft = _begun()
    initialization.delete(draft, {T: "t"})
    assert not initialization.is_waiting(draft.group)
    initialization.begin(draft, MadeUpTopics(t=2), ["t"])
    assert not initialization.is_waiting(draft.group)
    assert initialization.deleted(draft, [T])
    assert not initialization.deleted(draft, [T])
    initialization.begin(draft, MadeUpTopics(t=2), ["t"])
    assert initialization.is_waiting(draft.group)
