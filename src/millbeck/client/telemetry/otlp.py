"""A client's metrics as OpenTelemetry's MetricsData (OTLP, protobuf), as brokers take them. Pure.

The metric ``record-send-total`` of the group ``producer-metrics`` is ``org.apache.kafka.producer.record.send.total``. A
total is a monotonic sum, anything else a gauge; tags are attributes of the data point, and the labels of the client
are attributes of the resource. Values that do not exist yet (NaN) are left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from struct import Struct
from typing import Final, NamedTuple

from millbeck.client.metrics.registry import MetricName, Tags

PREFIX: Final = "org.apache.kafka."
_DELTA: Final = b"\x10\x01"
_CUMULATIVE: Final = b"\x10\x02"
_MONOTONIC: Final = b"\x18\x01"
_TIMES: Final = Struct("<BQBQBd")
_START_TIME: Final = 0x11
_TIME: Final = 0x19
_AS_DOUBLE: Final = 0x21


class Point(NamedTuple):
    """The value of one metric."""

    name: str
    tags: Tags
    value: float
    is_total: bool


def otlp_name(name: MetricName) -> str:
    return f"{PREFIX}{name.group.removesuffix('-metrics')}.{name.name}".replace("-", ".")


def selected(values: Mapping[MetricName, float], prefixes: Iterable[str]) -> list[Point]:
    """The metrics whose name begins with one of these prefixes; an empty prefix selects all."""
    wanted = tuple(prefixes)
    found: list[Point] = []
    for name, value in values.items():
        text = otlp_name(name)
        if not math.isnan(value) and text.startswith(wanted):
            found.append(Point(text, name.tags, value, name.name.endswith("-total")))
    return found


class Deltas:
    """What totals have grown by since they were last pushed."""

    def __init__(self) -> None:
        self._before: dict[tuple[str, Tags], float] = {}

    def of(self, points: Iterable[Point]) -> list[Point]:
        changed: list[Point] = []
        for point in points:
            if point.is_total:
                key = point.name, point.tags
                grown = point.value - self._before.get(key, 0.0)
                self._before[key] = point.value
                changed.append(point._replace(value=grown))
            else:
                changed.append(point)
        return changed


def metrics_data(
    points: Iterable[Point], labels: Mapping[str, str], *, is_delta: bool, start_ns: int, now_ns: int
) -> bytes:
    """The points as MetricsData; ``start_ns`` is the beginning of the time that totals cover."""
    metrics = [_metric(point, is_delta, start_ns, now_ns) for point in points]
    resource = b"".join(_field(1, _attribute(name, text)) for name, text in labels.items() if text)
    scope = b"".join(_field(2, metric) for metric in metrics)
    return _field(1, _field(1, resource) + _field(2, scope))


def _metric(point: Point, is_delta: bool, start_ns: int, now_ns: int) -> bytes:
    attributes = b"".join(_field(7, _attribute(name.replace("-", "_"), text)) for name, text in point.tags)
    number = _TIMES.pack(_START_TIME, start_ns, _TIME, now_ns, _AS_DOUBLE, point.value)
    values = _field(1, number + attributes)
    if point.is_total:
        return _field(1, point.name.encode()) + _field(7, values + (_DELTA if is_delta else _CUMULATIVE) + _MONOTONIC)
    return _field(1, point.name.encode()) + _field(5, values)


def _attribute(name: str, text: str) -> bytes:
    return _field(1, name.encode()) + _field(2, _field(1, text.encode()))


def _field(number: int, data: bytes) -> bytes:
    """A field of protobuf with a length: bytes, text or a message."""
    size = len(data)
    length = bytearray()
    while size >= 0x80:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    length.append(size)
    return bytes((number << 3 | 2,)) + length + data
