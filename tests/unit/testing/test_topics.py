from __future__ import annotations

import socket
import threading

import pytest

from millbeck.kernel.errors import InvalidConfig, InvalidTopic, TopicAlreadyExists, UnknownTopicOrPartition
from millbeck.testing import Broker
from millbeck.testing.topics import create_topic, delete_topic


def test_a_topic_comes_and_goes(node: Broker) -> None:
    create_topic(node.bootstrap, "comes-and-goes", partitions=3, configs={"retention.ms": "1000"})
    with pytest.raises(TopicAlreadyExists):
        create_topic(node.bootstrap, "comes-and-goes")
    delete_topic(node.bootstrap, "comes-and-goes")
    with pytest.raises(UnknownTopicOrPartition):
        delete_topic(node.bootstrap, "comes-and-goes")


def test_what_the_node_refuses_is_raised(node: Broker) -> None:
    with pytest.raises(InvalidTopic):
        create_topic(node.bootstrap, "../x")
    with pytest.raises(InvalidConfig, match="no\\.such\\.setting"):
        create_topic(node.bootstrap, "refused", configs={"no.such.setting": "1"})


def test_a_connection_that_ends_early_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def hang_up() -> None:
            connection, _ = server.accept()
            connection.recv(10_000)
            connection.close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        with pytest.raises(ConnectionError):
            create_topic(f"127.0.0.1:{server.getsockname()[1]}", "any")
        thread.join()
