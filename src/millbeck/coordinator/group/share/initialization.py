"""Tracks which share partitions are initialized in the share coordinator, being initialized or being deleted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from millbeck.coordinator.group.share.context import PartitionStart, Place, Topics
from millbeck.coordinator.group.share.draft import Draft
from millbeck.coordinator.group.share.group import Assignment, ShareGroup, StateTopics
from millbeck.kernel.ids import Uuid

UNINITIALIZED_OFFSET: Final = -1


def begin(draft: Draft, topics: Topics, names: Iterable[str]) -> None:
    """Mark the partitions of these topics that are not initialized yet as initializing."""
    known = draft.group.topics
    initializing, found_names = dict(known.initializing), dict(known.names)
    for name in names:
        shape = topics.shape(name)
        if shape is None or shape.topic_id in known.deleting:
            continue
        there = {*known.initialized.get(shape.topic_id, ()), *known.initializing.get(shape.topic_id, ())}
        missing = [index for index in range(shape.partition_count) if index not in there]
        if missing:
            before = initializing.get(shape.topic_id, ())
            initializing[shape.topic_id] = tuple(sorted([*before, *missing]))
            found_names[shape.topic_id] = name
    if initializing != known.initializing:
        draft.put_topics(replace(known, initializing=initializing, names=found_names))
        draft.has_new_beginnings = True


def is_waiting(group: ShareGroup) -> bool:
    return bool(group.topics.initializing)


def beginnings(group: ShareGroup) -> list[PartitionStart]:
    return [
        PartitionStart(topic, index, UNINITIALIZED_OFFSET)
        for topic, indexes in group.topics.initializing.items()
        for index in indexes
    ]


def complete(draft: Draft, done: Iterable[Place]) -> bool:
    """Mark share partitions as initialized; return whether that changed anything."""
    known = draft.group.topics
    places = [(topic, index) for topic, index in done if index in known.initializing.get(topic, ())]
    if not places:
        return False
    draft.put_topics(
        replace(
            known,
            initializing=_without(known.initializing, places),
            initialized=_with(known.initialized, places),
        )
    )
    return True


def begun(draft: Draft, places: Iterable[tuple[Uuid, str, int]]) -> None:
    """Mark share partitions, given as (topic id, name, partition), as initialized, whatever their state was."""
    known = draft.group.topics
    found = list(places)
    indexes = [(topic, index) for topic, _, index in found]
    draft.put_topics(
        replace(
            known,
            names={**known.names, **{topic: name for topic, name, _ in found}},
            initializing=_without(known.initializing, indexes),
            initialized=_with(known.initialized, indexes),
        )
    )


def delete(draft: Draft, names: Mapping[Uuid, str]) -> None:
    """Mark the state of these topics as being deleted."""
    known = draft.group.topics
    draft.put_topics(_without_topics(known, names, deleting={**known.deleting, **names}))


def deleted(draft: Draft, topic_ids: Iterable[Uuid]) -> bool:
    """Forget deleted topics, or topics whose state was deleted; return whether that changed anything."""
    known = draft.group.topics
    gone = dict.fromkeys(topic_ids, "")
    deleting = {topic: name for topic, name in known.deleting.items() if topic not in gone}
    changed = _without_topics(known, gone, deleting=deleting)
    if changed == known:
        return False
    draft.put_topics(changed)
    return True


def _without_topics(known: StateTopics, gone: Mapping[Uuid, str], deleting: Mapping[Uuid, str]) -> StateTopics:
    return StateTopics(
        names={topic: name for topic, name in known.names.items() if topic not in gone},
        initializing={topic: found for topic, found in known.initializing.items() if topic not in gone},
        initialized={topic: found for topic, found in known.initialized.items() if topic not in gone},
        deleting=deleting,
    )


def _with(assignment: Assignment, places: Iterable[Place]) -> Assignment:
    result = dict(assignment)
    for topic, index in places:
        result[topic] = tuple(sorted({*result.get(topic, ()), index}))
    return result


def _without(assignment: Assignment, places: Iterable[Place]) -> Assignment:
    result = dict(assignment)
    for topic, index in places:
        left = tuple(each for each in result.get(topic, ()) if each != index)
        if left:
            result[topic] = left
        else:
            result.pop(topic, None)
    return result
