"""Where the nodes of a cluster for tests are; tests/e2e starts them."""

from __future__ import annotations

from pathlib import Path

from millbeck.server.config import NodeConfig
from millbeck.testing import Cluster


def test_nodes_have_ports_and_directories_of_their_own_and_one_cluster_id(tmp_path: Path) -> None:
    cluster = Cluster({"num.partitions": "4"}, nodes=3, directory=tmp_path)
    assert len(set(cluster.bootstrap.split(","))) == 3
    assert [node.directory for node in cluster.nodes] == [tmp_path / f"node-{number}" for number in (1, 2, 3)]
    assert len({node.cluster_id for node in cluster.nodes}) == 1
    for number, node in enumerate(cluster.nodes, 1):
        config = NodeConfig(node.settings)
        assert (config.node.node_id, config.topic_defaults.num_partitions) == (number, 4)
        assert config.client_addresses()[0].port == node.port
        assert cluster.node(number) is node
        assert not node.is_running
        node.close()
