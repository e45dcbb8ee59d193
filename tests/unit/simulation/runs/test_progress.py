"""Lines of progress."""

from __future__ import annotations

import pytest

from millbeck.testing.say import say


def test_a_line_is_there_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    say("50 seeds")
    assert capsys.readouterr().out == "50 seeds\n"
