"""The demo's command line; its parts have tests of their own, and `make run` runs the whole."""

from __future__ import annotations

import sys

import pytest
from click.testing import CliRunner

from millbeck.cli.commands.demo import command
from millbeck.pipeline import java
from millbeck.pipeline.errors import JavaMissing


def test_without_spark_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    result = CliRunner().invoke(command, [])
    assert result.exit_code != 0
    assert "pip install 'millbeck[spark]'" in result.output


def test_without_java_it_says_so_before_a_node_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark", reason="the extra spark is not installed")

    def none_found() -> None:
        raise JavaMissing("Spark needs Java 17")

    monkeypatch.setattr(java, "find_java", none_found)
    result = CliRunner().invoke(command, [])
    assert result.exit_code == 1
    assert result.output == "Error: Spark needs Java 17\n"


def test_the_shortest_stream() -> None:
    result = CliRunner().invoke(command, ["--seconds", "1"])
    assert result.exit_code != 0
    assert "--seconds" in result.output
