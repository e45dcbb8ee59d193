from __future__ import annotations

import pytest

from nemesis.rules import grouping_labels, labels_by_metric, metric_names, read_rules

TEXT = """# A comment.
groups:
  - name: some
    rules:
      - record: a:b
        expr: max(a)

      - alert: Bad
        expr: >-
          a{x="1"} > 0
            and b > 0
        for: 5m
        labels:
          severity: page
        annotations:
          summary: "{{ $value }}: bad."
          description: Mend it.
"""


def test_rules_are_read_with_all_they_say() -> None:
    record, alert = read_rules(TEXT)
    assert (record.kind, record.name, record.expr) == ("record", "a:b", "max(a)")
    assert (alert.kind, alert.name, alert.hold, alert.severity) == ("alert", "Bad", "5m", "page")
    assert alert.expr == 'a{x="1"} > 0 and b > 0'
    assert alert.annotations == {"summary": "{{ $value }}: bad.", "description": "Mend it."}


@pytest.mark.parametrize(
    "line",
    [
        "      - alert",
        "        expr: a: b",
        '        expr: "a" b',
        "        expr: {a}",
        "        expr: a # b",
        "   expr: a",
    ],
)
def test_what_yaml_would_read_otherwise_is_refused(line: str) -> None:
    with pytest.raises(AssertionError):
        read_rules(TEXT + line)


def test_names_and_labels_of_expressions() -> None:
    expression = 'sum by (c, d) (rate(a_total{x="b", y="z"}[5m])) / on (c) e'
    assert metric_names(expression) == {"a_total", "e"}
    assert labels_by_metric(expression) == {"a_total": {"x", "y"}}
    assert grouping_labels(expression) == {"c", "d"}
