"""Metrics reporters, which ``metric.reporters`` names: they read a client's metrics while it runs.

    class LogReporter:
        def start(self, metrics: ClientMetrics) -> None: ...     # metrics.read() returns all values
        def close(self) -> None: ...

A name is an entry point in the group ``millbeck.metric_reporters``, or ``module:class``, created without arguments.
Both methods are called in the client's event loop. `prometheus.prometheus_text` needs no reporter.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final, Protocol

from millbeck.client.metrics.registry import ClientMetrics
from millbeck.client.plugins import plugin

log = logging.getLogger(__name__)

_JMX: Final = ("org.apache.kafka.common.metrics.JmxReporter", "JmxReporter")
"""The default of Kafka's clients; there is no JMX here, and the metrics are there without it."""


class MetricsReporter(Protocol):
    def start(self, metrics: ClientMetrics) -> None:
        """Called when the client starts."""

    def close(self) -> None:
        """Called when the client closes."""


def reporters_named(names: Iterable[str]) -> list[MetricsReporter]:
    """The reporters of ``metric.reporters``; raises `InvalidConfig` for one that cannot be loaded."""
    return [plugin("metric.reporters", name, "millbeck.metric_reporters")() for name in names if name not in _JMX]


def close_all(reporters: Iterable[MetricsReporter]) -> None:
    for reporter in reporters:
        try:
            reporter.close()
        except Exception:
            log.exception("a metrics reporter failed to close")
