"""The consumer's metrics: what it fetches and returns, its lag by partition, and its membership."""

from __future__ import annotations

import math

from millbeck.client.consumer.positions import SubscriptionState, TopicPartitionState
from millbeck.client.metrics.registry import ClientMetrics, Rows

_GROUP = "consumer-metrics"
_FETCH = "consumer-fetch-manager-metrics"
_COORDINATOR = "consumer-coordinator-metrics"


class _TopicMetrics:
    __slots__ = ("bytes", "fetch_size", "records")

    def __init__(self, metrics: ClientMetrics, topic: str) -> None:
        tags = (("topic", topic),)
        self.records = metrics.meter(_FETCH, "records-consumed", tags)
        self.bytes = metrics.meter(_FETCH, "bytes-consumed", tags)
        self.fetch_size = metrics.average(_FETCH, "fetch-size", tags)


class ConsumerMetrics:
    def __init__(self, metrics: ClientMetrics, positions: SubscriptionState, *, reads_committed: bool) -> None:
        self._metrics = metrics
        self._positions = positions
        self._reads_committed = reads_committed
        self._topics: dict[str, _TopicMetrics] = {}
        self._polled_s = -math.inf
        self._heartbeat_s = -math.inf
        self._rebalanced_s = -math.inf
        self._rebalance_began_s: float | None = None
        self.records = metrics.meter(_FETCH, "records-consumed")
        self.bytes = metrics.meter(_FETCH, "bytes-consumed")
        self.fetches = metrics.meter(_FETCH, "fetch")
        self.fetch_latency = metrics.average(_FETCH, "fetch-latency")
        self.fetch_size = metrics.average(_FETCH, "fetch-size")
        self.fetch_throttle_time = metrics.average(_FETCH, "fetch-throttle-time")
        self.between_polls = metrics.average(_GROUP, "time-between-poll")
        self.commits = metrics.meter(_COORDINATOR, "commit")
        self.commit_latency = metrics.average(_COORDINATOR, "commit-latency")
        self.heartbeats = metrics.meter(_COORDINATOR, "heartbeat")
        self.rebalances = metrics.meter(_COORDINATOR, "rebalance")
        self.rebalance_latency = metrics.average(_COORDINATOR, "rebalance-latency")
        metrics.gauge(_GROUP, "last-poll-seconds-ago", lambda now_s: _seconds(now_s, self._polled_s))
        metrics.gauge(_FETCH, "records-lag-max", lambda now_s: self._lag_max())
        metrics.gauge(_COORDINATOR, "assigned-partitions", lambda now_s: len(positions))
        metrics.gauge(_COORDINATOR, "last-heartbeat-seconds-ago", lambda now_s: _seconds(now_s, self._heartbeat_s))
        metrics.gauge(_COORDINATOR, "last-rebalance-seconds-ago", lambda now_s: _seconds(now_s, self._rebalanced_s))
        metrics.family(_FETCH, self._partition_rows)

    def _topic(self, name: str) -> _TopicMetrics:
        found = self._topics.get(name)
        if found is None:
            found = self._topics[name] = _TopicMetrics(self._metrics, name)
        return found

    def polled(self, now_s: float) -> None:
        if self._polled_s > -math.inf:
            self.between_polls.add((now_s - self._polled_s) * 1000, now_s)
        self._polled_s = now_s

    def consumed(self, topic: str, record_count: int, size_bytes: int, now_s: float) -> None:
        """Record that the program got records of a topic; ``size_bytes`` is the size of their batches."""
        of_topic = self._topic(topic)
        self.records.add(record_count, now_s)
        self.bytes.add(size_bytes, now_s)
        of_topic.records.add(record_count, now_s)
        of_topic.bytes.add(size_bytes, now_s)

    def fetched(self, sizes: dict[str, int], asked_s: float, now_s: float) -> None:
        """Record a fetch response; ``sizes`` are bytes by topic."""
        self.fetches.add(1, now_s)
        self.fetch_latency.add((now_s - asked_s) * 1000, now_s)
        if sizes:
            self.fetch_size.add(sum(sizes.values()), now_s)
            for topic, size_bytes in sizes.items():
                self._topic(topic).fetch_size.add(size_bytes, now_s)

    def committed(self, asked_s: float, now_s: float) -> None:
        self.commits.add(1, now_s)
        self.commit_latency.add((now_s - asked_s) * 1000, now_s)

    def heartbeat(self, now_s: float) -> None:
        """Record a heartbeat that was answered."""
        self.heartbeats.add(1, now_s)
        self._heartbeat_s = now_s

    def rebalance_began(self, now_s: float) -> None:
        if self._rebalance_began_s is None:
            self._rebalance_began_s = now_s

    def rebalanced(self, now_s: float) -> None:
        """Record a completed rebalance."""
        began_s, self._rebalance_began_s = self._rebalance_began_s, None
        self._rebalanced_s = now_s
        self.rebalances.add(1, now_s)
        if began_s is not None:
            self.rebalance_latency.add((now_s - began_s) * 1000, now_s)

    def _lags(self) -> list[int]:
        return [lag for state in self._positions if (lag := self._lag(state)) >= 0]

    def _lag(self, state: TopicPartitionState) -> int:
        """The offsets between the position and the end of a partition; -1 if unknown."""
        end = state.end_offset(reads_committed=self._reads_committed)
        return -1 if end < 0 or not state.has_position else max(0, end - state.position)

    def _lag_max(self) -> float:
        return max(self._lags(), default=math.nan)

    def _partition_rows(self) -> Rows:
        for state in self._positions:
            tags = (("topic", state.partition.topic), ("partition", str(state.partition.partition)))
            yield "preferred-read-replica", tags, state.preferred_replica
            lag = self._lag(state)
            if lag >= 0:
                yield "records-lag", tags, lag
            if state.has_position and state.log_start_offset >= 0:
                yield "records-lead", tags, max(0, state.position - state.log_start_offset)


def _seconds(now_s: float, then_s: float) -> float:
    """The seconds since then; -1 if it never was, as in Kafka's clients."""
    return -1.0 if then_s == -math.inf else now_s - then_s
