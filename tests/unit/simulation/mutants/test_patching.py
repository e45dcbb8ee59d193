"""What is replaced comes back."""

from __future__ import annotations

import pytest

from millbeck.simulation.mutants.patching import patched


class Thing:
    def word(self) -> str:
        return "before"


def test_a_function_is_replaced_for_a_while() -> None:
    with patched() as patch:
        before = patch.replace(Thing, "word", lambda thing: "meanwhile")
        assert Thing().word() == "meanwhile"
        assert before(Thing()) == "before"
    assert Thing().word() == "before"


def test_what_is_not_there_can_not_be_replaced() -> None:
    with patched() as patch, pytest.raises(KeyError):
        patch.replace(Thing, "missing", None)
