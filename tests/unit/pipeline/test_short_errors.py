"""Errors for Spark's users come without the way they took; others keep it."""

from __future__ import annotations

import traceback
from collections.abc import Iterator

import pytest

from millbeck.pipeline.errors import TopicMissing
from millbeck.pipeline.short_errors import with_short_errors


def _deep(levels: int) -> None:
    if levels:
        return _deep(levels - 1)
    try:
        raise OSError("the reason of the reason")
    except OSError as error:
        raise TopicMissing("there is no topic x") from error


@with_short_errors
def _call() -> str:
    _deep(20)
    return "never"


@with_short_errors
def _generate() -> Iterator[int]:
    yield 1
    _deep(20)


def test_a_message_stands_alone() -> None:
    for work in (_call, lambda: list(_generate())):
        with pytest.raises(TopicMissing) as raised:
            work()
        text = "".join(traceback.format_exception(raised.value))
        assert "the reason of the reason" not in text
        assert "_deep" not in text


def test_what_works_works_as_before() -> None:
    assert next(iter(_generate())) == 1
    assert with_short_errors(lambda number: number + 1)(1) == 2


def test_a_defect_keeps_its_traceback() -> None:
    @with_short_errors
    def wrong() -> None:
        _deep("x")  # type: ignore[arg-type]

    with pytest.raises(TypeError) as raised:
        wrong()
    assert "_deep" in "".join(traceback.format_exception(raised.value))
