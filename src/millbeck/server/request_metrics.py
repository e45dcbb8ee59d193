"""Counts and times of requests by API, under the names of Kafka's request metrics."""

from __future__ import annotations

from millbeck.kernel.errors import by_code
from millbeck.kernel.metrics import Registry


class RequestStatistics:
    """One API's share; called once for each answered request."""

    __slots__ = ("_errors", "_name", "_requests", "_times")

    def __init__(self, name: str, metrics: RequestMetrics) -> None:
        self._name = name
        self._requests = metrics.requests.child(name)
        self._times = metrics.times.child(name)
        self._errors = metrics.errors

    def finished(self, seconds: float) -> None:
        self._requests.value += 1
        self._times.record(seconds * 1000)

    def failed(self, code: int) -> None:
        error = by_code.get(code)
        self._errors.child(self._name, error.kafka_name if error is not None else str(code)).value += 1


class RequestMetrics:
    def __init__(self, registry: Registry) -> None:
        self.requests = registry.counter(
            "kafka_network_requestmetrics_requests_total", "Requests answered.", ["request"]
        )
        self.times = registry.histogram(
            "kafka_network_requestmetrics_totaltimems",
            "Milliseconds from the arrival of a request to its answer, waiting included.",
            ["request"],
        )
        self.errors = registry.counter(
            "kafka_network_requestmetrics_errors_total",
            "Requests answered with an error for the whole of them.",
            ["request", "error"],
        )

    def statistics(self, api_key: int, name: str) -> RequestStatistics:
        return RequestStatistics(name, self)
