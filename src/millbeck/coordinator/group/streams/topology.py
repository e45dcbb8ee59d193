"""The topology of a Kafka Streams application, as the first member of a group has sent it.

A subtopology reads source topics and repartition topics, which other subtopologies write, and stores its state in
changelog topics. Repartition and changelog topics are created by the coordinator (`internal_topics`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from millbeck.coordinator.group.streams.records import StreamsGroupTopologyValue
from millbeck.kernel import errors
from millbeck.wire.messages.streams_groups import DescribedSubtopology, Subtopology


class TopologyLike(Protocol):
    """Structural type of the topology in the heartbeat and in the record."""

    epoch: int
    subtopologies: list[Subtopology]


@dataclass(frozen=True)
class Topology:
    """A topology. Immutable: the subtopologies are those of the message, which are never changed."""

    epoch: int
    subtopologies: Mapping[str, Subtopology]
    """The subtopologies by id, ascending."""

    @classmethod
    def from_wire(cls, topology: TopologyLike) -> Topology:
        found = {each.subtopology_id: each for each in topology.subtopologies}
        return cls(topology.epoch, {name: found[name] for name in sorted(found)})

    def record_value(self) -> StreamsGroupTopologyValue:
        return StreamsGroupTopologyValue(self.epoch, list(self.subtopologies.values()))

    @cached_property
    def readers(self) -> Mapping[str, str]:
        """The id of the subtopology that reads each source and repartition topic."""
        return {topic: name for name, each in self.subtopologies.items() for topic in read_topics(each)}

    @cached_property
    def required_topics(self) -> frozenset[str]:
        """The topics that the application needs: it can run only if all of them exist."""
        changelogs = (info.name for each in self.subtopologies.values() for info in each.state_changelog_topics)
        return frozenset([*self.readers, *changelogs])


def read_topics(subtopology: Subtopology) -> Iterator[str]:
    """The source topics and the repartition topics that a subtopology reads."""
    yield from subtopology.source_topics
    for info in subtopology.repartition_source_topics:
        yield info.name


def named_topics(subtopologies: Iterable[Subtopology | DescribedSubtopology]) -> dict[str, None]:
    """Every topic in the subtopologies, each once."""
    found: dict[str, None] = {}
    for each in subtopologies:
        infos = (*each.repartition_source_topics, *each.state_changelog_topics)
        found |= dict.fromkeys([*each.source_topics, *each.repartition_sink_topics, *(info.name for info in infos)])
    return found


def check_topology(topology: TopologyLike) -> None:
    """Raise `StreamsInvalidTopology` for a topology that is invalid whatever topics exist."""
    if topology.epoch < 0:
        raise errors.StreamsInvalidTopology(f"The topology epoch is {topology.epoch}, but it must not be negative.")
    names = [each.subtopology_id for each in topology.subtopologies]
    if len(set(names)) < len(names):
        raise errors.StreamsInvalidTopology("Two subtopologies have the same id.")
    for each in topology.subtopologies:
        _check_subtopology(each)


def _check_subtopology(subtopology: Subtopology) -> None:
    name = subtopology.subtopology_id
    if next(read_topics(subtopology), None) is None:
        raise errors.StreamsInvalidTopology(f"No source topics found for subtopology {name}")
    for info in subtopology.state_changelog_topics:
        if info.partitions != 0:
            raise errors.StreamsInvalidTopology(
                f"Changelog topic {info.name} must have an undefined partition count, but it is set to "
                f"{info.partitions}."
            )
    for info in subtopology.repartition_source_topics:
        if info.partitions < 0:
            raise errors.StreamsInvalidTopology(
                f"Repartition topic {info.name} has {info.partitions} partitions, but it must have at least 1, "
                "or 0 to let the coordinator decide."
            )
    for group in subtopology.copartition_groups:
        for indexes, topics in (
            (group.source_topics, subtopology.source_topics),
            (group.repartition_source_topics, subtopology.repartition_source_topics),
        ):
            if any(not 0 <= index < len(topics) for index in indexes):
                raise errors.StreamsInvalidTopology(
                    f"A copartition group of subtopology {name} has an index without a topic."
                )
