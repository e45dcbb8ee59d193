"""Compares a topology with the existing topics: derives the number of tasks, and the missing internal topics.

Partition counts are derived as in Kafka. A repartition topic has the partition count that the application requests, or
else that of the largest topic read by a subtopology that writes to it; copartitioned topics have the same count. A
changelog topic has as many partitions as its subtopology has tasks, which is the count of the largest topic that the
subtopology reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, Protocol

from millbeck.coordinator.group.streams.topology import Topology, read_topics
from millbeck.kernel import errors
from millbeck.wire.messages.streams_groups import CopartitionGroup, Status, Subtopology, TopicInfo

NAMES_SHOWN_MAX: Final = 3
DEFAULT_REPLICATION: Final = -1


class StatusCode(IntEnum):
    """The status codes in heartbeat responses."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5

    def with_detail(self, detail: str) -> Status:
        return Status(int(self), detail)


class TopicShape(Protocol):
    @property
    def partition_count(self) -> int: ...


class Topics(Protocol):
    """The existing topics."""

    def shape(self, name: str) -> TopicShape | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """An internal topic to create."""

    partition_count: int
    replication_factor: int = DEFAULT_REPLICATION
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ConfiguredTopology:
    """A topology configured with the existing topics."""

    partition_counts: Mapping[str, int] = field(default_factory=dict)
    """The derived counts of repartition and changelog topics."""
    task_counts: Mapping[str, int] = field(default_factory=dict)
    """The number of tasks by subtopology, ascending; empty when source topics are missing or do not fit."""
    missing: Mapping[str, NewTopic] = field(default_factory=dict)
    """Internal topics that do not exist yet."""
    problem: Status | None = None
    """The reason why the topology cannot run yet."""

    @property
    def is_ready(self) -> bool:
        return self.problem is None


class _Unfit(Exception):
    """Existing topics do not match the topology."""


def configure(topology: Topology, topics: Topics) -> ConfiguredTopology:
    """Derive the partition counts; raises `StreamsInvalidTopology` if they cannot be derived whatever topics exist."""
    sources = {name for each in topology.subtopologies.values() for name in each.source_topics}
    absent = sorted(name for name in sources if topics.shape(name) is None)
    if absent:
        text = f"Source topics {_summary(absent)} are missing."
        return ConfiguredTopology(problem=StatusCode.MISSING_SOURCE_TOPICS.with_detail(text))
    try:
        counts = _Counts(topology, topics)
        missing = _missing_topics(topology, topics, counts.decided)
    except _Unfit as error:
        return ConfiguredTopology(problem=StatusCode.INCORRECTLY_PARTITIONED_TOPICS.with_detail(str(error)))
    problem = None
    if missing:
        text = f"Internal topics are missing: {_summary(list(missing))}"
        problem = StatusCode.MISSING_INTERNAL_TOPICS.with_detail(text)
    tasks = {name: counts.task_count(each) for name, each in topology.subtopologies.items()}
    return ConfiguredTopology(counts.decided, tasks, missing, problem)


