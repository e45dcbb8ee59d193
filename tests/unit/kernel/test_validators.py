"""Each validator accepts what its sentence says and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.kernel.validators import (
    Validator,
    all_of,
    at_least,
    between,
    distinct,
    each_of,
    matching,
    non_empty,
    one_of,
)

CASES: dict[str, tuple[Validator[Any], list[Any], list[Any]]] = {
    "at least 0": (at_least(0), [0, 1, 2**63], [-1]),
    "between 0 and 1": (between(0, 1), [0, 0.5, 1], [-0.1, 1.1]),
    "one of a, b": (one_of("a", "b"), ["a", "b"], ["c", "", "ab"]),
    "a list of x, y without repetition": (each_of("x", "y"), [(), ("x",), ("y", "x")], [("z",), ("x", "x")]),
    "a list without empty or repeated entries": (distinct(), [(), ("x",)], [("",), ("x", "x")]),
    "non-empty": (non_empty(), ["a", ("x",)], ["", ()]),
    "a word": (matching("[a-z]+", "a word"), ["abc"], ["", "abc1", "1abc", "abc\n"]),
    "at least 1 and one of 0, 5": (all_of(at_least(1), one_of(0, 5)), [5], [0, 1, 7]),
}


@pytest.mark.parametrize(("allowed", "case"), CASES.items(), ids=CASES.keys())
def test_validator(allowed: str, case: tuple[Validator[Any], list[Any], list[Any]]) -> None:
    validator, good, bad = case
    assert validator.allowed == repr(validator) == allowed
    assert [value for value in good if not validator.accepts(value)] == []
    assert [value for value in bad if validator.accepts(value)] == []
