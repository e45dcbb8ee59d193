"""As much of Prometheus' query language as the shipped rules use, over pages of metrics kept in memory.

    history.add(now_s, {"b1:9404": text})
    value = evaluate(parse("sum by (cluster) (rate(a_total[5m])) > 0"), history, now_s)

A vector is a dict from labels to numbers. What Prometheus would extrapolate is not: an increase is the sum of the steps
up between the samples of the window.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

Labels = frozenset[tuple[str, str]]
Vector = dict[Labels, float]
Samples = dict[str, Vector]

STALE_SECONDS: Final = 300.0
_UNITS: Final = {"s": 1, "m": 60, "h": 3600}
_SAMPLE: Final = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)")
_LABEL: Final = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)",?')
_TOKEN: Final = re.compile(
    r'\s*(?:(?P<number>\d+(?:\.\d+)?)(?![\w])|(?P<name>[a-zA-Z_:][\w:]*)|(?P<text>"[^"]*")'
    r"|(?P<window>\[\d+[smh]\])|(?P<sign>=~|!~|==|!=|>=|<=|[-+*/(){},<>=]))"
)
_COMPARISONS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    ">": operator.gt,
    "<": operator.lt,
    "==": operator.eq,
    "!=": operator.ne,
}
_ARITHMETIC: Final[Mapping[str, Callable[[float, float], float]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda left, right: left / right if right else float("nan"),
}
_AGGREGATIONS: Final[Mapping[str, Callable[[list[float]], float]]] = {"sum": sum, "max": max, "min": min, "count": len}


class QueryError(Exception):
    """The expression is not of the part of the language that is known here."""


def seconds(duration: str) -> float:
    return int(duration[:-1]) * _UNITS[duration[-1]] if duration else 0.0


def read_page(text: str, **labels: str) -> Samples:
    """A page of metrics as a scraper reads it, with the labels of its target."""
    found: Samples = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            match = _SAMPLE.fullmatch(line)
            if match is None:
                raise ValueError(f"no sample: {line}")
            own = dict(_LABEL.findall(match[2] or ""))
            found.setdefault(match[1], {})[frozenset((labels | own).items())] = float(match[3])
    return found


class History:
    """What was scraped, for as long as the longest window needs it."""

    def __init__(self, keep_seconds: float = 7200.0) -> None:
        self._keep_seconds = keep_seconds
        self._scrapes: list[tuple[float, Samples]] = []

    def add(self, now_s: float, samples: Samples) -> None:
        self._scrapes.append((now_s, samples))
        while self._scrapes[0][0] < now_s - self._keep_seconds:
            del self._scrapes[0]

    def latest(self) -> Samples:
        return self._scrapes[-1][1]

    def instant(self, name: str, now_s: float) -> Vector:
        """Only the last scrape counts: a target that is gone is stale at once."""
        if not self._scrapes or self._scrapes[-1][0] < now_s - STALE_SECONDS:
            return {}
        return dict(self._scrapes[-1][1].get(name, {}))

    def window(self, name: str, now_s: float, length_s: float) -> dict[Labels, list[tuple[float, float]]]:
        found: dict[Labels, list[tuple[float, float]]] = {}
        for at_s, samples in self._scrapes:
            if at_s > now_s - length_s:
                for labels, value in samples.get(name, {}).items():
                    found.setdefault(labels, []).append((at_s, value))
        return found


# Expressions.


@dataclass(frozen=True, slots=True)
class Number:
    value: float


@dataclass(frozen=True, slots=True)
class Selector:
    name: str
    matchers: tuple[tuple[str, str, str], ...]
    window_s: float | None


@dataclass(frozen=True, slots=True)
class Aggregation:
    kind: str
    labels: tuple[str, ...]
    of: Expression


@dataclass(frozen=True, slots=True)
class Call:
    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Operation:
    sign: str
    left: Expression
    right: Expression
    on: tuple[str, ...] | None


Expression = Number | Selector | Aggregation | Call | Operation
_LEVELS: Final = (("or",), ("and",), ("==", "!=", ">", "<"), ("+", "-"), ("*", "/"))


def parse(text: str) -> Expression:
    parser = _Parser(text)
    expression = parser.level(0)
    if parser.next() is not None:
        raise QueryError(f"not understood from {parser.next()!r} on: {text}")
    return expression


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[str] = []
        position = 0
        while text[position:].strip():
            match = _TOKEN.match(text, position)
            if match is None:
                raise QueryError(f"not understood: {text[position:]}")
            self._tokens.append(match[0].strip())
            position = match.end()
        self._position = 0

    def next(self) -> str | None:
        return self._tokens[self._position] if self._position < len(self._tokens) else None

    def take(self, expected: str | None = None) -> str:
        token = self.next()
        if token is None or (expected is not None and token != expected):
            raise QueryError(f"{expected or 'more'} is missing before {token!r}: {self._text}")
        self._position += 1
        return token

    def level(self, number: int) -> Expression:
        if number == len(_LEVELS):
            return self._primary()
        left = self.level(number + 1)
        while self.next() in _LEVELS[number]:
            sign = self.take()
            on = None
            if self.next() == "on":
                self.take()
                on = self._names()
                if self.next() == "group_right":
                    self.take()
            left = Operation(sign, left, self.level(number + 1), on)
        return left

    def _names(self) -> tuple[str, ...]:
        self.take("(")
        names = []
        while self.next() != ")":
            names.append(self.take())
            if self.next() == ",":
                self.take()
        self.take(")")
        return tuple(names)

    def _primary(self) -> Expression:
        token = self.take()
        if token == "(":
            inner = self.level(0)
            self.take(")")
            return inner
        if token[0].isdigit():
            return Number(float(token))
        if token in _AGGREGATIONS:
            labels: tuple[str, ...] = ()
            if self.next() == "by":
                self.take()
                labels = self._names()
            self.take("(")
            inner = self.level(0)
            self.take(")")
            return Aggregation(token, labels, inner)
        if self.next() == "(":
            return Call(token, self._arguments())
        return self._selector(token)

    def _arguments(self) -> tuple[Expression, ...]:
        self.take("(")
        arguments = [self.level(0)]
        while self.next() == ",":
            self.take()
            arguments.append(self.level(0))
        self.take(")")
        return tuple(arguments)

    def _selector(self, name: str) -> Selector:
        if not (name[0].isalpha() or name[0] in "_:"):
            raise QueryError(f"no metric's name: {name!r} in {self._text}")
        matchers = []
        if self.next() == "{":
            self.take()
            while self.next() != "}":
                matchers.append((self.take(), self.take(), self.take().strip('"')))
                if self.next() == ",":
                    self.take()
            self.take("}")
        token = self.next()
        window_s = seconds(self.take()[1:-1]) if token is not None and token.startswith("[") else None
        return Selector(name, tuple(matchers), window_s)


# Evaluation.


def evaluate(expression: Expression, history: History, now_s: float) -> Vector:
    """The vector; a number is one without labels."""
    match expression:
        case Number():
            return {frozenset(): expression.value}
        case Selector():
            found = history.instant(expression.name, now_s)
            return {labels: value for labels, value in found.items() if _matches(expression, labels)}
        case Aggregation():
            groups: dict[Labels, list[float]] = {}
            for labels, value in evaluate(expression.of, history, now_s).items():
                groups.setdefault(_only(labels, expression.labels), []).append(value)
            return {labels: _AGGREGATIONS[expression.kind](values) for labels, values in groups.items()}
        case Call():
            return _call(expression, history, now_s)
        case Operation():
            return _operate(
                expression,
                evaluate(expression.left, history, now_s),
                evaluate(expression.right, history, now_s),
            )


def _matches(selector: Selector, labels: Labels) -> bool:
    values = dict(labels)
    for name, sign, text in selector.matchers:
        if sign != "=":
            raise QueryError(f"only = is known: {selector}")
        if values.get(name, "") != text:
            return False
    return True


def _only(labels: Labels, names: Iterable[str]) -> Labels:
    wanted = frozenset(names)
    return frozenset(item for item in labels if item[0] in wanted)


def _call(call: Call, history: History, now_s: float) -> Vector:
    first = call.arguments[0]
    if call.name == "clamp_min":
        (least,) = evaluate(call.arguments[1], history, now_s).values()
        return {labels: max(value, least) for labels, value in evaluate(first, history, now_s).items()}
    if call.name not in _OVER_TIME or not isinstance(first, Selector) or first.window_s is None:
        raise QueryError(f"no such function of a window: {call}")
    found: Vector = {}
    for labels, samples in history.window(first.name, now_s, first.window_s).items():
        if _matches(first, labels) and (len(samples) > 1 or call.name == "min_over_time"):
            found[labels] = _OVER_TIME[call.name](samples)
    return found


def _increase(samples: list[tuple[float, float]]) -> float:
    """A value below the one before is a counter that began anew."""
    pairs = pairwise(samples)
    return sum(after - before if after >= before else after for (_, before), (_, after) in pairs)


def _rate(samples: list[tuple[float, float]]) -> float:
    return _increase(samples) / (samples[-1][0] - samples[0][0])


def _slope(samples: list[tuple[float, float]]) -> float:
    count = len(samples)
    mean_at, mean = sum(at for at, _ in samples) / count, sum(value for _, value in samples) / count
    spread = sum((at - mean_at) ** 2 for at, _ in samples)
    return sum((at - mean_at) * (value - mean) for at, value in samples) / spread


_OVER_TIME: Final[Mapping[str, Callable[[list[tuple[float, float]]], float]]] = {
    "increase": _increase,
    "rate": _rate,
    "deriv": _slope,
    "min_over_time": lambda samples: min(value for _, value in samples),
}


def _operate(operation: Operation, left: Vector, right: Vector) -> Vector:
    sign, on = operation.sign, operation.on
    if sign == "or":
        return right | left
    if sign == "and":
        return {labels: value for labels, value in left.items() if labels in right}
    is_scalar = isinstance(operation.right, Number)
    if isinstance(operation.left, Number) and not is_scalar:
        (number,) = left.values()
        left = dict.fromkeys(right, number)
    found: Vector = {}
    # With "on", the labels are those of the right side, which has many for one.
    for labels in right if on is not None else left:
        if on is not None:
            partners = [each for each in left if _only(each, on) == _only(labels, on)]
            pair = (left[partners[0]], right[labels]) if partners else None
        elif is_scalar:
            pair = (left[labels], next(iter(right.values())))
        else:
            pair = (left[labels], right[labels]) if labels in right else None
        if pair is None:
            continue
        if sign in _ARITHMETIC:
            found[labels] = _ARITHMETIC[sign](*pair)
        elif _COMPARISONS[sign](*pair):
            found[labels] = pair[0]
    return found
