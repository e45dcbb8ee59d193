from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millbeck.cli.records.record_lines import LineError, LineReader, line_format, unescaped

parts = st.binary(max_size=10).filter(lambda part: b":" not in part and b"\t" not in part and b"," not in part)


def form(key_separator: str | None = None, null_is_empty: bool = False, **properties: str) -> LineReader:
    dotted = {name.replace("_", "."): value for name, value in properties.items()}
    return line_format(dotted, key_separator=key_separator, null_is_empty=null_is_empty)


def test_a_line_is_a_value() -> None:
    assert form().parse(b"a:b\tc") == (None, b"a:b\tc", ())


def test_a_key_ends_at_the_first_separator() -> None:
    assert form(":").parse(b"k:v:w") == (b"k", b"v:w", ())
    assert form(parse_key="true").parse(b"k\tv") == (b"k", b"v", ())
    assert form(parse_key="true", key_separator=",").parse(b"k,v") == (b"k", b"v", ())


def test_a_missing_key_is_an_error_for_kafka_and_none_for_kcat() -> None:
    assert form(":").parse(b"v") == (None, b"v", ())
    with pytest.raises(LineError, match="no key"):
        form(parse_key="true").parse(b"v")
    assert form(parse_key="true", ignore_error="true").parse(b"v") == (None, b"v", ())


def test_headers_stand_in_front() -> None:
    both = form(parse_headers="true", parse_key="true")
    assert both.parse(b"a:1,b:\tk\tv") == (b"k", b"v", (("a", b"1"), ("b", b"")))
    assert both.parse(b"\tk\tv") == (b"k", b"v", ())
    with pytest.raises(LineError, match="no headers"):
        both.parse(b"v")
    with pytest.raises(LineError, match="has no value"):
        both.parse(b"a\tk\tv")


def test_what_stands_for_null() -> None:
    assert form(":", null_is_empty=True).parse(b":") == (None, None, ())
    assert form(":").parse(b":") == (b"", b"", ())
    marked = form(":", null_marker="NULL", parse_headers="true")
    assert marked.parse(b"a:NULL\tNULL:NULL") == (None, None, (("a", None),))


def test_a_property_nobody_knows_is_refused() -> None:
    with pytest.raises(ValueError, match=r"parse\.cats is not one of"):
        form(parse_cats="true")


def test_separators_as_typed_in_a_shell() -> None:
    assert unescaped("\\t|\\n|\\0|x") == "\t|\n|\0|x"


@settings(max_examples=100)
@given(parts, parts, st.lists(st.tuples(st.text("abc", min_size=1), parts), min_size=1, max_size=3))
def test_what_is_put_together_comes_apart(key: bytes, value: bytes, headers: list[tuple[str, bytes]]) -> None:
    line = b",".join(name.encode() + b":" + text for name, text in headers) + b"\t" + key + b"\t" + value
    assert form(parse_headers="true", parse_key="true").parse(line) == (key, value, tuple(headers))
