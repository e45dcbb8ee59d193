"""Which replica a consumer is sent to."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from millbeck.kernel.errors import InvalidConfig
from millbeck.replication.selector import (
    LEADER_SELECTOR,
    RACK_AWARE_SELECTOR,
    RackAwareSelector,
    ReplicaSelector,
    ReplicaView,
    make_replica_selector,
)

LEADER = ReplicaView(1, "a", 10, 0, True)
NEAR = ReplicaView(2, "b", 9, 5, False)
NEARER = ReplicaView(3, "b", 10, 9, False)
QUICKER = ReplicaView(4, "b", 10, 1, False)


@pytest.mark.parametrize(
    ("rack", "replicas", "chosen"),
    [
        ("a", [LEADER, NEAR], LEADER),
        ("b", [LEADER, NEAR], NEAR),
        ("b", [LEADER, NEAR, NEARER], NEARER),
        ("b", [LEADER, NEAR, NEARER, QUICKER], QUICKER),
        ("c", [LEADER, NEAR], None),
        ("", [LEADER._replace(rack="")], None),
        ("b", [LEADER._replace(rack="b"), NEARER._replace(end_offset=99)], LEADER._replace(rack="b")),
    ],
)
def test_the_nearest_and_fullest_is_chosen(rack: str, replicas: list[ReplicaView], chosen: ReplicaView | None) -> None:
    assert RackAwareSelector().select(rack, replicas) == chosen


class Own:
    def __init__(self, choice: ReplicaView | None) -> None:
        self.choice = choice

    def select(self, rack: str, replicas: Sequence[ReplicaView]) -> ReplicaView | None:
        if rack == "broken":
            raise RuntimeError("no racks today")
        return self.choice


def never(name: str) -> ReplicaSelector:
    raise InvalidConfig(f"replica.selector.class: {name}")


def test_selectors_are_known_by_kafkas_names_in_full_and_in_short() -> None:
    failures: list[Exception] = []
    for name in (None, LEADER_SELECTOR, "LeaderSelector"):
        assert make_replica_selector(name, never, failures.append) is None
    for name in (RACK_AWARE_SELECTOR, "RackAwareReplicaSelector"):
        assert isinstance(make_replica_selector(name, never, failures.append), RackAwareSelector)
    with pytest.raises(InvalidConfig, match=r"replica\.selector\.class"):
        make_replica_selector("com.example.Mine", never, failures.append)


def test_a_selector_of_the_deployment_that_fails_leaves_consumers_with_the_leader() -> None:
    failures: list[Exception] = []
    own = make_replica_selector("Own", lambda name: Own(NEAR), failures.append)
    assert own is not None
    assert own.select("b", [LEADER, NEAR]) == NEAR
    assert not failures
    assert own.select("broken", [LEADER, NEAR]) is None
    assert own.select("b", [LEADER]) is None, "it chose what it was not offered"
    assert [type(each) for each in failures] == [RuntimeError, ValueError]
