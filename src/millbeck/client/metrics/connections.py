"""The metrics of a client's connections, for the client and by broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from millbeck.client.addresses import Address
from millbeck.client.metrics.registry import ClientMetrics, Rows
from millbeck.client.metrics.sampled import Average, Meter

_NO_NODE = "node--1"
"""The tag of an address that belongs to no known broker, as Kafka's clients name bootstrap servers."""


class Traffic:
    """Requests and responses of one client or of its connections to one address."""

    __slots__ = ("incoming", "latency", "outgoing", "request", "request_size", "response")

    def __init__(self, metrics: ClientMetrics) -> None:
        self.incoming = Meter(metrics.window)
        self.outgoing = Meter(metrics.window)
        self.request = Meter(metrics.window)
        self.response = Meter(metrics.window)
        self.request_size = Average(metrics.window)
        self.latency = Average(metrics.window)

    def rows(self, now_s: float) -> Iterator[tuple[str, float]]:
        for name in ("incoming-byte", "outgoing-byte", "request", "response"):
            meter: Meter = getattr(self, name.removesuffix("-byte"))
            yield f"{name}-rate", meter.rate(now_s)
            yield f"{name}-total", meter.total
        for name, average in (("request-size", self.request_size), ("request-latency", self.latency)):
            yield f"{name}-avg", average.average(now_s)
            yield f"{name}-max", average.maximum(now_s)


class NodeMeter:
    """Counts the traffic of the connections to one address."""

    __slots__ = ("_client", "_node")

    def __init__(self, client: Traffic, node: Traffic) -> None:
        self._client = client
        self._node = node

    def sent(self, size_bytes: int, now_s: float) -> None:
        for traffic in (self._client, self._node):
            traffic.outgoing.add(size_bytes, now_s)
            traffic.request.add(1, now_s)
            traffic.request_size.add(size_bytes, now_s)

    def received(self, size_bytes: int, now_s: float) -> None:
        self._client.incoming.add(size_bytes, now_s)
        self._node.incoming.add(size_bytes, now_s)

    def answered(self, asked_s: float, now_s: float) -> None:
        latency_ms = (now_s - asked_s) * 1000
        for traffic in (self._client, self._node):
            traffic.response.add(1, now_s)
            traffic.latency.add(latency_ms, now_s)


class ConnectionMetrics:
    def __init__(
        self, metrics: ClientMetrics, open_count: Callable[[], int], node_id: Callable[[Address], int | None]
    ) -> None:
        group = f"{metrics.kind}-metrics"
        self._metrics = metrics
        self._node_id = node_id
        self._client = Traffic(metrics)
        self._nodes: dict[Address, Traffic] = {}
        self.created = metrics.meter(group, "connection-creation")
        self.closed = metrics.meter(group, "connection-close")
        metrics.gauge(group, "connection-count", lambda now_s: open_count())
        metrics.family(group, self._client_rows)
        metrics.family(f"{metrics.kind}-node-metrics", self._node_rows)

    def of(self, address: Address) -> NodeMeter:
        node = self._nodes.get(address)
        if node is None:
            node = self._nodes[address] = Traffic(self._metrics)
        return NodeMeter(self._client, node)

    def forget(self, known: set[Address]) -> None:
        """Drop the addresses that are no longer in use."""
        self._nodes = {address: traffic for address, traffic in self._nodes.items() if address in known}

    def _client_rows(self) -> Rows:
        return [(name, (), value) for name, value in self._client.rows(self._metrics.now_s())]

    def _node_rows(self) -> Rows:
        now_s = self._metrics.now_s()
        for address, traffic in self._nodes.items():
            node_id = self._node_id(address)
            tags = (("node-id", _NO_NODE if node_id is None else f"node-{node_id}"),)
            for name, value in traffic.rows(now_s):
                yield name, tags, value
