"""Metrics pushed to brokers that ask for them: what is pushed, when, and what ends it."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterator
from typing import Any

import pytest

from millbeck.client import Consumer, Producer
from millbeck.client.errors import UnsupportedByBroker
from millbeck.client.metrics.registry import MetricName
from millbeck.client.telemetry.otlp import Deltas, metrics_data, otlp_name, selected
from millbeck.kernel.errors import InvalidRequest, UnknownSubscriptionId
from millbeck.kernel.ids import ZERO_UUID, uuid_text
from millbeck.records.compression import Codec, decompress
from millbeck.wire.messages.telemetry import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
    PushTelemetryRequest,
    PushTelemetryResponse,
)
from tests.unit.client.fake_cluster import Call, FakeCluster, simulate

INSTANCE_ID = bytes(range(16))


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a protobuf message: numbers, doubles as bytes, and the rest as bytes."""

    place = 0

    def varint() -> int:
        nonlocal place
        value = shift = 0
        while True:
            byte = data[place]
            place += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while place < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            size = 8 if key & 7 == 1 else varint()
            yield key >> 3, data[place : place + size]
            place += size


def part(data: bytes, *numbers: int) -> list[Any]:
    found = [data]
    for number in numbers:
        found = [value for one in found for at, value in fields(one) if at == number]
    return found


def attributes(data: bytes, number: int) -> dict[str, str]:
    return {part(one, 1)[0].decode(): part(one, 2, 1)[0].decode() for one in part(data, number)}


def values_of(pushed: bytes) -> dict[str, tuple[float, dict[str, str]]]:
    """The values and attributes of the points, by metric."""
    found = {}
    for metric in part(pushed, 1, 2, 2):
        (point,) = part(metric, 5, 1) or part(metric, 7, 1)
        (value,) = struct.unpack("<d", part(point, 4)[0])
        found[part(metric, 1)[0].decode()] = value, attributes(point, 7)
    return found


class Collector:
    """Brokers that collect metrics."""

    def __init__(self, fake: FakeCluster, *, wanted: list[str], is_delta: bool = True) -> None:
        fake.ranges[71] = fake.ranges[72] = (0, 0)
        self.wanted = wanted
        self.is_delta = is_delta
        self.subscription_id = 1
        self.codecs = [int(Codec.GZIP)]
        self.bytes_max = 100_000
        self.pushed: list[tuple[float, PushTelemetryRequest]] = []
        fake.on(GetTelemetrySubscriptionsRequest, self.subscription)
        fake.on(PushTelemetryRequest, self.push)
        self.asked: list[bytes] = []

    def subscription(self, call: Call) -> GetTelemetrySubscriptionsResponse:
        self.asked.append(call.message.client_instance_id)
        return GetTelemetrySubscriptionsResponse(
            client_instance_id=INSTANCE_ID,
            subscription_id=self.subscription_id,
            accepted_compression_types=self.codecs,
            push_interval_ms=10_000,
            telemetry_max_bytes=self.bytes_max,
            delta_temporality=self.is_delta,
            requested_metrics=self.wanted,
        )

    def push(self, call: Call) -> PushTelemetryResponse:
        request: PushTelemetryRequest = call.message
        if request.subscription_id != self.subscription_id:
            return PushTelemetryResponse(error_code=UnknownSubscriptionId.code)
        self.pushed.append((asyncio.get_running_loop().time(), request))
        return PushTelemetryResponse()

    def values(self, number: int) -> dict[str, tuple[float, dict[str, str]]]:
        request = self.pushed[number][1]
        return values_of(decompress(Codec(request.compression_type), request.metrics, 1 << 20))


SENT = "org.apache.kafka.producer.record.send.total"


def test_totals_are_pushed_every_interval_and_when_the_client_closes() -> None:
    async def scenario(fake: FakeCluster) -> None:
        fake.add_topic("t")
        collector = Collector(fake, wanted=["org.apache.kafka.producer.record.send."])
        loop = asyncio.get_running_loop()
        begin_s = loop.time()
        async with Producer(
            {"bootstrap.servers": fake.bootstrap, "client.id": "shop", "client.rack": "a"}, environment=fake.environment
        ) as producer:
            await producer.send("t", b"1")
            assert await producer.client_instance_id() == uuid_text(INSTANCE_ID)
            await asyncio.sleep(16)
            assert [len(collector.pushed), collector.asked] == [1, [ZERO_UUID]]
            assert 5 <= collector.pushed[0][0] - begin_s <= 16
            assert collector.values(0)[SENT] == (1.0, {"client_id": "shop"})
            assert all(name.startswith("org.apache.kafka.producer.record.send.") for name in collector.values(0))
            await producer.send("t", b"2")
            await producer.send("t", b"3")
            await asyncio.sleep(10)
            assert collector.values(1)[SENT][0] == 2.0
            assert collector.pushed[1][0] - collector.pushed[0][0] == pytest.approx(10, abs=0.5)
        assert [request.terminating for _, request in collector.pushed] == [False, False, True]
        data = decompress(Codec.GZIP, collector.pushed[0][1].metrics, 1 << 20)
        (resource,) = part(data, 1, 1)
        assert attributes(resource, 1) == {"client_rack": "a"}

    simulate(scenario)


