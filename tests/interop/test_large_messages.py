"""10 MB messages pass where the topic allows them, and are refused by name where it does not."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import pytest

from bench.raw import StoredBatch
from tests.interop.clients import DriverFailed, DriverSession

SIZE = 10 * 1024 * 1024
LIMIT = 12 * 1024 * 1024
MESSAGE_TOO_LARGE = 10


def test_ten_megabytes_pass_where_allowed(
    driver: DriverSession, new_topic: Callable[..., str], stored: Callable[..., list[StoredBatch]]
) -> None:
    topic = new_topic(max_message_bytes=str(LIMIT))
    driver.ask("produce", topic=topic, size_bytes_max=LIMIT, records=[{"value_size": SIZE}])
    driver.ask("produce", topic=topic, records=[{"value": "after"}])
    (large, after) = stored(topic)
    assert (large.record_count, after.record_count) == (1, 1)
    assert SIZE < large.size_bytes < SIZE + 1000
    records = driver.ask("consume", topic=topic, count=2, size_bytes_max=LIMIT)["records"]
    expected = (b"0123456789abcdef" * (SIZE // 16))[:SIZE]
    assert (records[0]["value_size"], records[0]["value_sha256"]) == (SIZE, hashlib.sha256(expected).hexdigest())
    assert records[1]["value"] == "after"


def test_a_small_fetch_limit_still_brings_the_large_message(
    driver: DriverSession, new_topic: Callable[..., str]
) -> None:
    """The first batch of a fetch is whole whatever the limits say (KIP-74), so a reader never gets stuck."""
    topic = new_topic(max_message_bytes=str(LIMIT))
    driver.ask("produce", topic=topic, size_bytes_max=LIMIT, records=[{"value_size": SIZE}])
    (record,) = driver.ask("consume", topic=topic, count=1, size_bytes_max=100_000)["records"]
    assert record["value_size"] == SIZE


def test_ten_megabytes_are_refused_where_not(
    driver: DriverSession, new_topic: Callable[..., str], stored: Callable[..., list[StoredBatch]]
) -> None:
    topic = new_topic()
    with pytest.raises(DriverFailed) as refused:
        driver.ask("produce", topic=topic, size_bytes_max=LIMIT, records=[{"value_size": SIZE}])
    assert refused.value.code == MESSAGE_TOO_LARGE
    assert stored(topic) == []
    driver.ask("produce", topic=topic, records=[{"value": "small"}])
    assert [batch.record_count for batch in stored(topic)] == [1]
