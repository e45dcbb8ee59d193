"""Steps in TOML are checked before Spark starts."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.pipeline.errors import DefinitionError
from millbeck.pipeline.running.steps import check_steps

ENDS: dict[str, Any] = {"source": {"topic": "a"}, "sink": {"topic": "b"}}


def _complaint(**given: Any) -> str | None:
    try:
        check_steps({**ENDS, **given})
    except DefinitionError as error:
        return str(error)
    return None


def test_what_is_right_passes() -> None:
    steps = [{"filter": "value.n > 1"}, {"key": "value.a"}, {"value": "value.b"}, {"value": {"n": "value.n"}}]
    assert _complaint(steps=steps, source={"topic": "a", "value": "n INT", "key": "k STRING"}) is None
    assert _complaint() is None


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"source": {}}, "[source] needs a topic"),
        ({"sink": {"topic": "b", "tpoic": "c"}}, "[sink] has no 'tpoic'"),
        ({"source": {"topic": "a", "value": {"format": "xml"}}}, "[source] value is the type of a JSON value"),
        ({"sink": {"topic": "b", "key": 5}}, "[sink] key is the type of a JSON value"),
        ({"steps": {"filter": "x"}}, "[[steps]]"),
        ({"steps": [{"filter": "x", "key": "y"}]}, "step 1 must be one of"),
        ({"steps": [{"filter": "x"}, {"sort": "y"}]}, "step 2 must be one of"),
        ({"steps": [{"filter": 5}]}, "expression of Spark SQL"),
        ({"steps": [{"filter": {"a": "b"}}]}, "expression of Spark SQL"),
        ({"steps": [{"value": {"a": 5}}]}, "expression of Spark SQL"),
    ],
)
def test_what_is_wrong_is_named(given: dict[str, Any], complaint: str) -> None:
    assert complaint in (_complaint(**given) or "")
