from __future__ import annotations

import pytest

from millbeck.server.config import NodeConfig
from millbeck.server.embedded import EMBEDDED, Place, cluster_settings, embedded_settings


def test_the_settings_make_a_configuration() -> None:
    config = NodeConfig(embedded_settings("logs", host="127.0.0.1", port=9092, metrics_port=0))
    assert config.directories == ("logs",)
    assert [str(address) for address in config.client_addresses()] == ["PLAINTEXT://127.0.0.1:9092"]
    assert config.metrics.port == 0


@pytest.mark.parametrize(("host", "shown"), [("::1", "[::1]"), ("", ""), ("localhost", "localhost")])
def test_a_host_of_any_family_can_be_listened_on(host: str, shown: str) -> None:
    settings = embedded_settings("logs", host=host, port=1, metrics_port=0)
    assert settings["listeners"] == f"PLAINTEXT://{shown}:1"


def test_nothing_asks_for_a_second_replica() -> None:
    assert {value for name, value in EMBEDDED.items() if "replication.factor" in name} == {"1"}


def places(count: int) -> list[Place]:
    return [
        Place(node_id=number, directory=f"/d{number}", port=number, controller_port=100 + number, metrics_port=0)
        for number in range(1, count + 1)
    ]


def test_nodes_of_a_cluster_name_the_same_voters_and_listen_apart() -> None:
    three = places(3)
    settings = [cluster_settings(place, three, host="127.0.0.1") for place in three]
    assert len({each["controller.quorum.voters"] for each in settings}) == 1
    assert settings[1]["controller.quorum.voters"] == "1@127.0.0.1:101,2@127.0.0.1:102,3@127.0.0.1:103"
    assert len({each["listeners"] for each in settings}) == 3
    assert len({each["log.dirs"] for each in settings}) == 3


@pytest.mark.parametrize(
    ("count", "replicas", "in_sync_min"), [(1, "1", "1"), (2, "2", "1"), (3, "3", "2"), (5, "3", "2")]
)
def test_a_cluster_keeps_as_many_replicas_as_it_can_and_misses_one(count: int, replicas: str, in_sync_min: str) -> None:
    settings = cluster_settings(places(count)[0], places(count), host="::1")
    assert {value for name, value in settings.items() if "replication.factor" in name} == {replicas}
    assert {value for name, value in settings.items() if "min.i" in name} == {in_sync_min}
    assert settings["listeners"].startswith("PLAINTEXT://[::1]:1,")
