from __future__ import annotations

from share_world import MadeUpTopics, id_of

from millbeck.coordinator.group.share import initialising
from millbeck.coordinator.group.share.draft import Draft
from millbeck.coordinator.group.share.group import ShareGroup
from millbeck.coordinator.group.share.surroundings import Begin

T = id_of("t")


def _begun() -> Draft:
    draft = Draft(ShareGroup(group_id="g"))
    initialising.begin(draft, MadeUpTopics(t=2), ["t", "missing"])
    return draft


def test_partitions_begin_once() -> None:
    draft = _begun()
    assert draft.has_new_beginnings
    assert initialising.is_waiting(draft.group)
    assert initialising.beginnings(draft.group) == [Begin(T, 0, -1), Begin(T, 1, -1)]
    count = len(draft.records)
    initialising.begin(draft, MadeUpTopics(t=2), ["t"])
    assert len(draft.records) == count


def test_what_has_begun_waits_no_more() -> None:
    draft = _begun()
    assert initialising.complete(draft, [(T, 0)])
    assert not initialising.complete(draft, [(T, 0), (T, 9)])
    assert draft.group.topics.initialized == {T: (0,)}
    assert initialising.complete(draft, [(T, 1)])
    assert not initialising.is_waiting(draft.group)
    initialising.begin(draft, MadeUpTopics(t=3), ["t"])
    assert initialising.beginnings(draft.group) == [Begin(T, 2, -1)]


def test_what_is_set_has_begun() -> None:
    draft = _begun()
    initialising.begun(draft, [(T, "t", 1)])
    assert draft.group.topics.initialized == {T: (1,)}
    assert draft.group.topics.initializing == {T: (0,)}


def test_what_is_deleted_does_not_begin_before_it_is_gone() -> None:
    draft = _begun()
    initialising.delete(draft, {T: "t"})
    assert not initialising.is_waiting(draft.group)
    initialising.begin(draft, MadeUpTopics(t=2), ["t"])
    assert not initialising.is_waiting(draft.group)
    assert initialising.deleted(draft, [T])
    assert not initialising.deleted(draft, [T])
    initialising.begin(draft, MadeUpTopics(t=2), ["t"])
    assert initialising.is_waiting(draft.group)
