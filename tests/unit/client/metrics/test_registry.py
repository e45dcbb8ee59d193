"""The metrics of running clients, by the names of Kafka's Java clients."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, ClassVar

import pytest

from millbeck.client import Admin, Consumer, Producer
from millbeck.client.errors import BufferFull, DeliveryTimeout
from millbeck.client.metrics import ClientMetrics, MetricName, prometheus_text
from millbeck.kernel.errors import InvalidConfig, NotEnoughReplicas
from millbeck.wire.messages.produce import ProduceRequest
from tests.unit.client.fake_cluster import FakeCluster, produce_error, simulate

CLIENT = (("client-id", "c"),)


def by_name(values: dict[MetricName, float], group: str, **tags: str) -> dict[str, float]:
    wanted = tuple(sorted((*CLIENT, *((key.replace("_", "-"), value) for key, value in tags.items()))))
    return {name.name: value for name, value in values.items() if name.group == group and name.tags == wanted}


def producer_of(cluster: FakeCluster, **settings: Any) -> Producer[bytes, bytes]:
    return Producer(
        {"bootstrap.servers": cluster.bootstrap, "client.id": "c"}, environment=cluster.environment, **settings
    )


def test_a_producer_counts_what_it_sends() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a")
        async with producer_of(cluster, buffer_memory=100_000, compression_type="gzip") as producer:
            for _ in range(100):
                producer.send_nowait("a", b"v" * 100)
            with pytest.raises(BufferFull):  # noqa: PT012
                for _ in range(1000):
                    producer.send_nowait("a", b"v" * 100)
            assert by_name(producer.metrics(), "producer-metrics")["buffer-available-bytes"] < 1000
            await producer.flush()
            await asyncio.sleep(10)
            values = producer.metrics()
            own = by_name(values, "producer-metrics")
            count = own["record-send-total"]
            assert count > 100
            assert own["record-send-rate"] == pytest.approx(count / 30)
            assert (own["buffer-total-bytes"], own["buffer-available-bytes"]) == (100_000, 100_000)
            assert (own["buffer-exhausted-total"], own["record-error-total"]) == (1, 0)
            assert own["requests-in-flight"] == 0
            assert own["batch-size-max"] < 5000
            assert 100 < own["record-size-avg"] < 120
            assert own["compression-rate-avg"] < 0.5
            assert own["request-latency-avg"] > 0
            assert own["connection-count"] == 1
            topic = by_name(values, "producer-topic-metrics", topic="a")
            assert topic["record-send-total"] == count
            assert topic["byte-total"] == pytest.approx(own["batch-size-avg"] * own["request-total"], rel=1)
            node = by_name(values, "producer-node-metrics", node_id="node-1")
            assert node["request-total"] == own["request-total"] == node["response-total"]
            assert node["outgoing-byte-total"] > topic["byte-total"]

    simulate(scenario)


def test_retries_and_errors_are_counted_by_record() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a")
        cluster.on(ProduceRequest, produce_error(NotEnoughReplicas.code))
        async with producer_of(cluster, delivery_timeout_ms=2000, request_timeout_ms=1000) as producer:
            futures = [producer.send_nowait("a", b"v") for _ in range(7)]
            with pytest.raises(DeliveryTimeout):
                await futures[-1]
            for values in (
                by_name(producer.metrics(), "producer-metrics"),
                by_name(producer.metrics(), "producer-topic-metrics", topic="a"),
            ):
                assert values["record-error-total"] == 7
                assert values["record-retry-total"] >= 7
            assert all(isinstance(future.exception(), DeliveryTimeout) for future in futures)

    simulate(scenario)


def test_a_consumer_counts_what_it_returns_and_knows_its_lag() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a")
        async with producer_of(cluster) as producer:
            for number in range(10):
                await producer.send("a", b"%d" % number)
        settings: dict[str, Any] = {"group_id": "g", "auto_offset_reset": "earliest", "enable_auto_commit": False}
        async with Consumer(
            {"bootstrap.servers": cluster.bootstrap, "client.id": "c"}, environment=cluster.environment, **settings
        ) as consumer:
            assert by_name(consumer.metrics(), "consumer-metrics")["last-poll-seconds-ago"] == -1
            consumer.subscribe(["a"])
            count = 0
            while count < 4:
                polled = await consumer.poll(max_records=4)
                count += sum(map(len, polled.values()))
            await consumer.commit()
            await asyncio.sleep(4)
            values = consumer.metrics()
            fetching = by_name(values, "consumer-fetch-manager-metrics")
            assert fetching["records-consumed-total"] == 4
            assert fetching["records-lag-max"] == 6
            assert fetching["bytes-consumed-total"] > 100
            assert fetching["fetch-latency-avg"] > 0
            partition = by_name(values, "consumer-fetch-manager-metrics", topic="a", partition="0")
            assert (partition["records-lag"], partition["records-lead"]) == (6, 4)
            assert by_name(values, "consumer-fetch-manager-metrics", topic="a")["records-consumed-total"] == 4
            group = by_name(values, "consumer-coordinator-metrics")
            assert (group["assigned-partitions"], group["rebalance-total"], group["commit-total"]) == (1, 1, 1)
            assert group["heartbeat-total"] >= 1
            assert 0 <= group["last-heartbeat-seconds-ago"] <= 4
            assert group["rebalance-latency-avg"] > 0
            assert by_name(values, "consumer-metrics")["last-poll-seconds-ago"] >= 4
            await consumer.unsubscribe()
            assert not by_name(consumer.metrics(), "consumer-fetch-manager-metrics", topic="a", partition="0")

    simulate(scenario)


class Reporter:
    started: ClassVar[list[ClientMetrics]] = []
    closed = 0

    def start(self, metrics: ClientMetrics) -> None:
        self.started.append(metrics)

    def close(self) -> None:
        type(self).closed += 1
        raise ZeroDivisionError


def test_reporters_are_started_and_closed_with_the_client(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(cluster: FakeCluster) -> None:
        names = f"{__name__}:Reporter,org.apache.kafka.common.metrics.JmxReporter"
        settings = {"bootstrap.servers": cluster.bootstrap, "client.id": "c", "metric.reporters": names}
        async with Admin(settings, environment=cluster.environment) as admin:
            await admin.list_topics()
            (metrics,) = Reporter.started
            assert by_name(metrics.read(), "admin-client-metrics")["request-total"] >= 1
            assert Reporter.closed == 0
        await admin.close()
        assert Reporter.closed == 1
        with pytest.raises(InvalidConfig, match=r"metric\.reporters"):
            async with Producer({**settings, "metric.reporters": "nobody"}, environment=cluster.environment):
                pass

    with caplog.at_level(logging.ERROR):
        simulate(scenario)
    assert "a metrics reporter failed to close" in caplog.text


def test_prometheus_text_has_one_family_for_all_clients() -> None:
    class One:
        def metrics(self) -> dict[MetricName, float]:
            return {
                MetricName("producer-metrics", "record-send-total", (("client-id", 'a"b\\'),)): 12.0,
                MetricName("producer-metrics", "batch-size-avg", CLIENT): float("nan"),
            }

    class Two:
        def metrics(self) -> dict[MetricName, float]:
            return {
                MetricName("producer-metrics", "record-send-total", CLIENT): 1234567890123.0,
                MetricName("consumer-fetch-manager-metrics", "records-lag-max", CLIENT): 0.5,
            }

    assert prometheus_text(One(), Two()) == (
        "# TYPE kafka_consumer_fetch_manager_records_lag_max gauge\n"
        'kafka_consumer_fetch_manager_records_lag_max{client_id="c"} 0.5\n'
        "# TYPE kafka_producer_record_send_total counter\n"
        'kafka_producer_record_send_total{client_id="a\\"b\\\\"} 12\n'
        'kafka_producer_record_send_total{client_id="c"} 1234567890123\n'
    )
