"""Sessions say what changed and nothing else, and start over when the broker disagrees."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millbeck.client.consumer.fetch_session import FetchSession, FetchTarget, SessionPlan
from millbeck.kernel.ids import TopicPartition

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
IDS = {"a": b"a" * 16, "b": b"b" * 16}


def target(topic: str, offset: int, **more: Any) -> FetchTarget:
    return FetchTarget(offset, 5, 1000, more.get("topic_id", IDS[topic]))


def named(plan: SessionPlan) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic.topic, entry.partition): entry.fetch_offset
        for topic in plan.topics
        for entry in topic.partitions
    }


def forgotten(plan: SessionPlan) -> set[tuple[str, bytes, int]]:
    return {(topic.topic, topic.topic_id, number) for topic in plan.forgotten for number in topic.partitions}


def opened() -> FetchSession:
    session = FetchSession()
    session.plan({A0: target("a", 1), A1: target("a", 2), B0: target("b", 3)})
    session.answered(77)
    return session


def test_the_first_request_names_everything_and_asks_for_a_session() -> None:
    plan = FetchSession().plan({A0: target("a", 1), B0: target("b", 3)})
    assert (plan.session_id, plan.session_epoch) == (0, 0)
    assert named(plan) == {A0: 1, B0: 3}
    assert plan.topics[0].topic_id == IDS["a"]
    entry = plan.topics[0].partitions[0]
    assert (entry.current_leader_epoch, entry.partition_max_bytes, entry.last_fetched_epoch) == (5, 1000, -1)


def test_later_requests_name_what_changed() -> None:
    session = opened()
    plan = session.plan({A0: target("a", 9), A1: target("a", 2), B0: target("b", 3)})
    assert (plan.session_id, plan.session_epoch) == (77, 1)
    assert named(plan) == {A0: 9}
    assert not plan.forgotten
    session.answered(77)
    assert session.plan({A0: target("a", 9), A1: target("a", 2), B0: target("b", 3)}).session_epoch == 2


def test_what_is_not_read_any_more_is_forgotten() -> None:
    session = opened()
    plan = session.plan({A0: target("a", 1)})
    assert named(plan) == {}
    assert forgotten(plan) == {("a", IDS["a"], 1), ("b", IDS["b"], 0)}


def test_a_topic_made_again_is_forgotten_under_its_old_id_and_named_under_its_new_one() -> None:
    session = opened()
    plan = session.plan({A0: target("a", 1, topic_id=b"n" * 16), A1: target("a", 2), B0: target("b", 3)})
    assert forgotten(plan) == {("a", IDS["a"], 0)}
    assert named(plan) == {A0: 1}


def test_without_a_session_everything_is_named_again() -> None:
    session = FetchSession()
    for _ in range(2):
        plan = session.plan({A0: target("a", 1)})
        assert (plan.session_id, plan.session_epoch) == (0, 0)
        assert named(plan) == {A0: 1}
        session.answered(0)


def test_a_reset_starts_over() -> None:
    session = opened()
    session.reset()
    plan = session.plan({A0: target("a", 1)})
    assert (plan.session_id, plan.session_epoch) == (0, 0)
    assert not plan.forgotten


def test_ids_and_names_are_not_mixed_in_one_session() -> None:
    session = opened()
    plan = session.plan({A0: target("a", 1, topic_id=bytes(16)), B0: target("b", 3)})
    assert not plan.uses_ids
    assert (plan.session_id, plan.session_epoch) == (0, 0)
    assert named(plan) == {A0: 1, B0: 3}


def test_epochs_wrap_to_one() -> None:
    session = opened()
    session._epoch = 0x7FFFFFFF
    session.answered(77)
    assert session.plan({A0: target("a", 1)}).session_epoch == 1


TARGETS = st.dictionaries(st.sampled_from([A0, A1, B0]), st.integers(0, 3), min_size=1)


@settings(max_examples=60)
@given(st.lists(st.tuples(TARGETS, st.sampled_from(["kept", "kept", "kept", "none", "lost"])), max_size=12))
def test_the_broker_s_view_always_becomes_the_client_s(steps: list[tuple[dict[TopicPartition, int], str]]) -> None:
    """The oracle is a broker that applies every plan to what it remembers."""
    session = FetchSession()
    remembered: dict[TopicPartition, int] = {}
    expected_epoch = 0
    for wanted, fate in steps:
        plan = session.plan({partition: target(partition.topic, offset) for partition, offset in wanted.items()})
        assert plan.session_epoch == expected_epoch
        if plan.session_id == 0:
            remembered = {}
        for topic, _, number in forgotten(plan):
            del remembered[TopicPartition(topic, number)]
        remembered |= named(plan)
        assert remembered == wanted
        if fate == "lost":
            session.reset()
        else:
            session.answered(77 if fate == "kept" else 0)
        expected_epoch = expected_epoch + 1 if fate == "kept" else 0


@pytest.mark.parametrize("granted", [0, 77])
def test_is_open(granted: int) -> None:
    session = FetchSession()
    session.plan({A0: target("a", 1)})
    session.answered(granted)
    assert session.is_open is bool(granted)
