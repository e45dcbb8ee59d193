"""Counts and times of requests by API, under the names of Kafka's request metrics.

Kafka's stages are its queues and threads. On one loop they are these, and together they are the request's life:

- *request queue*: its bytes have been read, and requests before it in the same bytes are being handled;
- *local*: its handler runs;
- *remote*: its handler has returned and the answer is not there: it waits for the write at the end of the turn, for
  replicas, for data, for the disk, or for a group's other members;
- *response queue*: answered, it waits for the end of the turn, or for those before it on its connection;
- *response send*: its bytes are handed to the kernel. What the kernel does not take is sent later and not counted.

Of produce and fetch requests, one in 16 has its stages timed and is counted 16 times.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from millbeck.kernel.errors import by_code
from millbeck.kernel.metrics import Registry


class RequestStatistics:
    """One API's share; called once for each answered request."""

    __slots__ = ("_errors", "_name", "_requests", "_stages", "_times")

    def __init__(self, name: str, metrics: RequestMetrics) -> None:
        self._name = name
        self._requests = metrics.requests.child(name)
        self._times = metrics.times.child(name)
        self._errors = metrics.errors
        self._stages = [family.child(name) for family in metrics.stages]

    def finished(self, seconds: float) -> None:
        self._requests.value += 1
        self._times.record(seconds * 1000)

    def timed(self, received_at: float, started_at: float, weight: int) -> RequestTimes:
        """The stages of a request that stands for ``weight`` of them are told to what this returns."""
        return RequestTimes(self, received_at, started_at, weight)

    def lived(self, seconds: Sequence[float], weight: int) -> None:
        """How long each stage of a timed request took, in the order of `STAGES`."""
        for histogram, each in zip(self._stages, seconds, strict=True):
            histogram.record_many(max(0.0, each) * 1000, weight)

    def failed(self, code: int) -> None:
        error = by_code.get(code)
        self._errors.child(self._name, error.kafka_name if error is not None else str(code)).value += 1


class RequestTimes:
    """When the stages of one request began."""

    __slots__ = ("_answered_at", "_handled_at", "_received_at", "_started_at", "_statistics", "_weight")

    def __init__(self, statistics: RequestStatistics, received_at: float, started_at: float, weight: int) -> None:
        self._statistics = statistics
        self._received_at = received_at
        self._started_at = started_at
        self._handled_at = 0.0
        self._answered_at = 0.0
        self._weight = weight

    def handled(self, now: float) -> None:
        """Its handler has returned; what it answered before that it has not waited for."""
        self._handled_at = now if not self._answered_at else self._answered_at

    def answered(self, now: float) -> None:
        self._answered_at = now

    def sent(self, sending_at: float, sent_at: float) -> None:
        answered_at = self._answered_at
        handled_at = self._handled_at or answered_at
        self._statistics.lived(
            (
                self._started_at - self._received_at,
                handled_at - self._started_at,
                answered_at - handled_at,
                sending_at - answered_at,
                sent_at - sending_at,
            ),
            self._weight,
        )


STAGES: Final = (
    ("requestqueuetimems", "from their arrival to the start of their handler"),
    ("localtimems", "in their handler"),
    ("remotetimems", "from the end of their handler to the answer"),
    ("responsequeuetimems", "from the answer to its sending"),
    ("responsesendtimems", "in which the answer is handed to the kernel"),
)


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
        self.stages = [
            registry.histogram(f"kafka_network_requestmetrics_{name}", f"Milliseconds of requests {what}.", ["request"])
            for name, what in STAGES
        ]
        self.errors = registry.counter(
            "kafka_network_requestmetrics_errors_total",
            "Requests answered with an error for the whole of them.",
            ["request", "error"],
        )

    def statistics(self, api_key: int, name: str) -> RequestStatistics:
        return RequestStatistics(name, self)
