from __future__ import annotations

import pytest

from millbeck.server.config import NodeConfig
from millbeck.server.embedded import EMBEDDED, embedded_settings


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
