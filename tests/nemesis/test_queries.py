"""The part of the query language that the rules use gives what Prometheus gives, where nothing is extrapolated."""

from __future__ import annotations

import pytest

from nemesis.queries import History, QueryError, Samples, Vector, evaluate, parse, read_page, seconds


def vector(*rows: tuple[float, dict[str, str]]) -> Vector:
    return {frozenset(labels.items()): value for value, labels in rows}


def over(expression: str, *scrapes: Samples, interval_s: float = 60) -> Vector:
    """What an expression is after scrapes in a row."""
    history = History()
    for number, samples in enumerate(scrapes):
        history.add(number * interval_s, samples)
    return evaluate(parse(expression), history, (len(scrapes) - 1) * interval_s)


NODES = {
    "a": vector((1, {"i": "x", "t": "p"}), (2, {"i": "y", "t": "p"}), (5, {"i": "x", "t": "q"})),
    "b": vector((1, {"i": "x", "t": "p"}), (1, {"i": "y", "t": "p"})),
    "c": vector((10, {"t": "p"}), (20, {"t": "q"})),
}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('a{t="q"}', vector((5, {"i": "x", "t": "q"}))),
        ("sum by (i) (a)", vector((6, {"i": "x"}), (2, {"i": "y"}))),
        ("max by (i) (a) > 2", vector((5, {"i": "x"}))),
        ("min(a)", vector((1, {}))),
        ("count by (t) (a)", vector((2, {"t": "p"}), (1, {"t": "q"}))),
        ("count by (t) (a > 100) > 0", vector()),
        ("a == 1 and b < 2", vector((1, {"i": "x", "t": "p"}))),
        ("a > b", vector((2, {"i": "y", "t": "p"}))),
        ("a != 1 or b", vector((2, {"i": "y", "t": "p"}), (5, {"i": "x", "t": "q"}), (1, {"i": "x", "t": "p"}))),
        ("max(a) > 0.2 * max(c)", vector((5, {}))),
        ("max(a) > 0.3 * max(c)", vector()),
        ("b / a", vector((1, {"i": "x", "t": "p"}), (0.5, {"i": "y", "t": "p"}))),
        ("c - on (t) group_right b", vector((9, {"i": "x", "t": "p"}), (9, {"i": "y", "t": "p"}))),
        ("clamp_min(b - a, 0)", vector((0, {"i": "x", "t": "p"}), (0, {"i": "y", "t": "p"}))),
        ("gone > 0", vector()),
    ],
)
def test_at_one_moment(expression: str, expected: Vector) -> None:
    assert over(expression, NODES) == expected


def of(*values: float) -> list[Samples]:
    return [{"a": vector((value, {}))} for value in values]


@pytest.mark.parametrize(
    ("expression", "values", "expected"),
    [
        ("increase(a[10m])", (3, 3, 5), 2),
        ("increase(a[10m])", (3, 5, 1, 2), 4),
        ("increase(a[1m])", (1, 5, 5), None),
        ("rate(a[10m])", (0, 60, 120), 1),
        ("deriv(a[10m])", (0, 60, 120), 1),
        ("deriv(a[10m])", (120, 60, 0), -1),
        ("min_over_time(a[10m])", (4, 2, 3), 2),
        ("min_over_time(a[1m])", (4, 2, 3), 3),
    ],
)
def test_over_time(expression: str, values: tuple[float, ...], expected: float | None) -> None:
    assert over(expression, *of(*values)) == ({} if expected is None else vector((expected, {})))


def test_what_is_gone_is_stale_and_what_is_old_is_forgotten() -> None:
    history = History(keep_seconds=100)
    history.add(0, NODES)
    assert evaluate(parse("b"), history, 200)
    assert not evaluate(parse("b"), history, 301)
    history.add(150, {})
    assert not evaluate(parse("b"), history, 150)
    assert not history.window("b", 150, 1000)


@pytest.mark.parametrize(
    "expression", ["a >", "(a", "a b", "unknown(a)", "rate(a)", "sum by (x (a)", "a ? b", 'a{x=~"y"}', "{}", "sum(a))"]
)
def test_what_is_not_known_is_refused(expression: str) -> None:
    with pytest.raises(QueryError):
        over(expression, NODES)


def test_a_page_is_read_with_its_targets_labels() -> None:
    page = read_page('# HELP a A.\n# TYPE a gauge\na{t="x\\"y",p="0"} 1.5\nb 2\n', instance="n1")
    assert page == {
        "a": vector((1.5, {"t": 'x\\"y', "p": "0", "instance": "n1"})),
        "b": vector((2, {"instance": "n1"})),
    }
    with pytest.raises(ValueError):
        read_page("not a sample at all")


def test_durations() -> None:
    assert [seconds(text) for text in ("", "30s", "5m", "1h")] == [0, 30, 300, 3600]
