"""Admin calls for streams groups: describe members, tasks and topology."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millbeck.client.admin.outcomes import Outcomes
from millbeck.client.admin.results import GroupDescription, MemberDescription
from millbeck.client.admin.routing import call_coordinators
from millbeck.client.cluster import COORDINATOR, Cluster
from millbeck.client.retry import Deadline
from millbeck.kernel.errors import from_code
from millbeck.kernel.ids import TopicPartition

if TYPE_CHECKING:
    from millbeck.wire.messages.streams_groups import (
        DescribedStreamsGroup,
        DescribedTopology,
        StreamsAssignment,
        StreamsGroupMember,
        TaskIds,
    )

Tasks = Mapping[str, tuple[int, ...]]
"""Tasks: the partitions by subtopology id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsTasks:
    active: Tasks = field(default_factory=dict)
    standby: Tasks = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsMemberDescription:
    member_id: str
    process_id: str
    client_id: str
    host: str
    epoch: int
    topology_epoch: int
    assigned: StreamsTasks
    target: StreamsTasks


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsGroupDescription:
    group_id: str
    state: str
    epoch: int
    assignment_epoch: int
    coordinator_id: int
    members: tuple[StreamsMemberDescription, ...]
    source_topics: Mapping[str, tuple[str, ...]]
    """The topics that each subtopology reads, including repartition topics."""

    def with_partitions(self) -> GroupDescription:
        """The group with the partitions that each member's active tasks read, as a consumer group is described."""
        return GroupDescription(
            group_id=self.group_id,
            state=self.state,
            protocol_type="streams",
            protocol="",
            coordinator_id=self.coordinator_id,
            members=tuple(
                MemberDescription(
                    member_id=each.member_id,
                    instance_id=None,
                    client_id=each.client_id,
                    host=each.host,
                    assignment=tuple(self._read_by(each.assigned.active)),
                    metadata=b"",
                    assignment_bytes=b"",
                    epoch=each.epoch,
                )
                for each in self.members
            ),
            authorized_operations=0,
            type="streams",
            epoch=self.epoch,
            target_epoch=self.assignment_epoch,
        )

    def _read_by(self, tasks: Tasks) -> Iterable[TopicPartition]:
        for name, partitions in tasks.items():
            for topic in self.source_topics.get(name, ()):
                for partition in partitions:
                    yield TopicPartition(topic, partition)


async def describe_streams_groups(
    cluster: Cluster, groups: Iterable[str], *, timeout_s: float | None
) -> Outcomes[str, StreamsGroupDescription]:
    from millbeck.wire.messages.streams_groups import StreamsGroupDescribeRequest, StreamsGroupDescribeResponse

    async def attempt(deadline: Deadline) -> Outcomes[str, StreamsGroupDescription]:
        async def ask(node_id: int, group: str) -> StreamsGroupDescription:
            response = await cluster.request(
                StreamsGroupDescribeRequest([group]),
                StreamsGroupDescribeResponse,
                deadline=deadline,
                node_id=node_id,
                purpose=COORDINATOR,
            )
            found = response.groups[0]
            if found.error_code:
                raise from_code(found.error_code, found.error_message or "")
            return _description(found, node_id)

        return Outcomes(await call_coordinators(cluster, groups, ask, deadline))

    return await cluster.retrying(attempt, timeout_s=timeout_s)


def _description(found: DescribedStreamsGroup, node_id: int) -> StreamsGroupDescription:
    return StreamsGroupDescription(
        group_id=found.group_id,
        state=found.group_state,
        epoch=found.group_epoch,
        assignment_epoch=found.assignment_epoch,
        coordinator_id=node_id,
        members=tuple(_member(each) for each in found.members),
        source_topics=_source_topics(found.topology),
    )


def _member(found: StreamsGroupMember) -> StreamsMemberDescription:
    return StreamsMemberDescription(
        member_id=found.member_id,
        process_id=found.process_id,
        client_id=found.client_id,
        host=found.client_host,
        epoch=found.member_epoch,
        topology_epoch=found.topology_epoch,
        assigned=_tasks(found.assignment),
        target=_tasks(found.target_assignment),
    )


def _tasks(found: StreamsAssignment) -> StreamsTasks:
    def by_subtopology(tasks: list[TaskIds]) -> Tasks:
        return {each.subtopology_id: tuple(each.partitions) for each in tasks}

    return StreamsTasks(active=by_subtopology(found.active_tasks), standby=by_subtopology(found.standby_tasks))


def _source_topics(topology: DescribedTopology | None) -> Mapping[str, tuple[str, ...]]:
    subtopologies = topology.subtopologies if topology is not None else None
    return {
        each.subtopology_id: (*each.source_topics, *(info.name for info in each.repartition_source_topics))
        for each in subtopologies or ()
    }
