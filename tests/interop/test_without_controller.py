"""Two of three nodes are dead: what the third answers, side by side with Apache Kafka in the same shape.

The requests are those of `millbeck.simulation.workloads.without_controller`; the table of both systems is printed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from millbeck.host import real_environment
from millbeck.simulation.workloads.outage_requests import AT_ONCE_S
from millbeck.simulation.workloads.without_controller import ResponseTimes, WithoutController
from tests.interop.cluster import Cluster

SLACK_S = 2.0
"""What a busy machine may add to a time limit."""
SETTINGS = {
    "offsets.topic.num.partitions": "6",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.state.log.num.partitions": "6",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "share.coordinator.state.topic.num.partitions": "6",
}


class _ThreeNodes:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.addresses = {node_id: ("127.0.0.1", port) for node_id, port in cluster.ports.items()}

    def kill(self, node_id: int) -> None:
        self._cluster.nodes[node_id].kill()

    def start(self, node_id: int) -> None:
        self._cluster.nodes[node_id].start(wait=False)


def findings_of(system: str, directory: Path, *, survivor_is_controller: bool) -> dict[str, ResponseTimes]:
    with Cluster(system, directory, overrides=SETTINGS) as cluster:
        asking = WithoutController(
            real_environment(), _ThreeNodes(cluster), survivor_is_controller=survivor_is_controller
        )
        return asyncio.run(asking.run())


def table(mine: Mapping[str, ResponseTimes], theirs: Mapping[str, ResponseTimes]) -> str:
    lines = [f"{'':44}{'millbeck':>20}{'Apache Kafka':>24}"]
    for name, one in mine.items():
        other = theirs[name]
        lines.append(f"{name:44}{_cell(one):>20}{_cell(other):>24}")
    return "\n".join(lines)


def _cell(finding: ResponseTimes) -> str:
    return f"{','.join(map(str, finding.codes))} in {finding.seconds:.2f} s"


@pytest.mark.timeout(400)
@pytest.mark.parametrize("survivor_is_controller", [False, True], ids=["follower", "active-controller"])
def test_without_a_controller_the_codes_are_kafkas(tmp_path: Path, survivor_is_controller: bool) -> None:
    mine, theirs = (
        findings_of(system, tmp_path / system, survivor_is_controller=survivor_is_controller)
        for system in ("millbeck", "apache-kafka")
    )
    print(table(mine, theirs))
    assert {name: each.codes for name, each in mine.items()} == {name: each.codes for name, each in theirs.items()}
    for each in mine.values():
        assert each.seconds <= each.limit_s + (SLACK_S if each.limit_s > AT_ONCE_S else 0), each
        assert each.behind_seconds - each.seconds < 1, each
