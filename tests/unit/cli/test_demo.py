"""The demo's command line; its parts have tests of their own, and `make run` runs the whole."""

from __future__ import annotations

import sys

import pytest
from click.testing import CliRunner

from millbeck.cli.demo import command


def test_without_spark_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    result = CliRunner().invoke(command, [])
    assert result.exit_code != 0
    assert "pip install 'millbeck[spark]'" in result.output


def test_the_shortest_stream() -> None:
    result = CliRunner().invoke(command, ["--seconds", "1"])
    assert result.exit_code != 0
    assert "--seconds" in result.output
