"""Text to value and back, for every kind."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millbeck.kernel.option_kinds import (
    BOOLEAN,
    CLASS,
    DOUBLE,
    INT,
    LIST,
    LONG,
    PASSWORD,
    SHORT,
    STRING,
    OptionKind,
    Secret,
)

PARSED: list[tuple[OptionKind[Any], str, object]] = [
    (BOOLEAN, "true", True),
    (BOOLEAN, " FALSE ", False),
    (STRING, "  a b ", "a b"),
    (INT, "2147483647", 2**31 - 1),
    (INT, " -2147483648", -(2**31)),
    (INT, "+7", 7),
    (INT, "007", 7),
    (SHORT, "-32768", -32768),
    (LONG, "9223372036854775807", 2**63 - 1),
    (DOUBLE, "0.5", 0.5),
    (DOUBLE, "1e3", 1000.0),
    (DOUBLE, ".25", 0.25),
    (DOUBLE, "3", 3.0),
    (LIST, "", ()),
    (LIST, "   ", ()),
    (LIST, "a", ("a",)),
    (LIST, " a , b,c ", ("a", "b", "c")),
    (LIST, "a,,b", ("a", "", "b")),
    (CLASS, " some.module:Name ", "some.module:Name"),
    (PASSWORD, " hush ", Secret("hush")),
]


@pytest.mark.parametrize(("kind", "text", "value"), PARSED, ids=lambda item: repr(item))
def test_parse(kind: OptionKind[Any], text: str, value: object) -> None:
    assert kind.parse(text) == value


REFUSED: list[tuple[OptionKind[Any], str]] = [
    (BOOLEAN, "yes"),
    (BOOLEAN, "1"),
    (BOOLEAN, ""),
    (INT, "2147483648"),
    (INT, "-2147483649"),
    (INT, "1_000"),
    (INT, "0x10"),
    (INT, "1.0"),
    (INT, "٣"),  # a digit, but not one of ours
    (INT, ""),
    (INT, "1" * 100_000),
    (SHORT, "32768"),
    (LONG, "9223372036854775808"),
    (DOUBLE, "NaN"),
    (DOUBLE, "Infinity"),
    (DOUBLE, "1_0.0"),
    (DOUBLE, "."),
    (DOUBLE, "1" * 100),
]


@pytest.mark.parametrize(("kind", "text"), REFUSED, ids=lambda item: repr(item)[:20])
def test_parse_refuses(kind: OptionKind[Any], text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        kind.parse(text)


TEXTS: list[tuple[OptionKind[Any], Any, str]] = [
    (BOOLEAN, True, "true"),
    (BOOLEAN, False, "false"),
    (LONG, -1, "-1"),
    (LIST, ("a", "b"), "a,b"),
    (LIST, (), ""),
    (DOUBLE, 0.5, "0.5"),
    (DOUBLE, 0.0, "0.0"),
    (DOUBLE, 1.0, "1.0"),
    (DOUBLE, 9999999.0, "9999999.0"),
    (DOUBLE, 1e7, "1.0E7"),
    (DOUBLE, 12345678.5, "1.23456785E7"),
    (DOUBLE, -1e10, "-1.0E10"),
    (DOUBLE, 0.001, "0.001"),
    (DOUBLE, 0.0001, "1.0E-4"),
    (DOUBLE, 1.5e-9, "1.5E-9"),
    (DOUBLE, 1e300, "1.0E300"),
    (PASSWORD, Secret("hush"), "[hidden]"),
]


@pytest.mark.parametrize(("kind", "value", "text"), TEXTS, ids=lambda item: repr(item))
def test_text(kind: OptionKind[Any], value: object, text: str) -> None:
    assert kind.text(value) == text


@given(st.integers(-(2**63), 2**63 - 1))
def test_long_round_trip(value: int) -> None:
    assert LONG.parse(LONG.text(value)) == value


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_double_round_trip(value: float) -> None:
    assert DOUBLE.parse(DOUBLE.text(value)) == value


def test_kinds_have_the_codes_of_describe_configs() -> None:
    kinds: list[OptionKind[Any]] = [BOOLEAN, STRING, INT, SHORT, LONG, DOUBLE, LIST, CLASS, PASSWORD]
    assert [kind.code for kind in kinds] == list(range(1, 10))


def test_secret_shows_itself_only_when_asked() -> None:
    secret = Secret("hush")
    assert "hush" not in f"{secret} {secret!r} {[secret]}"
    assert secret.reveal() == "hush"
    assert secret == Secret("hush") != Secret("other")
    assert {secret: 1}[Secret("hush")] == 1