def test_totals_can_be_cumulative() -> None:
    async def scenario(fake: FakeCluster) -> None:
        fake.add_topic("t")
        collector = Collector(fake, wanted=[""], is_delta=False)
        async with Producer({"bootstrap.servers": fake.bootstrap}, environment=fake.environment) as producer:
            await producer.send("t", b"1")
            await asyncio.sleep(16)
            await producer.send("t", b"2")
            await asyncio.sleep(10)
        assert [collector.values(number)[SENT][0] for number in (0, 1)] == [1.0, 2.0]

    simulate(scenario)


def test_a_new_subscription_is_asked_for_with_the_same_instance_id() -> None:
    async def scenario(fake: FakeCluster) -> None:
        fake.add_topic("t")
        collector = Collector(fake, wanted=[SENT])
        async with Producer({"bootstrap.servers": fake.bootstrap}, environment=fake.environment) as producer:
            await producer.send("t", b"1")
            await asyncio.sleep(16)
            collector.subscription_id = 2
            collector.codecs = [99, int(Codec.ZSTD)]
            await asyncio.sleep(30)
            assert collector.asked == [ZERO_UUID, INSTANCE_ID]
            assert collector.pushed[-1][1].compression_type == Codec.ZSTD
            assert collector.pushed[-1][1].subscription_id == 2

    simulate(scenario)


def test_nothing_is_pushed_that_was_not_asked_for_or_is_too_large() -> None:
    async def scenario(fake: FakeCluster) -> None:
        fake.add_topic("t")
        collector = Collector(fake, wanted=[])
        async with Producer({"bootstrap.servers": fake.bootstrap}, environment=fake.environment) as producer:
            await producer.send("t", b"1")
            await asyncio.sleep(60)
            assert not collector.pushed
            assert len(collector.asked) > 3
            collector.wanted, collector.bytes_max = [""], 10
            await asyncio.sleep(60)
            assert not collector.pushed
            collector.bytes_max = 100_000
            await asyncio.sleep(60)
            assert collector.pushed

    simulate(scenario)


def test_an_error_that_cannot_go_away_ends_the_pushing_and_not_the_client() -> None:
    async def scenario(fake: FakeCluster) -> None:
        fake.add_topic("t")
        collector = Collector(fake, wanted=[""])
        fake.on(
            GetTelemetrySubscriptionsRequest,
            lambda _: GetTelemetrySubscriptionsResponse(error_code=InvalidRequest.code),
        )
        async with Producer({"bootstrap.servers": fake.bootstrap}, environment=fake.environment) as producer:
            await producer.send("t", b"1")
            with pytest.raises(InvalidRequest):
                await producer.client_instance_id()
            await asyncio.sleep(700)
            await producer.send("t", b"2")
        assert not collector.pushed
        assert len(fake.asked(GetTelemetrySubscriptionsRequest)) == 1

    simulate(scenario)


@pytest.mark.parametrize("is_pushing", [True, False])
def test_brokers_that_collect_nothing_are_not_asked(is_pushing: bool) -> None:
    async def scenario(fake: FakeCluster) -> None:
        fake.add_topic("t")
        if not is_pushing:
            Collector(fake, wanted=[""])
        async with Consumer(
            {"bootstrap.servers": fake.bootstrap}, environment=fake.environment, enable_metrics_push=is_pushing
        ) as consumer:
            await consumer.topic("t")
            kind, words = (
                (UnsupportedByBroker, "metric.reporters") if is_pushing else (InvalidRequest, "enable.metrics.push")
            )
            with pytest.raises(kind, match=words):
                await consumer.client_instance_id()
        assert not fake.asked(GetTelemetrySubscriptionsRequest)

    simulate(scenario)


def test_names_kinds_and_long_texts() -> None:
    sent = MetricName("producer-metrics", "record-send-total", (("client-id", "x" * 300),))
    age = MetricName("producer-node-metrics", "request-latency-avg", ())
    missing = MetricName("producer-metrics", "record-size-avg", ())
    assert otlp_name(age) == "org.apache.kafka.producer.node.request.latency.avg"
    points = selected({sent: 3.0, age: 1.5, missing: float("nan")}, [""])
    data = metrics_data(Deltas().of(points), {"group_id": "g", "client_rack": ""}, is_delta=True, start_ns=1, now_ns=2)
    assert values_of(data) == {otlp_name(sent): (3.0, {"client_id": "x" * 300}), otlp_name(age): (1.5, {})}
    (total,) = part(data, 1, 2, 2, 7)
    assert part(total, 2) == [1]
    assert part(total, 3) == [1]
    (point,) = part(total, 1)
    assert [struct.unpack("<Q", part(point, number)[0])[0] for number in (2, 3)] == [1, 2]
    assert attributes(part(data, 1, 1)[0], 1) == {"group_id": "g"}
