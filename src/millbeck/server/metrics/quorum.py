"""Metrics of the metadata quorum under Kafka's names; commit rates and latencies are derived from published images."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from millbeck.kernel.environment import Clock
from millbeck.metadata.delta import MetadataDelta
from millbeck.metadata.image import MetadataImage

if TYPE_CHECKING:
    from millbeck.kernel.metrics import Registry
    from millbeck.server.metadata.quorum_driver import QuorumDriver

WINDOW_SECONDS: Final = 30.0
COMMITS_KEPT_MAX: Final = 1000


class CommitStats:
    """The commits of the last 30 seconds: the number of records, and the latency from append to publication."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._started_ms = clock.wall_ms()
        self._offset = -1
        self._recent: deque[tuple[float, int, int]] = deque(maxlen=COMMITS_KEPT_MAX)

    async def published(self, image: MetadataImage, delta: MetadataDelta) -> None:
        # Records from before the start of this node have no meaningful latency.
        if image.timestamp_ms >= self._started_ms:
            latency_ms = max(0, self._clock.wall_ms() - image.timestamp_ms)
            self._recent.append((self._clock.monotonic(), image.offset - self._offset, latency_ms))
        self._offset = image.offset

    def _now(self) -> list[tuple[float, int, int]]:
        oldest = self._clock.monotonic() - WINDOW_SECONDS
        while self._recent and self._recent[0][0] < oldest:
            self._recent.popleft()
        return list(self._recent)

    def records_rate(self) -> float:
        return sum(count for _, count, _ in self._now()) / WINDOW_SECONDS

    def latency_average_ms(self) -> float:
        recent = self._now()
        return sum(latency_ms for _, _, latency_ms in recent) / len(recent) if recent else 0.0

    def latency_max_ms(self) -> float:
        return max((latency_ms for _, _, latency_ms in self._now()), default=0)


def declare_quorum_metrics(registry: Registry, quorum: QuorumDriver, clock: Clock) -> None:
    """Declare the quorum's metrics; must be called before the quorum starts."""
    commits = CommitStats(clock)
    quorum.subscribe(commits.published)
    single: tuple[tuple[str, str, Callable[[], float]], ...] = (
        ("current_leader", "Node id of the metadata quorum's leader, -1 when unknown.", lambda: quorum.leader.node_id),
        ("current_epoch", "Current epoch of the quorum.", lambda: quorum.epoch),
        (
            "current_vote",
            "Node id that this node voted for in the current epoch, -1 for none.",
            lambda: _vote(quorum),
        ),
        ("high_watermark", "High watermark of the metadata log.", lambda: quorum.high_watermark),
        ("log_end_offset", "Log end offset of the metadata log.", lambda: quorum.log.end_offset),
        ("append_records_rate", "Records committed per second over the last 30 seconds.", commits.records_rate),
        (
            "commit_latency_avg",
            "Average milliseconds from append to commit over the last 30 seconds.",
            commits.latency_average_ms,
        ),
        (
            "commit_latency_max",
            "Maximum milliseconds from append to commit over the last 30 seconds.",
            commits.latency_max_ms,
        ),
    )
    for name, help_text, read in single:
        registry.gauge(f"kafka_server_raftmetrics_{name}", help_text).child().read = read
    registry.callback_gauge(
        "kafka_server_raftmetrics_current_state",
        "The node's role in the quorum.",
        ["current_state"],
        lambda: [] if quorum.machine is None else [((quorum.machine.role.value,), 1)],
    )


def _vote(quorum: QuorumDriver) -> int:
    if quorum.machine is None:
        return -1
    # The quorum state of a leader does not record its vote for itself.
    return quorum.node_id if quorum.machine.is_leader else quorum.machine.state.voted_id
