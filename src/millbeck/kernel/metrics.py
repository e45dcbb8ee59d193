"""The metrics registry: each metric is declared once, updated cheaply, and rendered as Prometheus text.

    requests = registry.counter("kafka_network_requestmetrics_requests_total", "Requests received.", ["request"])
    produce = requests.child("Produce")  # once, kept by the caller
    produce.value += 1       # on the hot path: an attribute of a slotted object

State that exists elsewhere need not be counted again: a gauge's child can be a function (``child(...).read = f``), and
so can a whole family (`callback_gauge`, `callback_counter`), called at each scrape. A function that raises is omitted
and counted in ``millbeck_metrics_failures_total``. A function over thousands of partitions is declared ``in_parts``: a
generator that `render_parts` suspends after a number of rows, or whenever it yields None, so that the event loop can
run.

A family has at most ``children_max`` children (labels can come from clients); the others share one child whose labels
are all "other". Histograms are rendered as summaries with quantiles over a sliding window, see `histogram`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from math import isfinite, isnan
from typing import Generic, TypeVar

from millbeck.kernel.histogram import QUANTILES, Histogram

CHILDREN_MAX = 10_000
OTHER = "other"
HISTOGRAM_SLOT_MS = 20_000
PART_LINES = 500
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_METRIC_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*", re.ASCII)
_LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*", re.ASCII)
_RESERVED_LABELS = ("quantile", "le")

Number = int | float
Row = tuple[Sequence[object], Number]
"""Label values and the value of the metric."""
Rows = Iterable[Row]
"""One row per child, from a family's function."""
RowsInParts = Iterator[Row | None]
"""The same as a generator; it yields None when it has worked for a while without a row."""


class MetricKind(Enum):
    """The kind of a metric; the values are the type names of Prometheus' text format."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "summary"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricDeclaration:
    name: str
    kind: MetricKind
    help: str
    labels: tuple[str, ...]


class Counter:
    """A counter, which only increases; its owner adds to ``value``."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: Number = 0


class Gauge:
    """A gauge: its number is ``value``, or the result of ``read`` if set."""

    __slots__ = ("read", "value")

    def __init__(self) -> None:
        self.value: Number = 0
        self.read: Callable[[], Number] | None = None


C = TypeVar("C", Counter, Gauge, Histogram)


class MetricFamily(Generic[C]):
    """One metric with its children, one per combination of label values."""

    def __init__(self, declaration: MetricDeclaration, make_child: Callable[[], C], children_max: int) -> None:
        self.declaration = declaration
        self._make_child: Callable[[], C] = make_child
        self._children_max = children_max
        self._children: dict[tuple[str, ...], C] = {}
        self._others = (OTHER,) * len(declaration.labels)

    def __len__(self) -> int:
        return len(self._children)

    def child(self, *label_values: object) -> C:
        """The child for these label values, created on first use; the shared "other" child when the family is full."""
        key = tuple(map(str, label_values))
        assert len(key) == len(self._others), f"{self.declaration.name} has the labels {self.declaration.labels}"
        found = self._children.get(key)
        if found is None:
            if len(self._children) >= self._children_max and key != self._others:
                return self.child(*self._others)
            found = self._children[key] = self._make_child()
        return found

    def remove(self, *label_values: object) -> None:
        """Remove a child (its topic was deleted), if there is one."""
        self._children.pop(tuple(map(str, label_values)), None)

    def children(self) -> list[tuple[tuple[str, ...], C]]:
        return list(self._children.items())


_LabelTexts = dict[tuple[str, ...], dict[tuple[object, ...], str]]
"""Cache of rendered labels, by label names: thousands of partitions appear in a dozen families each."""


