"""The metrics registry: each metric is declared once, counted cheaply, and rendered as Prometheus text.

    requests = registry.counter("kafka_network_requestmetrics_requests_total", "Requests received.", ["request"])
    produce = requests.child("Produce")     # once, kept by whoever counts
    produce.value += 1                      # on the hot path: an attribute of a slotted object

State that exists anyway is not counted a second time: a gauge's child can be a function (``child(...).read = f``), and
a whole family can be one (`gauge_from`, `counter_from`), called when the metrics are asked for. One that raises is left
out and counted in ``millbeck_metrics_failures_total``.

A family has at most ``children_max`` children (labels can come from clients); the rest share one child whose labels all
read "other". Histograms are rendered as summaries with quantiles over a sliding window, see `histogram`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from math import isfinite, isnan
from typing import Generic, TypeVar

from millbeck.kernel.histogram import QUANTILES, Histogram

CHILDREN_MAX = 10_000
OTHER = "other"
HISTOGRAM_SLOT_MS = 20_000
PART_LINES = 1000
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_METRIC_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*", re.ASCII)
_LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*", re.ASCII)
_RESERVED_LABELS = ("quantile", "le")

Number = int | float
Rows = Iterable[tuple[Sequence[object], Number]]
"""Label values and the number, for every child of a family that is a function."""


class MetricKind(Enum):
    """The values are the words of the text format."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "summary"


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    name: str
    kind: MetricKind
    help: str
    labels: tuple[str, ...]


class Counter:
    """Only goes up; whoever owns it adds to ``value``."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: Number = 0


class Gauge:
    """``value``, or what ``read`` returns when there is one."""

    __slots__ = ("read", "value")

    def __init__(self) -> None:
        self.value: Number = 0
        self.read: Callable[[], Number] | None = None


C = TypeVar("C", Counter, Gauge, Histogram)


class Family(Generic[C]):
    """One metric with its children, one per combination of label values."""

    def __init__(self, declaration: Declaration, make_child: Callable[[], C], children_max: int) -> None:
        self.declaration = declaration
        self._make_child: Callable[[], C] = make_child
        self._children_max = children_max
        self._children: dict[tuple[str, ...], C] = {}
        self._others = (OTHER,) * len(declaration.labels)

    def __len__(self) -> int:
        return len(self._children)

    def child(self, *label_values: object) -> C:
        """The child for these label values, made on first use; the shared one when the family is full."""
        key = tuple(map(str, label_values))
        assert len(key) == len(self._others), f"{self.declaration.name} has the labels {self.declaration.labels}"
        found = self._children.get(key)
        if found is None:
            if len(self._children) >= self._children_max and key != self._others:
                return self.child(*self._others)
            found = self._children[key] = self._make_child()
        return found

    def remove(self, *label_values: object) -> None:
        """Forget a child (its topic was deleted); nothing happens when there is none."""
        self._children.pop(tuple(map(str, label_values)), None)

    def children(self) -> list[tuple[tuple[str, ...], C]]:
        return list(self._children.items())


_LabelTexts = dict[tuple[str, ...], dict[tuple[object, ...], str]]
"""What label values look like in text, by label names: thousands of partitions come in a dozen families each."""


class _FunctionFamily:
    def __init__(self, declaration: Declaration, rows: Callable[[], Rows], children_max: int) -> None:
        self.declaration = declaration
        self._rows = rows
        self._children_max = children_max

    def rows(self) -> list[tuple[Sequence[object], Number]]:
        """The function's rows; numbers beyond the family's size are added up under "other"."""
        rows = list(self._rows())
        if len(rows) > self._children_max:
            overflow = sum(number for _, number in rows[self._children_max :])
            rows[self._children_max :] = [((OTHER,) * len(self.declaration.labels), overflow)]
        return rows


_AnyFamily = Family[Counter] | Family[Gauge] | Family[Histogram] | _FunctionFamily
F = TypeVar("F", Family[Counter], Family[Gauge], Family[Histogram], _FunctionFamily)


class Registry:
    def __init__(self, children_max: int = CHILDREN_MAX) -> None:
        self._children_max = children_max
        self._families: dict[str, _AnyFamily] = {}
        self._histograms: list[Family[Histogram]] = []
        self._rotated_ms: int | None = None
        self._failures = self.counter(
            "millbeck_metrics_failures_total", "Metrics that could not be read when they were asked for."
        ).child()

    def counter(self, name: str, help: str, labels: Sequence[str] = ()) -> Family[Counter]:  # noqa: A002
        return self._add(Family(self._declare(name, MetricKind.COUNTER, help, labels), Counter, self._children_max))

    def gauge(self, name: str, help: str, labels: Sequence[str] = ()) -> Family[Gauge]:  # noqa: A002
        return self._add(Family(self._declare(name, MetricKind.GAUGE, help, labels), Gauge, self._children_max))

    def histogram(self, name: str, help: str, labels: Sequence[str] = ()) -> Family[Histogram]:  # noqa: A002
        declaration = self._declare(name, MetricKind.HISTOGRAM, help, labels)
        family = self._add(Family(declaration, Histogram, self._children_max))
        self._histograms.append(family)
        return family

    def counter_from(self, name: str, help: str, labels: Sequence[str], rows: Callable[[], Rows]) -> None:  # noqa: A002
        """A family of counters whose numbers live elsewhere: ``rows`` lists them when asked."""
        self._add(_FunctionFamily(self._declare(name, MetricKind.COUNTER, help, labels), rows, self._children_max))

    def gauge_from(self, name: str, help: str, labels: Sequence[str], rows: Callable[[], Rows]) -> None:  # noqa: A002
        """A family of gauges whose numbers live elsewhere: ``rows`` lists them when asked."""
        self._add(_FunctionFamily(self._declare(name, MetricKind.GAUGE, help, labels), rows, self._children_max))

    @property
    def declarations(self) -> list[Declaration]:
        """Every metric there is, for the documentation."""
        return [family.declaration for family in self._families.values()]

    def advance(self, now_ms: int) -> None:
        """Let the histograms' window slide; to be called at least before each `render`.

        It moves by one slot at a time, so a node that is scraped rarely still shows what came since the last scrapes.
        """
        if self._rotated_ms is None:
            self._rotated_ms = now_ms
        elif now_ms - self._rotated_ms >= HISTOGRAM_SLOT_MS:
            self._rotated_ms = now_ms
            for family in self._histograms:
                for _, histogram in family.children():
                    histogram.rotate()

    def render(self) -> str:
        """Everything in Prometheus' text format."""
        return "".join(self.render_parts())

    def render_parts(self) -> Iterator[str]:
        """The same in parts that do not take long, for a caller that gives the loop a turn in between."""
        # The counter of failures stands first in the table and is read last, so that a scrape shows its own.
        first, *rest = list(self._families.values())
        label_texts: _LabelTexts = {}
        lines: list[str] = []
        for family in [*rest, first]:
            declaration = family.declaration
            lines.append(f"# HELP {declaration.name} {_escaped_help(declaration.help)}")
            lines.append(f"# TYPE {declaration.name} {declaration.kind.value}")
            if isinstance(family, _FunctionFamily):
                rows = self._rows_of(family)
                texts = label_texts.setdefault(declaration.labels, {})
                for start in range(0, len(rows), PART_LINES):
                    lines += _row_lines(declaration, rows[start : start + PART_LINES], texts)
                    if len(lines) >= PART_LINES:
                        yield _part(lines)
            else:
                lines += self._lines(family)
                if len(lines) >= PART_LINES:
                    yield _part(lines)
        if lines:
            yield _part(lines)

    def _rows_of(self, family: _FunctionFamily) -> list[tuple[Sequence[object], Number]]:
        try:
            return family.rows()
        except Exception:
            self._failures.value += 1
            return []

    def _lines(self, family: Family[Counter] | Family[Gauge] | Family[Histogram]) -> list[str]:
        lines: list[str] = []
        for values, child in family.children():
            if isinstance(child, Histogram):
                lines.extend(_summary_lines(family.declaration, values, child))
                continue
            try:
                number = child.read() if isinstance(child, Gauge) and child.read is not None else child.value
            except Exception:
                self._failures.value += 1
            else:
                lines.append(_line(family.declaration, values, number))
        return lines

    def _declare(self, name: str, kind: MetricKind, help_text: str, labels: Sequence[str]) -> Declaration:
        assert _METRIC_NAME.fullmatch(name), f"{name!r} cannot be a metric's name"
        assert name not in self._families, f"metric {name} is declared twice"
        assert help_text, f"metric {name} has no help"
        for label in labels:
            assert _LABEL_NAME.fullmatch(label), f"{label!r} cannot be a label's name"
            assert label not in _RESERVED_LABELS, f"the label {label} is the text format's own"
        return Declaration(name=name, kind=kind, help=help_text, labels=tuple(labels))

    def _add(self, family: F) -> F:
        self._families[family.declaration.name] = family
        return family


