from __future__ import annotations

from collections.abc import Callable

import pytest

CASES = {
    "topic": ("topic", "list", "--zookeeper", "localhost:2181"),
    "topic in Kafka's way": ("topic", "--zookeeper", "localhost:2181", "--list"),
    "group": ("group", "list", "--zookeeper", "localhost:2181"),
    "config": ("config", "describe", "--topic", "x", "--zookeeper", "localhost:2181"),
    "produce": ("produce", "x", "--broker-list", "localhost:9092"),
    "consume": ("consume", "x", "--broker-list", "localhost:9092"),
}


@pytest.mark.parametrize("arguments", CASES.values(), ids=CASES.keys())
def test_an_old_flag_names_its_replacement(fails: Callable[..., str], arguments: tuple[str, ...]) -> None:
    message = fails(*arguments)
    assert "was removed; use --bootstrap-server" in message


def test_a_server_without_zookeeper_says_what_to_set(fails: Callable[..., str]) -> None:
    assert "process.roles" in fails("server", "--zookeeper", "localhost:2181", "--config", "any")
