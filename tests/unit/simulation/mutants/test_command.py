"""The command that kills the mutants."""

from __future__ import annotations

import pytest

from millbeck import compiled
from millbeck.simulation.mutants import command


def test_compiled_classes_can_not_be_mutated(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(compiled, "in_use", lambda: True)
    assert command.main([]) == 2
    assert "MILLBECK_PURE=1" in capsys.readouterr().out
