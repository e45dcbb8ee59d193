from __future__ import annotations

import pytest

from millbeck.coordinator.group.consumer import regular_expressions
from millbeck.kernel.errors import InvalidRegularExpression


def test_an_expression_matches_whole_names() -> None:
    found = regular_expressions.matching(["a.*", "b"], ["ab", "ba", "b", "aa"])
    assert found == {"a.*": ("aa", "ab"), "b": ("b",)}


@pytest.mark.parametrize("expression", ["(", "[", "*", r"(a)\1", "(?=a)", "a" * 5000, "((a{100}){100}){100}"])
def test_what_re2_does_not_take_is_refused(expression: str) -> None:
    with pytest.raises(InvalidRegularExpression):
        regular_expressions.check(expression)


def test_an_expression_that_makes_others_backtrack_is_answered_at_once() -> None:
    assert regular_expressions.matching(["(a+)+b"], ["a" * 200]) == {"(a+)+b": ()}
