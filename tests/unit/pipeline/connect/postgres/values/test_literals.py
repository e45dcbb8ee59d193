"""Texts of arrays and of hstore."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millbeck.pipeline.connect.postgres.values.literals import array_of, hstore_of

TEXTS = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=8)


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def literal(value: Any) -> str:
    if isinstance(value, list):
        return "{" + ",".join(map(literal, value)) + "}"
    return "NULL" if value is None else quoted(value)


@given(st.lists(st.none() | TEXTS))
def test_arrays(values: list[str | None]) -> None:
    assert array_of(literal(values)) == values
    assert array_of("[3:9]=" + literal(values)) == values


@given(st.lists(st.lists(TEXTS, min_size=2, max_size=2), min_size=1))
def test_arrays_of_two_dimensions(values: list[list[str]]) -> None:
    assert array_of(literal(values)) == values


def test_plain_elements() -> None:
    assert array_of("{1,NULL,-2.5,a b}") == ["1", None, "-2.5", "a b"]
    assert array_of('{1,"NULL",x}') == ["1", "NULL", "x"]
    assert array_of("{}") == []


@pytest.mark.parametrize(
    "text", ["", "{", "}", "1,2", '{"a}', "{1}}", "{{1}", "{" * 8 + "}" * 8, '{"a"b}', "{a\\", '{"\\']
)
def test_other_texts_are_no_arrays(text: str) -> None:
    with pytest.raises(ValueError):
        array_of(text)


@given(st.dictionaries(TEXTS, st.none() | TEXTS))
def test_hstores(values: dict[str, str | None]) -> None:
    text = ", ".join(f"{quoted(key)}=>{'NULL' if value is None else quoted(value)}" for key, value in values.items())
    assert hstore_of(text) == values


@pytest.mark.parametrize("text", ["a=>b", '"a"', '"a"=>', '"a"=>"b" "c"=>"d"', '"a"=>nothing'])
def test_other_texts_are_no_hstores(text: str) -> None:
    with pytest.raises(ValueError):
        hstore_of(text)
