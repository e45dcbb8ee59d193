"""The partitions by user endpoint, which show which instance of the application answers queries about which keys.

A member with an endpoint (``application.server``) is listed with the partitions of the topics that its active and its
standby tasks read.
"""

from __future__ import annotations

from millbeck.coordinator.group.streams.group import StreamsGroup
from millbeck.coordinator.group.streams.internal_topics import Topics
from millbeck.coordinator.group.streams.tasks import Tasks
from millbeck.coordinator.group.streams.topology import Topology, read_topics
from millbeck.wire.messages.streams_groups import (
    Endpoint,
    EndpointToPartitions,
    StreamsGroupHeartbeatTopicPartition,
)


def partitions_by_endpoint(group: StreamsGroup, topics: Topics) -> list[EndpointToPartitions]:
    topology = group.topology
    if topology is None:
        return []
    return [
        EndpointToPartitions(
            Endpoint(*member.user_endpoint),
            _partitions(member.assigned.active, topology, topics),
            _partitions(member.assigned.standby, topology, topics),
        )
        for member in group.members.values()
        if member.user_endpoint is not None
    ]


def _partitions(tasks: Tasks, topology: Topology, topics: Topics) -> list[StreamsGroupHeartbeatTopicPartition]:
    found = []
    for subtopology_id, indexes in tasks.items():
        subtopology = topology.subtopologies.get(subtopology_id)
        for name in () if subtopology is None else read_topics(subtopology):
            shape = topics.shape(name)
            # A topic that is not copartitioned with the others may have fewer partitions than there are tasks.
            partitions = [index for index in indexes if shape is not None and index < shape.partition_count]
            found.append(StreamsGroupHeartbeatTopicPartition(name, partitions))
    return found
