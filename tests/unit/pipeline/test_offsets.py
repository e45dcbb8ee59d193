"""Offsets in a checkpoint: they come back, equal ones are equal texts, and incarnations are told apart."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millbeck.kernel.ids import TopicPartition
from millbeck.pipeline.errors import PipelineError
from millbeck.pipeline.offsets import IDS_KEY, Offsets

ID = bytes(range(16))
PARTITIONS = st.builds(TopicPartition, st.sampled_from(["a", "b", "a.b"]), st.integers(0, 20))


@given(st.dictionaries(PARTITIONS, st.integers(0, 2**62)), st.dictionaries(st.sampled_from(["a", "b"]), st.just(ID)))
def test_they_come_back(by_partition: dict[TopicPartition, int], ids: dict[str, bytes]) -> None:
    offsets = Offsets(by_partition, ids)
    text = json.dumps(offsets.to_json())
    assert Offsets.from_json(json.loads(text)) == offsets
    backwards = Offsets(dict(reversed(by_partition.items())), dict(reversed(ids.items())))
    assert json.dumps(backwards.to_json()) == text


def test_the_shape_is_that_of_sparks_source() -> None:
    offsets = Offsets({TopicPartition("a", 10): 7, TopicPartition("a", 2): 5}, {})
    assert offsets.to_json() == {"a": {"2": 5, "10": 7}}
    assert offsets.topics == ["a"]
    assert list(offsets) == [TopicPartition("a", 2), TopicPartition("a", 10)]
    assert len(offsets) == 2
    assert offsets.get(TopicPartition("a", 3)) is None


def test_incarnations() -> None:
    offsets = Offsets({TopicPartition("a", 0): 1}, {"a": ID})
    assert offsets.same_topic("a", ID)
    assert not offsets.same_topic("a", bytes(15) + b"x")
    assert offsets.same_topic("a", None)
    assert offsets.same_topic("b", ID)


@pytest.mark.parametrize("found", [{"a": 5}, {"a": {"x": 1}}, {"a": {"0": "y"}}, {IDS_KEY: {"a": "short"}}])
def test_anything_else_is_refused(found: dict[str, object]) -> None:
    with pytest.raises(PipelineError, match="not offsets of this source"):
        Offsets.from_json(found)
