from __future__ import annotations

import socket

import pytest

from millbeck.testing import KafkaContainer
from millbeck.testing.topics import create_topic


def test_a_node_is_there_within_the_block() -> None:
    with KafkaContainer("some/image:1").with_kraft().with_env("KAFKA_NUM_PARTITIONS", "3") as container:
        assert container.get_bootstrap_server() == (
            f"{container.get_container_host_ip()}:{container.get_exposed_port(9093)}"
        )
        create_topic(container.get_bootstrap_server(), "orders", partitions=-1)
        assert (container.broker.directory / "orders-2").is_dir()
        host, port = container.get_container_host_ip(), container.get_exposed_port(9093)
        assert container.get_logs()[0] == b""
    with pytest.raises(OSError, match="refused"):
        socket.create_connection((host, port), 5)
    with pytest.raises(RuntimeError, match="not running"):
        container.get_bootstrap_server()


def test_it_starts_again_with_the_same_cluster_id() -> None:
    container = KafkaContainer().with_cluster_id("5L6g3nShT-eMCtK--X86sw")
    for _ in range(2):
        container.start()
        meta = (container.broker.directory / "meta.properties").read_text()
        assert "cluster.id=5L6g3nShT-eMCtK--X86sw" in meta
        container.stop()


def test_listeners_are_the_node_s_own() -> None:
    with pytest.raises(ValueError, match="KAFKA_ADVERTISED_LISTENERS: the node chooses its listeners"):
        KafkaContainer().with_env("KAFKA_ADVERTISED_LISTENERS", "PLAINTEXT://example.com:9092")