def _part(lines: list[str]) -> str:
    """The lines as text; the list is empty after that."""
    text = "\n".join(lines) + "\n"
    lines.clear()
    return text


def _row_lines(
    declaration: Declaration, rows: list[tuple[Sequence[object], Number]], texts: dict[tuple[object, ...], str]
) -> Iterator[str]:
    name, labels = declaration.name, declaration.labels
    for label_values, number in rows:
        values = tuple(label_values)
        text = texts.get(values)
        if text is None:
            text = texts[values] = _label_text(labels, tuple(map(str, values)))
        yield f"{name}{text} {number}" if type(number) is int else f"{name}{text} {_number_text(number)}"


def _line(declaration: Declaration, values: tuple[str, ...], number: Number) -> str:
    return f"{declaration.name}{_label_text(declaration.labels, values)} {_number_text(number)}"


def _summary_lines(declaration: Declaration, values: tuple[str, ...], histogram: Histogram) -> Iterator[str]:
    labels = (*declaration.labels, "quantile")
    for share, quantile in zip(QUANTILES, histogram.quantiles(), strict=True):
        yield f"{declaration.name}{_label_text(labels, (*values, str(share)))} {_number_text(quantile)}"
    plain = _label_text(declaration.labels, values)
    yield f"{declaration.name}_sum{plain} {_number_text(histogram.total)}"
    yield f"{declaration.name}_count{plain} {_number_text(histogram.count)}"


def _label_text(labels: tuple[str, ...], values: tuple[str, ...]) -> str:
    if not labels:
        return ""
    pairs = zip(labels, values, strict=True)
    return "{" + ",".join(f'{label}="{_escaped_value(value)}"' for label, value in pairs) + "}"


def _escaped_value(text: str) -> str:
    return _escaped_help(text).replace('"', '\\"')


def _escaped_help(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _number_text(number: Number) -> str:
    if isinstance(number, int):
        return str(int(number))
    if isfinite(number):
        return repr(number)
    return "NaN" if isnan(number) else "+Inf" if number > 0 else "-Inf"