class _Counts:
    """Derives the partition counts of internal topics; raises `_Unfit`."""

    def __init__(self, topology: Topology, topics: Topics) -> None:
        self._topics = topics
        # In the order of the numbers that Kafka Streams uses as ids: a later subtopology reads what an earlier writes.
        self._subtopologies = [
            topology.subtopologies[name] for name in sorted(topology.subtopologies, key=lambda name: (len(name), name))
        ]
        self._repartitions = {
            info.name: info for each in self._subtopologies for info in each.repartition_source_topics
        }
        self._is_any_fixed = any(info.partitions for info in self._repartitions.values())
        self.decided = self._repartition_counts()
        for each in self._subtopologies:
            for group in each.copartition_groups:
                self._copartition(_names_of(group, each))
        for each in self._subtopologies:
            self.decided |= dict.fromkeys([info.name for info in each.state_changelog_topics], self.task_count(each))

    def count_of(self, name: str) -> int:
        """The partition count of an existing topic, or else the derived one."""
        shape = self._topics.shape(name)
        return self.decided[name] if shape is None else shape.partition_count

    def task_count(self, subtopology: Subtopology) -> int:
        return max(self.count_of(name) for name in read_topics(subtopology))

    def _repartition_counts(self) -> dict[str, int]:
        found = {info.name: info.partitions for info in self._repartitions.values() if info.partitions}
        waiting = [(name, each) for each in self._subtopologies for name in each.repartition_sink_topics]
        while waiting:
            left = []
            for name, writer in waiting:
                if name in found:
                    continue
                count = self._largest_read(writer, found)
                if count:
                    found[name] = count
                else:
                    left.append((name, writer))
            if len(left) == len(waiting):
                raise errors.StreamsInvalidTopology(
                    "Failed to compute number of partitions for all repartition topics. There may be loops in the "
                    "topology that cannot be resolved."
                )
            waiting = left
        if any(name not in found for name in self._repartitions):
            raise errors.StreamsInvalidTopology(
                "Failed to compute number of partitions for all repartition topics, because a repartition source topic "
                "is never used as a sink topic."
            )
        return found

    def _largest_read(self, writer: Subtopology, found: Mapping[str, int]) -> int:
        """The largest known partition count of the topics that a subtopology reads."""
        counts = [found.get(info.name, 0) for info in writer.repartition_source_topics]
        shapes = [self._topics.shape(name) for name in writer.source_topics]
        return max([*counts, *(shape.partition_count for shape in shapes if shape is not None)], default=0)

    def _copartition(self, names: list[str]) -> None:
        internal = {name: self.count_of(name) for name in names if name in self._repartitions}
        external = {name: self.count_of(name) for name in names if name not in internal}
        if not names:
            return
        if external:
            count = _same_count(external, external)
        elif self._is_any_fixed:
            # As in Kafka, all fixed topics of the topology count here, not only those of this group.
            fixed = {name: self.count_of(name) for name, info in self._repartitions.items() if info.partitions}
            count = _same_count(fixed, internal)
        else:
            count = max(internal.values())
        for name, own in internal.items():
            if self._repartitions[name].partitions and own != count:
                raise _Unfit(
                    f"Number of partitions [{own}] of repartition topic [{name}] doesn't match number of partitions "
                    f"[{count}] of the source topic."
                )
            self.decided[name] = count


def _same_count(counts: Mapping[str, int], shown: Mapping[str, int]) -> int:
    found = set(counts.values())
    if len(found) > 1:
        text = ", ".join(f"{name}={count}" for name, count in sorted(shown.items()))
        raise _Unfit(f"Following topics do not have the same number of partitions: [{{{text}}}]")
    return found.pop()


def _names_of(group: CopartitionGroup, subtopology: Subtopology) -> list[str]:
    sources = [subtopology.source_topics[index] for index in group.source_topics]
    return sources + [subtopology.repartition_source_topics[index].name for index in group.repartition_source_topics]


def _missing_topics(topology: Topology, topics: Topics, decided: Mapping[str, int]) -> dict[str, NewTopic]:
    missing: dict[str, NewTopic] = {}
    for subtopology in topology.subtopologies.values():
        for info in (*subtopology.repartition_source_topics, *subtopology.state_changelog_topics):
            count = info.partitions or decided[info.name]
            shape = topics.shape(info.name)
            if shape is None:
                missing[info.name] = _new_topic(info, count)
            elif shape.partition_count != count:
                raise _Unfit(
                    f"Existing topic {info.name} has different number of partitions: expected {count}, found "
                    f"{shape.partition_count}"
                )
    return missing


def _new_topic(info: TopicInfo, count: int) -> NewTopic:
    return NewTopic(
        partition_count=count,
        replication_factor=info.replication_factor or DEFAULT_REPLICATION,
        options={each.key: each.value for each in info.topic_configs},
    )


def _summary(names: Iterable[str]) -> str:
    found = list(names)
    more = len(found) - NAMES_SHOWN_MAX
    text = ", ".join(found[:NAMES_SHOWN_MAX])
    return f"{text} and {more} additional topics" if more > 0 else text
