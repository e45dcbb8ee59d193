"""Which replica a consumer is sent to."""

from __future__ import annotations

import pytest

from millbeck.kernel.errors import InvalidConfig
from millbeck.replication.selector import (
    LEADER_SELECTOR,
    RACK_AWARE_SELECTOR,
    RackAwareSelector,
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


def test_selectors_are_known_by_kafkas_names() -> None:
    assert make_replica_selector(None) is None
    assert make_replica_selector(LEADER_SELECTOR) is None
    assert isinstance(make_replica_selector(RACK_AWARE_SELECTOR), RackAwareSelector)
    with pytest.raises(InvalidConfig, match=r"replica\.selector\.class"):
        make_replica_selector("com.example.Mine")
