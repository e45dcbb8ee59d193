"""Patterns match whole ids, and take no longer than the id is."""

from __future__ import annotations

import pytest

from millbeck.coordinator.transaction.patterns import matcher
from millbeck.kernel.errors import InvalidRegularExpression


def test_a_pattern_matches_the_whole_id() -> None:
    matches = matcher("app-.*")
    assert matches("app-1")
    assert not matches("my-app-1")


def test_a_pattern_that_would_backtrack_for_ever_is_harmless() -> None:
    assert not matcher("(a+)+$")("a" * 5000 + "b")


@pytest.mark.parametrize("bad", ["(", "a{1001}{1001}", "x" * 5000])
def test_what_cannot_be_used_is_refused(bad: str) -> None:
    with pytest.raises(InvalidRegularExpression):
        matcher(bad)
