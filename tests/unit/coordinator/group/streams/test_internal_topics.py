"""The partition counts of internal topics, and what is said of topics that are missing or do not fit."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from millbeck.coordinator.group.streams.internal_topics import ConfiguredTopology, StatusCode, configure
from millbeck.coordinator.group.streams.topology import Topology
from millbeck.kernel.errors import StreamsInvalidTopology
from millbeck.wire.messages.streams_groups import CopartitionGroup, KeyValue, Subtopology, TopicInfo


class Shape(NamedTuple):
    partition_count: int


class Existing:
    def __init__(self, **counts: int) -> None:
        self._counts = counts

    def shape(self, name: str) -> Shape | None:
        count = self._counts.get(name)
        return None if count is None else Shape(count)


def configured(subtopologies: list[Subtopology], **topics: int) -> ConfiguredTopology:
    topology = Topology(0, {each.subtopology_id: each for each in subtopologies})
    return configure(topology, Existing(**topics))


def problem(subtopologies: list[Subtopology], **topics: int) -> tuple[int, str]:
    found = configured(subtopologies, **topics).problem
    assert found is not None
    return found.status_code, found.status_detail


COUNTING = [
    Subtopology("0", ["lines"], repartition_sink_topics=["words"]),
    Subtopology("1", [], repartition_source_topics=[TopicInfo("words")], state_changelog_topics=[TopicInfo("counts")]),
]


def test_a_repartition_topic_is_as_large_as_what_its_writer_reads_and_a_changelog_as_its_subtopology() -> None:
    found = configured(COUNTING, lines=3)
    assert found.partition_counts == {"words": 3, "counts": 3}
    assert found.task_counts == {"0": 3, "1": 3}
    assert {name: topic.partition_count for name, topic in found.missing.items()} == {"words": 3, "counts": 3}
    assert problem(COUNTING, lines=3) == (
        StatusCode.MISSING_INTERNAL_TOPICS,
        "Internal topics are missing: words, counts",
    )


def test_when_all_topics_are_there_it_is_ready() -> None:
    found = configured(COUNTING, lines=3, words=3, counts=3)
    assert (found.is_ready, found.missing) == (True, {})


def test_a_count_that_the_application_asks_for_is_kept() -> None:
    fixed = [COUNTING[0], Subtopology("1", [], repartition_source_topics=[TopicInfo("words", 7)])]
    assert configured(fixed, lines=3).task_counts == {"0": 3, "1": 7}


def test_the_options_of_a_topic_are_those_of_the_application() -> None:
    info = TopicInfo("c", 0, 2, [KeyValue("cleanup.policy", "compact")])
    found = configured([Subtopology("0", ["t"], state_changelog_topics=[info])], t=1)
    topic = found.missing["c"]
    assert (topic.replication_factor, topic.options) == (2, {"cleanup.policy": "compact"})
    assert configured(COUNTING, lines=1).missing["words"].replication_factor == -1


def test_counts_go_through_chains_of_repartition_topics_whatever_their_order() -> None:
    chain = [
        Subtopology("0", [], repartition_source_topics=[TopicInfo("b")]),
        Subtopology("1", [], repartition_sink_topics=["b"], repartition_source_topics=[TopicInfo("a")]),
        Subtopology("2", ["t"], repartition_sink_topics=["a"]),
    ]
    assert configured(chain, t=5).partition_counts == {"a": 5, "b": 5}


def test_the_largest_source_decides() -> None:
    assert configured([Subtopology("0", ["t", "u"])], t=2, u=6).task_counts == {"0": 6}


def test_copartitioned_repartition_topics_are_as_large_as_the_source_topic() -> None:
    join = Subtopology(
        "1",
        ["users"],
        repartition_source_topics=[TopicInfo("words")],
        copartition_groups=[CopartitionGroup(source_topics=[0], repartition_source_topics=[0])],
    )
    found = configured([COUNTING[0], join], lines=2, users=6)
    assert found.partition_counts["words"] == 6


def test_copartitioned_repartition_topics_get_the_largest_count_among_them() -> None:
    join = Subtopology(
        "2",
        [],
        repartition_source_topics=[TopicInfo("a"), TopicInfo("b")],
        copartition_groups=[CopartitionGroup(repartition_source_topics=[0, 1])],
    )
    writers = [
        Subtopology("0", ["t"], repartition_sink_topics=["a"]),
        Subtopology("1", ["u"], repartition_sink_topics=["b"]),
    ]
    assert configured([*writers, join], t=2, u=6).partition_counts == {"a": 6, "b": 6}
    join.repartition_source_topics = [TopicInfo("a", 4), TopicInfo("b")]
    assert configured([*writers, join], t=2, u=6).partition_counts == {"a": 4, "b": 4}
    join.repartition_source_topics = [TopicInfo("a", 4), TopicInfo("b", 5)]
    assert problem([*writers, join], t=2, u=6) == (
        StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
        "Following topics do not have the same number of partitions: [{a=4, b=5}]",
    )


def test_copartitioned_source_topics_must_be_equal() -> None:
    join = Subtopology("0", ["t", "u"], copartition_groups=[CopartitionGroup(source_topics=[0, 1])])
    assert configured([join], t=2, u=2).is_ready
    assert problem([join], t=2, u=3) == (
        StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
        "Following topics do not have the same number of partitions: [{t=2, u=3}]",
    )


def test_a_fixed_count_must_be_that_of_the_copartitioned_source() -> None:
    join = Subtopology(
        "1",
        ["users"],
        repartition_source_topics=[TopicInfo("words", 3)],
        copartition_groups=[CopartitionGroup(source_topics=[0], repartition_source_topics=[0])],
    )
    assert problem([COUNTING[0], join], lines=2, users=6) == (
        StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
        "Number of partitions [3] of repartition topic [words] doesn't match number of partitions [6] of the source "
        "topic.",
    )


def test_missing_source_topics_are_named() -> None:
    assert problem(COUNTING) == (StatusCode.MISSING_SOURCE_TOPICS, "Source topics lines are missing.")
    many = [Subtopology("0", ["e", "d", "c", "b", "a"])]
    assert problem(many, e=1)[1] == "Source topics a, b, c and 1 additional topics are missing."


def test_an_internal_topic_of_another_size_does_not_fit() -> None:
    assert problem(COUNTING, lines=3, words=3, counts=2) == (
        StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
        "Existing topic counts has different number of partitions: expected 3, found 2",
    )


INVALID = {
    "a loop": [
        Subtopology("0", [], repartition_sink_topics=["a"], repartition_source_topics=[TopicInfo("b")]),
        Subtopology("1", [], repartition_sink_topics=["b"], repartition_source_topics=[TopicInfo("a")]),
    ],
    "a repartition topic that nobody writes": [
        Subtopology("0", ["t"]),
        Subtopology("1", [], repartition_source_topics=[TopicInfo("a")]),
    ],
}


@pytest.mark.parametrize("subtopologies", INVALID.values(), ids=INVALID)
def test_counts_that_cannot_be_derived_are_an_error(subtopologies: list[Subtopology]) -> None:
    with pytest.raises(StreamsInvalidTopology):
        configured(subtopologies, t=1)
