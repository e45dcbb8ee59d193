"""The demo's command line; its parts have tests of their own, and `make run` runs the whole."""

from __future__ import annotations

import sys
import time

import pytest
from click.testing import CliRunner

from millbeck.cli.demo import TOPIC_SETTINGS, command
from millbeck.client.admin import Admin
from millbeck.client.admin.results import NewTopic
from millbeck.client.blocking import Blocking
from millbeck.client.producer import Producer
from millbeck.testing import broker


def test_without_spark_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    result = CliRunner().invoke(command, [])
    assert result.exit_code != 0
    assert "pip install 'millbeck[spark]'" in result.output


def test_the_shortest_stream() -> None:
    result = CliRunner().invoke(command, ["--seconds", "1"])
    assert result.exit_code != 0
    assert "--seconds" in result.output


def test_the_streams_time_may_pass_the_clock() -> None:
    async def send(producer: Producer) -> int:
        tomorrow_ms = int((time.time() + 86_400) * 1000)
        return (await (await producer.send("orders", b"x", timestamp=tomorrow_ms))).offset

    with broker() as node, Blocking() as blocking:
        servers = {"bootstrap.servers": node.bootstrap}
        admin = blocking.make(lambda environment: Admin(environment, servers))
        new = NewTopic(name="orders", partition_count=1, configs=TOPIC_SETTINGS)
        assert not blocking.run(admin.create_topics([new])).failed
        assert blocking.run(send(blocking.make(lambda environment: Producer(environment, servers)))) == 0
