"""Computes a group's target assignment with the assignor that most members prefer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from millbeck.coordinator.group.assignors.specification import MemberSpecification, Topics, TopicSpecification
from millbeck.coordinator.group.consumer.assignment import Assignment
from millbeck.coordinator.group.consumer.cluster_view import ClusterView
from millbeck.coordinator.group.consumer.draft import Draft
from millbeck.coordinator.group.consumer.member import ConsumerMember
from millbeck.kernel.ids import Uuid


class AssignmentInput(NamedTuple):
    """The input of an assignor; immutable, so that it may be used on another thread."""

    epoch: int
    members: Sequence[MemberSpecification]
    topics: Topics

    @property
    def size(self) -> int:
        return len(self.members) + sum(topic.partition_count for topic in self.topics.values())


Solution = Mapping[str, Assignment]


def build_group_spec(draft: Draft, cluster: ClusterView) -> AssignmentInput:
    members = draft.members()
    shapes = cluster.shapes(draft.subscribed_names())
    topics = {topic_id: TopicSpecification(shape.partition_count, shape.racks) for topic_id, shape in shapes.items()}
    ids_by_name = {shape.name: topic_id for topic_id, shape in shapes.items()}
    ids_of: Callable[[tuple[str, ...]], tuple[Uuid, ...]] = _remembering(
        lambda names: tuple(sorted(ids_by_name[name] for name in names if name in ids_by_name))
    )
    specifications = [
        MemberSpecification(
            member.member_id,
            member.instance_id,
            member.rack_id,
            ids_of(draft.topics_of(member)),
            draft.target_of(member.member_id),
        )
        for member in members.values()
    ]
    return AssignmentInput(draft.epoch, specifications, topics)


def _remembering(
    find: Callable[[tuple[str, ...]], tuple[Uuid, ...]],
) -> Callable[[tuple[str, ...]], tuple[Uuid, ...]]:
    """Cache topic ids by subscription: most members have the same one."""
    known: dict[tuple[str, ...], tuple[Uuid, ...]] = {}

    def remembered(names: tuple[str, ...]) -> tuple[Uuid, ...]:
        if names not in known:
            known[names] = find(names)
        return known[names]

    return remembered


def preferred_assignor(members: Iterable[ConsumerMember], offered: Sequence[str]) -> str:
    """The assignor most members prefer; on a tie the one listed first, and the first one if no member has a
    preference."""
    votes: dict[str, int] = {}
    for member in members:
        if member.assignor in offered and member.assignor is not None:
            votes[member.assignor] = votes.get(member.assignor, 0) + 1
    return max(offered, key=lambda name: votes.get(name, 0))
