"""A node's settings as the quorum's driver takes them."""

from __future__ import annotations

from millbeck.client.addresses import Address
from millbeck.metadata.image import Endpoint
from millbeck.server.config import NodeConfig
from millbeck.server.config.roles import QuorumVoter
from millbeck.server.metadata.quorum_config import is_alone, quorum_settings
from millbeck.server.network.peer_security import NO_SECURITY

DIRECTORY = bytes(15) + b"\x07"


def test_who_is_alone() -> None:
    assert is_alone(NodeConfig({}))
    assert is_alone(NodeConfig({"node.id": "3", "controller.quorum.voters": "3@localhost:9093"}))
    assert is_alone(NodeConfig({"controller.quorum.bootstrap.servers": "localhost:9093"}))
    broker = {
        "process.roles": "broker",
        "controller.quorum.bootstrap.servers": "localhost:9093",
        "controller.listener.names": "CTL",
    }
    assert not is_alone(NodeConfig(broker))
    three = {
        "listeners": "PLAINTEXT://:9092,CTL://:9093",
        "controller.listener.names": "CTL",
        "controller.quorum.voters": "1@a:9093,2@b:9093,3@c:9093",
    }
    assert not is_alone(NodeConfig(three))


def test_every_setting_of_the_quorum_arrives() -> None:
    config = NodeConfig(
        {
            "node.id": "1",
            "listeners": "PLAINTEXT://:9092,CTL://:9093",
            "controller.listener.names": "CTL",
            "controller.quorum.voters": "1@a:9093",
            "controller.quorum.bootstrap.servers": "b:9093,[::1]:9093",
            "controller.quorum.auto.join.enable": "true",
            "controller.quorum.election.timeout.ms": "11",
            "controller.quorum.fetch.timeout.ms": "12",
            "controller.quorum.election.backoff.max.ms": "13",
            "controller.quorum.request.timeout.ms": "14",
            "controller.quorum.retry.backoff.ms": "15",
            "controller.quorum.fetch.max.bytes": "16",
            "controller.quorum.fetch.snapshot.max.bytes": "17",
        }
    )
    assert config.voters == (QuorumVoter(node_id=1, host="a", port=9093),)
    endpoint = Endpoint(listener="CTL", host="h", port=9093, security_protocol=0)
    settings = quorum_settings(
        config, cluster_id="c", directory_id=DIRECTORY, endpoints=[endpoint], security=NO_SECURITY
    )
    assert settings.can_vote
    assert (settings.cluster_id, settings.directory_id) == ("c", DIRECTORY)
    assert settings.static_voters == {1: Address("a", 9093)}
    assert settings.bootstrap_servers == (Address("b", 9093), Address("::1", 9093))
    assert [(each.name, each.host, each.port) for each in settings.listeners] == [("CTL", "h", 9093)]
    assert settings.auto_join
    times = settings.timeouts
    assert (times.election_ms, times.fetch_ms, times.election_backoff_ms_max) == (11, 12, 13)
    assert (times.request_ms, times.retry_backoff_ms) == (14, 15)
    assert (settings.fetch_bytes_max, settings.fetch_snapshot_bytes_max) == (16, 17)
    assert settings.listener_name == "CTL"


def test_a_short_patience_shortens_the_fetches_it_waits_for() -> None:
    def wait_ms(fetch_timeout_ms: int) -> int:
        config = NodeConfig({"controller.quorum.fetch.timeout.ms": str(fetch_timeout_ms)})
        settings = quorum_settings(config, cluster_id="c", directory_id=DIRECTORY, endpoints=[], security=NO_SECURITY)
        return settings.timeouts.fetch_wait_ms_max

    assert wait_ms(2000) == 500, "Kafka's"
    assert wait_ms(10_000) == 500
    assert wait_ms(1000) == 250
    assert wait_ms(1) == 0


def test_the_first_of_the_controllers_listeners_is_the_one_others_are_told_of_first() -> None:
    config = NodeConfig(
        {
            "listeners": "PLAINTEXT://:9092,OLD://:9093,NEW://:9094",
            "controller.listener.names": "NEW,OLD",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OLD:PLAINTEXT,NEW:PLAINTEXT",
            "controller.quorum.voters": "1@a:9094",
        }
    )
    endpoints = [
        Endpoint(listener=name, host="h", port=port, security_protocol=0)
        for name, port in (("OLD", 9093), ("NEW", 9094))
    ]
    settings = quorum_settings(
        config, cluster_id="c", directory_id=DIRECTORY, endpoints=endpoints, security=NO_SECURITY
    )
    assert settings.listener_name == "NEW"
    assert [each.name for each in settings.listeners] == ["NEW", "OLD"]
