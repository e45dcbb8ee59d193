from __future__ import annotations

import textwrap

import pytest

pytest_plugins = ["pytester"]

CLIENT = """
import socket
import pytest
from millbeck.testing.topics import create_topic, delete_topic
from millbeck.kernel.errors import TopicAlreadyExists

def reach(address):
    host, port = address.split(":")
    socket.create_connection((host, int(port)), 5).close()
"""


def run(pytester: pytest.Pytester, tests: str, *arguments: str, conftest: str = "") -> pytest.RunResult:
    pytester.makeini("[pytest]\n")
    pytester.makeconftest(conftest)
    pytester.makepyfile(CLIENT + textwrap.dedent(tests))
    return pytester.runpytest_subprocess("--strict-markers", *arguments)


def test_a_session_has_one_node_and_each_test_its_topic(pytester: pytest.Pytester) -> None:
    tests = """
    names = []
    addresses = []

    @pytest.mark.parametrize("value", ["a/b", "c"])
    def test_topic(kafka, kafka_topic, value):
        reach(kafka)
        with pytest.raises(TopicAlreadyExists):
            create_topic(kafka, kafka_topic)
        names.append(kafka_topic)
        addresses.append(kafka)

    def test_they_differ_and_are_gone(kafka):
        assert len(set(names)) == 2 and len(set(addresses)) == 1
        for name in names:
            create_topic(kafka, name)

    @pytest.mark.kafka_topic(partitions=3, retention_ms=1000)
    def test_the_marker_shapes_it(kafka_topic, kafka_broker):
        assert (kafka_broker.directory / f"{kafka_topic}-2").is_dir()

    def test_deleting_it_oneself_is_fine(kafka, kafka_topic):
        delete_topic(kafka, kafka_topic)
    """
    run(pytester, tests).assert_outcomes(passed=5)


def test_settings_come_from_the_conftest(pytester: pytest.Pytester) -> None:
    conftest = """
    import pytest

    @pytest.fixture(scope="session")
    def kafka_settings():
        return {"delete.topic.enable": False}
    """
    tests = """
    def test_setting(kafka):
        create_topic(kafka, "stays")
        with pytest.raises(Exception, match="disabled|delete"):
            delete_topic(kafka, "stays")
    """
    run(pytester, tests, conftest=textwrap.dedent(conftest)).assert_outcomes(passed=1)


def test_a_test_may_end_the_node(pytester: pytest.Pytester) -> None:
    tests = """
    def test_stop(kafka_broker, kafka_topic):
        kafka_broker.stop()

    def test_the_next_one_starts_it(kafka_broker):
        kafka_broker.start()
        reach(kafka_broker.bootstrap)
    """
    run(pytester, tests).assert_outcomes(passed=2)


def test_every_worker_has_a_node_of_its_own(pytester: pytest.Pytester) -> None:
    tests = """
    import pathlib

    @pytest.mark.parametrize("number", range(2))
    def test_address(kafka, number, worker_id):
        reach(kafka)
        (pathlib.Path(__file__).parent / f"address-{worker_id}").write_text(kafka)
    """
    run(pytester, tests, "-n", "2", "--dist", "each").assert_outcomes(passed=4)
    addresses = {path.read_text() for path in pytester.path.glob("address-*")}
    assert len(addresses) == 2


def test_no_node_is_started_unless_asked_for(pytester: pytest.Pytester) -> None:
    tests = """
    import sys

    def test_nothing_is_loaded():
        assert "millbeck.testing.broker_process" not in sys.modules
        assert "millbeck.server" not in sys.modules
    """
    pytester.makeini("[pytest]\n")
    pytester.makepyfile(textwrap.dedent(tests))
    pytester.runpytest_subprocess().assert_outcomes(passed=1)


def test_the_nodes_of_a_cluster_can_be_killed(pytester: pytest.Pytester) -> None:
    conftest = """
    import pytest
    from millbeck.server.local.embedded import FAST_FAILOVER

    @pytest.fixture(scope="session")
    def kafka_settings():
        return FAST_FAILOVER
    """
    tests = """
    def test_kill(kafka_cluster):
        kafka_cluster.node(2).kill()
        create_topic(kafka_cluster.node(1).bootstrap, "orders")

    def test_the_next_one_starts_it(kafka_cluster):
        kafka_cluster.start()
        assert [reach(node.bootstrap) for node in kafka_cluster.nodes] == [None] * 3
    """
    run(pytester, tests, conftest=textwrap.dedent(conftest)).assert_outcomes(passed=2)
