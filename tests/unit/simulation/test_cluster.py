"""The members of a simulated cluster, and their settings."""

from __future__ import annotations

import pytest

from millbeck.server.config import NodeConfig
from millbeck.simulation.cluster import SimCluster, members, settings_of


@pytest.mark.parametrize(("is_combined", "count"), [(True, 3), (False, 6)])
def test_every_member_has_a_configuration_of_its_own(is_combined: bool, count: int) -> None:
    everybody = members(is_combined)
    configs = [NodeConfig(settings_of(each, everybody)) for each in everybody]
    assert len({config.node.node_id for config in configs}) == count
    assert sum(config.is_controller for config in configs) == 3
    assert sum(config.is_broker for config in configs) == 3
    assert len({config.voters for config in configs}) == 1


def test_members_are_found_by_number_and_nothing_runs_before_it_is_started() -> None:
    cluster = SimCluster(1, is_combined=False)
    assert [each.name for each in cluster.controllers] == ["c1", "c2", "c3"]
    assert cluster.addresses == [("b4", 9092), ("b5", 9092), ("b6", 9092)]
    assert cluster.member(5).name == "b5"
    assert cluster.running() == []
    assert cluster.active_controller() is None
    assert cluster.leader_of("t", 0) is None
    assert cluster.unexpected_errors() == {}
    cluster.world.close()
