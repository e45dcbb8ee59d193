"""Java's regular expressions: what is rewritten, and what is refused."""

from __future__ import annotations

import warnings

import pytest

from millbeck.pipeline.connect.model.java_patterns import PatternError, compiled, replaced_first

SAME = {
    "named group": ("(?<a>x+)(?<!y)\\k<a>", "xx"),
    "property": ("\\p{Alpha}+\\P{Digit}", "ab."),
    "property in a class": ("[\\p{Upper}_]+", "A_B"),
    "one letter property": ("\\h\\H", "\ta"),
    "quotation": ("\\Qa.b\\E+", "a.bbb"),
    "quotation without an end": ("\\Qa.b", "a.b"),
    "end of input": ("a\\z", "a"),
    "possessive": ("a*+b", "aab"),
    "a bracket first in a class": ("[]a]+[^]]", "]ab"),
    "doubled characters in a class": ("[||~~]+[+--]+", "|~+,-"),
}


@pytest.mark.parametrize(("pattern", "text"), SAME.values(), ids=SAME.keys())
def test_what_java_matches_is_matched(pattern: str, text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compiled(pattern).fullmatch(text)


def test_digits_are_ascii() -> None:
    assert not compiled("\\d").fullmatch("٣")


@pytest.mark.parametrize(
    "pattern", ["(", "[a[b]]", "[a&&b]", "\\p{IsGreek}", "\\R", "\\", "[\\P{Alpha}]", "a" * 10_001]
)
def test_what_cannot_be_said_here_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        compiled(pattern)


def test_a_group_has_as_many_digits_as_there_are_groups() -> None:
    assert replaced_first(compiled("(a)(b)"), "$12$2", "ab.") == "a2b."


@pytest.mark.parametrize("replacement", ["$", "$3", "${no}", "${no", "\\", "$x"])
def test_a_wrong_reference_is_refused(replacement: str) -> None:
    with pytest.raises(PatternError):
        replaced_first(compiled("(a)(b)"), replacement, "ab")
