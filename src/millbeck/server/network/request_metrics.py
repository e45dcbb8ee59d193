"""Request counts and latencies by API, under the names of Kafka's request metrics.

Kafka times the stages of a request by its queues and threads. On one event loop they are the following; together they
cover the whole request:

- *request queue*: its bytes have been read, and earlier requests of the same read are being handled;
- *local*: its handler runs;
- *remote*: its handler has returned without a reply: the request waits for the write at the end of the event batch, for
  replicas, for data, for the disk, or for other members of a group;
- *response queue*: the completed reply waits for the end of the event batch, or for earlier replies of its connection;
- *response send*: the reply is passed to the kernel. What the kernel does not accept is sent later and not counted.

Of produce and fetch requests, one in 16 is timed by stage and counted 16 times.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from millbeck.kernel.errors import by_code
from millbeck.kernel.metrics import Registry


class RequestStatistics:
    """Request statistics of one API; `Call.complete` counts each answered request in ``requests`` and ``times``."""

    __slots__ = ("_errors", "_name", "_stages", "requests", "times")

    def __init__(self, name: str, metrics: RequestMetrics) -> None:
        self._name = name
        self.requests = metrics.requests.child(name)
        self.times = metrics.times.child(name)
        self._errors = metrics.errors
        self._stages = [family.child(name) for family in metrics.stages]

    def timed(self, received_at: float, started_at: float, weight: int) -> RequestTimes:
        """Start timing the stages of a request; its times are recorded ``weight`` times."""
        return RequestTimes(self, received_at, started_at, weight)

    def record_stages(self, seconds: Sequence[float], weight: int) -> None:
        """Record the duration of each stage of a timed request, in the order of `STAGES`."""
        for histogram, each in zip(self._stages, seconds, strict=True):
            histogram.record_many(max(0.0, each) * 1000, weight)

    def failed(self, code: int) -> None:
        error = by_code.get(code)
        self._errors.child(self._name, error.kafka_name if error is not None else str(code)).value += 1


class RequestTimes:
    """Start times of the stages of one request."""

    __slots__ = ("_answered_at", "_handled_at", "_received_at", "_started_at", "_statistics", "_weight")

    def __init__(self, statistics: RequestStatistics, received_at: float, started_at: float, weight: int) -> None:
        self._statistics = statistics
        self._received_at = received_at
        self._started_at = started_at
        self._handled_at = 0.0
        self._answered_at = 0.0
        self._weight = weight

    def handled(self, now: float) -> None:
        """The handler has returned; a request it answered before returning has no remote time."""
        self._handled_at = now if not self._answered_at else self._answered_at

    def answered(self, now: float) -> None:
        self._answered_at = now

    def sent(self, sending_at: float, sent_at: float) -> None:
        answered_at = self._answered_at
        handled_at = self._handled_at or answered_at
        self._statistics.record_stages(
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
    ("requestqueuetimems", "waiting for the handler"),
    ("localtimems", "in the handler"),
    ("remotetimems", "between the end of the handler and the completed reply"),
    ("responsequeuetimems", "between the completed reply and its sending"),
    ("responsesendtimems", "passing the reply to the kernel"),
)


class RequestMetrics:
    def __init__(self, registry: Registry) -> None:
        self.requests = registry.counter(
            "kafka_network_requestmetrics_requests_total", "Requests answered.", ["request"]
        )
        self.times = registry.histogram(
            "kafka_network_requestmetrics_totaltimems",
            "Milliseconds from the arrival of a request to its completed reply, waiting included.",
            ["request"],
        )
        self.stages = [
            registry.histogram(
                f"kafka_network_requestmetrics_{name}", f"Milliseconds that a request spends {what}.", ["request"]
            )
            for name, what in STAGES
        ]
        self.errors = registry.counter(
            "kafka_network_requestmetrics_errors_total",
            "Requests answered with a top-level error.",
            ["request", "error"],
        )

    def statistics(self, api_key: int, name: str) -> RequestStatistics:
        return RequestStatistics(name, self)


class AuthenticationStatistics:
    """Counters of one listener, read by the metrics."""

    __slots__ = ("expired", "failed", "reauthentication_failed", "reauthentication_succeeded", "succeeded")

    def __init__(self) -> None:
        self.succeeded = 0
        self.failed = 0
        self.reauthentication_succeeded = 0
        self.reauthentication_failed = 0
        self.expired = 0
