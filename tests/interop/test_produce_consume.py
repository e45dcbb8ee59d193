"""Every client writes and reads back with every codec it has, and the log holds what it said it sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bench.raw import StoredBatch
from tests.interop.clients import ALL_CODECS, DriverSession

NewTopic = Callable[..., str]
Stored = Callable[..., list[StoredBatch]]


def _told(records: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(record[name] for name in names) for record in records]


@pytest.mark.parametrize("codec", ALL_CODECS)
def test_a_codec_goes_through_and_is_the_one_stored(
    driver: DriverSession, new_topic: NewTopic, stored: Stored, codec: str
) -> None:
    if codec not in driver.client.codecs:
        pytest.skip(f"{driver.client.name} has no {codec}")
    topic = new_topic()
    # Long and alike, so that no client finds compression useless and stores the batch plain.
    sent = [{"key": f"key-{index}", "value": f"{index:05} " + "the stream turns the mill " * 20} for index in range(60)]
    answer = driver.ask("produce", topic=topic, codec=codec, records=sent)
    if "acknowledged" not in driver.client.lacks:
        assert answer["acknowledged"] == [[0, index] for index in range(len(sent))]
    batches = stored(topic)
    assert sum(batch.record_count for batch in batches) == len(sent)
    assert {batch.codec for batch in batches} == {codec}
    size_bytes = sum(batch.size_bytes for batch in batches)
    plain_bytes = sum(len(record["value"]) for record in sent)
    assert (size_bytes < plain_bytes / 2) == (codec != "none")
    records = driver.ask("consume", topic=topic, count=len(sent))["records"]
    assert _told(records, "key", "value") == _told(sent, "key", "value")
    assert _told(records, "offset") == [(index,) for index in range(len(sent))]


@pytest.mark.parametrize("codec", ALL_CODECS)
def test_what_librdkafka_wrote_every_client_reads(
    driver: DriverSession, new_topic: NewTopic, node: Any, codec: str
) -> None:
    if codec not in driver.client.codecs:
        pytest.skip(f"{driver.client.name} has no {codec}")
    from confluent_kafka import Producer

    topic = new_topic()
    producer = Producer({"bootstrap.servers": node.bootstrap, "compression.type": codec, "linger.ms": 50})
    values = [f"{index} " + "mill " * 50 for index in range(200)]
    for value in values:
        producer.produce(topic, value=value, partition=0)
    assert producer.flush(30) == 0
    records = driver.ask("consume", topic=topic, count=len(values))["records"]
    assert [record["value"] for record in records] == values


@pytest.mark.parametrize("acks", ["1", "all"])
def test_acks(driver: DriverSession, new_topic: NewTopic, stored: Stored, acks: str) -> None:
    topic = new_topic(partitions=2)
    sent = [{"partition": index % 2, "value": f"value {index}"} for index in range(10)]
    driver.ask("produce", topic=topic, acks=acks, records=sent)
    for partition in (0, 1):
        assert sum(batch.record_count for batch in stored(topic, partition)) == 5
        records = driver.ask("consume", topic=topic, partition=partition, count=5)["records"]
        assert [record["value"] for record in records] == [f"value {index}" for index in range(partition, 10, 2)]


def test_keys_values_and_headers_come_back_as_they_went(driver: DriverSession, new_topic: NewTopic) -> None:
    topic = new_topic()
    sent: list[dict[str, Any]] = [
        {"key": "k", "value": "v", "headers": [["one", "1"], ["two", "2"]]},
        {"key": "tombstone", "value": None, "headers": []},
        {"key": None, "value": "no key", "headers": []},
        {"key": "ключ", "value": "значение ✓", "headers": [["имя", "ünïcode"]]},
        {"key": "twice", "value": "v", "headers": [["same", "first"], ["other", "between"], ["same", "second"]]},
    ]
    if "null headers" not in driver.client.lacks:
        sent.append({"key": "null header", "value": "v", "headers": [["empty", ""], ["null", None]]})
    driver.ask("produce", topic=topic, records=sent)
    records = driver.ask("consume", topic=topic, count=len(sent))["records"]
    assert _told(records, "key", "value") == _told(sent, "key", "value")
    for record, original in zip(records, sent, strict=True):
        headers = original["headers"]
        if "headers grouped by name" in driver.client.quirks:
            assert sorted(record["headers"]) == sorted(headers)
        else:
            assert record["headers"] == headers


def test_timestamps_of_the_producer_are_kept(driver: DriverSession, new_topic: NewTopic, stored: Stored) -> None:
    if reason := driver.client.lacks.get("timestamps"):
        pytest.skip(reason)
    topic = new_topic()
    times = [1_700_000_000_000, 1_700_000_000_500, 1_700_000_000_250]
    driver.ask("produce", topic=topic, records=[{"value": "v", "timestamp_ms": one} for one in times])
    records = driver.ask("consume", topic=topic, count=3)["records"]
    assert [record["timestamp_ms"] for record in records] == times
    assert max(batch.max_timestamp_ms for batch in stored(topic)) == max(times)


def test_log_append_time_replaces_them(driver: DriverSession, new_topic: NewTopic, stored: Stored) -> None:
    topic = new_topic(message_timestamp_type="LogAppendTime")
    driver.ask("produce", topic=topic, records=[{"value": "v"} for _ in range(3)])
    records = driver.ask("consume", topic=topic, count=3)["records"]
    batches = stored(topic)
    assert all(batch.log_append_time for batch in batches)
    assert {record["timestamp_ms"] for record in records} == {batch.max_timestamp_ms for batch in batches}


def test_a_read_starts_at_any_offset(driver: DriverSession, new_topic: NewTopic) -> None:
    topic = new_topic()
    driver.ask("produce", topic=topic, codec="gzip", records=[{"value": str(index)} for index in range(30)])
    records = driver.ask("consume", topic=topic, offset=17, count=13)["records"]
    assert [(record["offset"], record["value"]) for record in records] == [(at, str(at)) for at in range(17, 30)]
