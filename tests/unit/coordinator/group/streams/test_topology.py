from __future__ import annotations

import pytest

from millbeck.coordinator.group.streams.topology import Topology, check_topology, named_topics
from millbeck.kernel.errors import StreamsInvalidTopology
from millbeck.wire.messages.streams_groups import CopartitionGroup, Subtopology, TopicInfo
from millbeck.wire.messages.streams_groups import Topology as SentTopology

SENT = SentTopology(
    2,
    [
        Subtopology("1", ["u"], state_changelog_topics=[TopicInfo("c")], repartition_source_topics=[TopicInfo("r", 3)]),
        Subtopology("0", ["t"], repartition_sink_topics=["r"]),
    ],
)


def test_each_topic_has_the_subtopology_that_reads_it() -> None:
    topology = Topology.from_wire(SENT)
    assert topology.readers == {"t": "0", "u": "1", "r": "1"}
    assert topology.required_topics == {"t", "u", "r", "c"}
    assert list(named_topics(SENT.subtopologies)) == ["u", "r", "c", "t"]


def test_a_topology_is_the_same_after_it_was_stored() -> None:
    topology = Topology.from_wire(SENT)
    assert Topology.from_wire(topology.record_value()) == topology


def test_a_sound_topology_passes() -> None:
    check_topology(SENT)


WRONG = {
    "negative epoch": SentTopology(-1, []),
    "one id twice": SentTopology(0, [Subtopology("0", ["t"]), Subtopology("0", ["u"])]),
    "no source": SentTopology(0, [Subtopology("0", [])]),
    "a changelog with a count": SentTopology(0, [Subtopology("0", ["t"], state_changelog_topics=[TopicInfo("c", 2)])]),
    "a negative count": SentTopology(0, [Subtopology("0", ["t"], repartition_source_topics=[TopicInfo("r", -2)])]),
    "an index out of range": SentTopology(
        0, [Subtopology("0", ["t"], copartition_groups=[CopartitionGroup(source_topics=[1])])]
    ),
    "a negative index": SentTopology(
        0, [Subtopology("0", ["t"], copartition_groups=[CopartitionGroup(repartition_source_topics=[-1])])]
    ),
}


@pytest.mark.parametrize("topology", WRONG.values(), ids=WRONG)
def test_a_topology_that_is_wrong_in_itself_is_refused(topology: SentTopology) -> None:
    with pytest.raises(StreamsInvalidTopology):
        check_topology(topology)
