"""Offsets by time, the ends of a log, and committed offsets, as every client asks for them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.interop.clients import DriverSession

NewTopic = Callable[..., str]
BASE_MS = 1_700_000_000_000


def test_offsets_by_time(driver: DriverSession, new_topic: NewTopic, node: object) -> None:
    topic = new_topic()
    writer = _writer(driver, node)
    try:
        for index in range(10):
            writer.ask("produce", topic=topic, records=[{"value": str(index), "timestamp_ms": BASE_MS + 100 * index}])
    finally:
        if writer is not driver:
            writer.close()
    asked = [BASE_MS - 1, BASE_MS, BASE_MS + 1, BASE_MS + 450, BASE_MS + 900, BASE_MS + 901]
    none = 10 if "end offset when no record is that young" in driver.client.quirks else -1
    answer = driver.ask("offsets_for_times", topic=topic, partition=0, timestamps_ms=asked)
    assert answer["offsets"] == [0, 0, 1, 5, 9, none]


def _writer(driver: DriverSession, node: object) -> DriverSession:
    """The driver itself, or librdkafka's where the client cannot set timestamps."""
    from tests.interop.clients import CLIENTS

    if "timestamps" not in driver.client.lacks:
        return driver
    return DriverSession(CLIENTS["confluent-kafka"], node.bootstrap)  # type: ignore[attr-defined]


def test_offsets_by_time_inside_a_compressed_batch(driver: DriverSession, new_topic: NewTopic, node: object) -> None:
    topic = new_topic()
    writer = _writer(driver, node)
    times = [BASE_MS, BASE_MS + 300, BASE_MS + 100, BASE_MS + 500]
    try:
        records = [{"value": "the same " * 20, "timestamp_ms": one} for one in times]
        writer.ask("produce", topic=topic, codec="gzip", records=records)
    finally:
        if writer is not driver:
            writer.close()
    asked = [BASE_MS + 50, BASE_MS + 301]
    answer = driver.ask("offsets_for_times", topic=topic, partition=0, timestamps_ms=asked)
    assert answer["offsets"] == [1, 3]


def test_the_ends_of_a_log(driver: DriverSession, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=2)
    assert driver.ask("watermarks", topic=topic, partition=1) == {"low": 0, "high": 0}
    driver.ask("produce", topic=topic, records=[{"value": "v", "partition": 1} for _ in range(7)])
    assert driver.ask("watermarks", topic=topic, partition=1) == {"low": 0, "high": 7}
    assert driver.ask("watermarks", topic=topic, partition=0) == {"low": 0, "high": 0}


def test_a_committed_offset_is_found_again(driver: DriverSession, new_topic: NewTopic) -> None:
    if reason := driver.client.lacks.get("commit"):
        pytest.skip(reason)
    topic = new_topic(partitions=2)
    driver.ask("produce", topic=topic, records=[{"value": "v"} for _ in range(5)])
    group = f"committed-{topic}"
    assert driver.ask("committed", group=group, topic=topic, partition=0) == {"offset": -1}
    driver.ask("commit", group=group, topic=topic, partition=0, offset=3)
    assert driver.ask("committed", group=group, topic=topic, partition=0) == {"offset": 3}
    driver.ask("commit", group=group, topic=topic, partition=0, offset=5)
    assert driver.ask("committed", group=group, topic=topic, partition=0) == {"offset": 5}
    assert driver.ask("committed", group=group, topic=topic, partition=1) == {"offset": -1}
