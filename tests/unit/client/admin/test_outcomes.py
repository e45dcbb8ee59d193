"""Items succeed and fail apart from each other, and are asked for again while that may help."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from millbeck.client.admin import AdminConfig
from millbeck.client.admin.outcomes import Outcomes, for_each
from millbeck.client.cluster import Cluster
from millbeck.client.errors import ClientClosed, Disconnected
from millbeck.client.retry import Deadline
from millbeck.kernel.errors import (
    NotController,
    NotLeaderOrFollower,
    TopicAlreadyExists,
    UnknownServerError,
    UnknownTopicOrPartition,
)
from tests.unit.client.fake_cluster import FakeCluster, simulate


def test_reading_a_failed_item_raises_its_error() -> None:
    outcomes: Outcomes[str, int] = Outcomes({"a": 1, "b": TopicAlreadyExists("b is there")})
    assert outcomes["a"] == 1
    with pytest.raises(TopicAlreadyExists, match="b is there"):
        outcomes["b"]
    with pytest.raises(KeyError):
        outcomes["c"]
    with pytest.raises(TopicAlreadyExists):
        outcomes.all()
    assert (list(outcomes), len(outcomes)) == (["a", "b"], 2)
    assert Outcomes({"a": 1}).all() == {"a": 1}
    assert "b is there" in repr(outcomes)


def run(attempts: list[Mapping[str, Any] | Exception], items: str = "ab", timeout_s: float = 5) -> Any:
    asked: list[list[str]] = []

    async def scenario(fake: FakeCluster) -> Any:
        cluster = Cluster(fake.environment, AdminConfig.parse({"bootstrap.servers": fake.bootstrap}))

        async def attempt(pending: list[str], deadline: Deadline) -> Mapping[str, Any]:
            asked.append(pending)
            answer = attempts[min(len(asked), len(attempts)) - 1]
            if isinstance(answer, Exception):
                raise answer
            return answer

        outcomes = await for_each(cluster, items, attempt, timeout_s=timeout_s)
        await cluster.close()
        return outcomes, asked

    return simulate(scenario)


def test_only_items_whose_error_passes_are_asked_for_again() -> None:
    outcomes, asked = run([{"a": 1, "b": NotController()}, {"b": NotLeaderOrFollower()}, {"b": 2}])
    assert outcomes.all() == {"a": 1, "b": 2}
    assert asked == [["a", "b"], ["b"], ["b"]]


def test_an_unknown_topic_is_an_answer() -> None:
    outcomes, asked = run([{"a": 1, "b": UnknownTopicOrPartition()}])
    assert list(outcomes.failed) == ["b"]
    assert len(asked) == 1


def test_the_last_error_stays_when_time_is_up() -> None:
    outcomes, asked = run([{"a": 1, "b": NotController()}])
    assert isinstance(outcomes.failed["b"], NotController)
    assert outcomes["a"] == 1
    assert len(asked) > 3


def test_a_closed_client_is_not_asked_again() -> None:
    outcomes, asked = run([{"a": 1, "b": ClientClosed()}])
    assert isinstance(outcomes.failed["b"], ClientClosed)
    assert len(asked) == 1


def test_an_item_nobody_answered_for_is_an_error() -> None:
    outcomes, _ = run([{"a": 1}])
    assert isinstance(outcomes.failed["b"], UnknownServerError)


def test_what_fails_as_a_whole_is_tried_again_and_then_raised() -> None:
    outcomes, asked = run([Disconnected("gone"), {"a": 1, "b": 2}])
    assert outcomes.all() == {"a": 1, "b": 2}
    assert len(asked) == 2
    with pytest.raises(Disconnected):
        run([Disconnected("gone")], timeout_s=1)


def test_results_come_in_the_order_of_the_items() -> None:
    outcomes, _ = run([{"b": 2, "a": 1}], items="aba")
    assert list(outcomes) == ["a", "b"]


def test_nothing_to_do_asks_nobody() -> None:
    outcomes, asked = run([{}], items="")
    assert len(outcomes) == 0
    assert asked == []
