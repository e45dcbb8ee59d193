"""Lines of progress."""

from __future__ import annotations

import pytest

from millbeck.simulation.runs.progress import print_line


def test_a_line_is_there_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    print_line("50 seeds")
    assert capsys.readouterr().out == "50 seeds\n"
