"""What a node under measurement is started with."""

from __future__ import annotations

import pytest

from bench.systems.millbeck import cli_environment


def test_a_node_may_keep_its_bytecode_as_an_installed_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("SOMETHING_ELSE", "2")
    environment = cli_environment()
    assert "PYTHONDONTWRITEBYTECODE" not in environment
    assert environment["SOMETHING_ELSE"] == "2"