class _FunctionFamily:
    def __init__(
        self,
        declaration: MetricDeclaration,
        rows: Callable[[], Iterable[Row | None]],
        children_max: int,
        *,
        in_parts: bool,
    ) -> None:
        self.declaration = declaration
        self._rows = rows
        self._children_max = children_max
        self._in_parts = in_parts

    def rows(self) -> RowsInParts:
        """The function's rows; values beyond the family's maximum are summed as "other"."""
        # State that may change between two iterations of the event loop is read in one, unless ``in_parts`` allows
        # otherwise.
        rows = self._rows() if self._in_parts else list(self._rows())
        count = 0
        overflow: Number = 0
        for row in rows:
            count += row is not None
            if row is None or count <= self._children_max:
                yield row
            else:
                overflow += row[1]
        if count > self._children_max:
            yield (OTHER,) * len(self.declaration.labels), overflow


_AnyFamily = MetricFamily[Counter] | MetricFamily[Gauge] | MetricFamily[Histogram] | _FunctionFamily
F = TypeVar("F", MetricFamily[Counter], MetricFamily[Gauge], MetricFamily[Histogram], _FunctionFamily)


class Registry:
    def __init__(self, children_max: int = CHILDREN_MAX) -> None:
        self._children_max = children_max
        self._families: dict[str, _AnyFamily] = {}
        self._histograms: list[MetricFamily[Histogram]] = []
        self._rotated_ms: int | None = None
        self._failures = self.counter(
            "millbeck_metrics_failures_total", "Metrics that could not be read at a scrape."
        ).child()

    def counter(self, name: str, help: str, labels: Sequence[str] = ()) -> MetricFamily[Counter]:  # noqa: A002
        return self._add(
            MetricFamily(self._declare(name, MetricKind.COUNTER, help, labels), Counter, self._children_max)
        )

    def gauge(self, name: str, help: str, labels: Sequence[str] = ()) -> MetricFamily[Gauge]:  # noqa: A002
        return self._add(MetricFamily(self._declare(name, MetricKind.GAUGE, help, labels), Gauge, self._children_max))

    def histogram(self, name: str, help: str, labels: Sequence[str] = ()) -> MetricFamily[Histogram]:  # noqa: A002
        declaration = self._declare(name, MetricKind.HISTOGRAM, help, labels)
        family = self._add(MetricFamily(declaration, Histogram, self._children_max))
        self._histograms.append(family)
        return family

    def callback_counter(
        self,
        name: str,
        help: str,  # noqa: A002
        labels: Sequence[str],
        rows: Callable[[], Iterable[Row | None]],
        *,
        in_parts: bool = False,
    ) -> None:
        """A family of counters whose values are kept elsewhere: ``rows`` returns them at each scrape."""
        declaration = self._declare(name, MetricKind.COUNTER, help, labels)
        self._add(_FunctionFamily(declaration, rows, self._children_max, in_parts=in_parts))

    def callback_gauge(
        self,
        name: str,
        help: str,  # noqa: A002
        labels: Sequence[str],
        rows: Callable[[], Iterable[Row | None]],
        *,
        in_parts: bool = False,
    ) -> None:
        """A family of gauges whose values are kept elsewhere: ``rows`` returns them at each scrape.

        With ``in_parts`` it is a generator, and other callbacks of the event loop run while it is suspended.
        """
        declaration = self._declare(name, MetricKind.GAUGE, help, labels)
        self._add(_FunctionFamily(declaration, rows, self._children_max, in_parts=in_parts))

    @property
    def declarations(self) -> list[MetricDeclaration]:
        """The declarations of all metrics, for the documentation."""
        return [family.declaration for family in self._families.values()]

    def advance(self, now_ms: int) -> None:
        """Advance the histograms' window; must be called at least before each `render`.

        It advances by one slot at a time, so a node that is scraped rarely still shows the values since the last
        scrapes.
        """
        if self._rotated_ms is None:
            self._rotated_ms = now_ms
        elif now_ms - self._rotated_ms >= HISTOGRAM_SLOT_MS:
            self._rotated_ms = now_ms
            for family in self._histograms:
                for _, histogram in family.children():
                    histogram.rotate()

    def render(self) -> str:
        """All metrics in Prometheus' text format."""
        return "".join(self.render_parts())

    def render_parts(self, names: Collection[str] | None = None) -> Iterator[str]:
        """The same in parts of about `PART_LINES` lines, for a caller that yields to the event loop in between.

        A part may be empty: there is at least one for each metric. ``names`` are the metrics to render; None means
        all.
        """
        # The counter of failures is first in the table and rendered last, so that a scrape includes its own failures.
        failures, *others = self._families.values()
        label_texts: _LabelTexts = {}
        lines: list[str] = []
        for family in (*others, failures):
            if names is not None and not _is_wanted(family, names):
                continue
            declaration = family.declaration
            lines.append(f"# HELP {declaration.name} {_escaped_help(declaration.help)}")
            lines.append(f"# TYPE {declaration.name} {declaration.kind.value}")
            if isinstance(family, _FunctionFamily):
                made = self._function_lines(family, label_texts.setdefault(declaration.labels, {}))
            else:
                made = self._lines(family)
            for line in made:
                if line is not None:
                    lines.append(line)
                if line is None or len(lines) >= PART_LINES:
                    yield _part(lines)
            # Let the event loop run between metrics: even a single value may be expensive to compute.
            yield ""
        yield _part(lines)

    def _function_lines(self, family: _FunctionFamily, texts: dict[tuple[object, ...], str]) -> Iterator[str | None]:
        """The lines of a function's metric; None where the event loop should run before the next line."""
        name, labels = family.declaration.name, family.declaration.labels
        try:
            for row in family.rows():
                if row is None:
                    yield None
                    continue
                values, number = tuple(row[0]), row[1]
                text = texts.get(values)
                if text is None:
                    text = texts[values] = _label_text(labels, tuple(map(str, values)))
                yield f"{name}{text} {number}" if type(number) is int else f"{name}{text} {_number_text(number)}"
        except Exception:
            self._failures.value += 1

    def _lines(self, family: MetricFamily[Counter] | MetricFamily[Gauge] | MetricFamily[Histogram]) -> Iterator[str]:
        for values, child in family.children():
            if isinstance(child, Histogram):
                yield from _summary_lines(family.declaration, values, child)
                continue
            try:
                number = child.read() if isinstance(child, Gauge) and child.read is not None else child.value
            except Exception:
                self._failures.value += 1
            else:
                yield _line(family.declaration, values, number)

    def _declare(self, name: str, kind: MetricKind, help_text: str, labels: Sequence[str]) -> MetricDeclaration:
        assert _METRIC_NAME.fullmatch(name), f"{name!r} is not a valid metric name"
        assert name not in self._families, f"metric {name} is declared twice"
        assert help_text, f"metric {name} has no help"
        for label in labels:
            assert _LABEL_NAME.fullmatch(label), f"{label!r} is not a valid label name"
            assert label not in _RESERVED_LABELS, f"the label {label} is reserved by the text format"
        return MetricDeclaration(name=name, kind=kind, help=help_text, labels=tuple(labels))

    def _add(self, family: F) -> F:
        self._families[family.declaration.name] = family
        return family


def _is_wanted(family: _AnyFamily, names: Collection[str]) -> bool:
    """Whether the metric, or a sample of its summary, is among the names."""
    declaration = family.declaration
    if declaration.kind is MetricKind.HISTOGRAM and (
        f"{declaration.name}_sum" in names or f"{declaration.name}_count" in names
    ):
        return True
    return declaration.name in names


def _part(lines: list[str]) -> str:
    """Join the lines and empty the list."""
    if not lines:
        return ""
    text = "\n".join(lines) + "\n"
    lines.clear()
    return text


def _line(declaration: MetricDeclaration, values: tuple[str, ...], number: Number) -> str:
    return f"{declaration.name}{_label_text(declaration.labels, values)} {_number_text(number)}"


def _summary_lines(declaration: MetricDeclaration, values: tuple[str, ...], histogram: Histogram) -> Iterator[str]:
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
