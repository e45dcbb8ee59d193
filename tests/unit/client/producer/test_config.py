"""A producer's settings, and which of them go together."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.client.producer.config import ProducerConfig
from millbeck.client.producer.partitioner import RoundRobinPartitioner
from millbeck.kernel.errors import InvalidConfig


def parse(**settings: Any) -> ProducerConfig:
    texts = {key.replace("_", "."): value for key, value in settings.items()}
    return ProducerConfig.parse({"bootstrap.servers": "a:1"} | texts)


def test_defaults_are_those_of_the_java_client() -> None:
    config = parse()
    assert config.required_acks == -1
    assert config.enable_idempotence
    assert (config.batch_size, config.linger_ms, config.max_in_flight) == (16_384, 5, 5)
    assert (config.buffer_memory, config.max_request_size) == (33_554_432, 1_048_576)
    assert (config.max_block_ms, config.delivery_timeout_ms) == (60_000, 120_000)


@pytest.mark.parametrize(
    "name", ["roundrobin", "RoundRobinPartitioner", "org.apache.kafka.clients.producer.RoundRobinPartitioner"]
)
def test_the_partitioner_may_be_named_as_javas_class(name: str) -> None:
    unused: Any = None
    assert isinstance(parse(partitioner_class=name).partitioner(unused, unused), RoundRobinPartitioner)


@pytest.mark.parametrize(("text", "number"), [("all", -1), ("-1", -1), ("0", 0), ("1", 1)])
def test_acks(text: str, number: int) -> None:
    assert parse(acks=text).required_acks == number


@pytest.mark.parametrize("setting", [{"acks": "1"}, {"retries": 0}, {"max_in_flight_requests_per_connection": 6}])
def test_idempotence_gives_way_unless_it_was_asked_for(setting: dict[str, Any]) -> None:
    assert not parse(**setting).enable_idempotence
    with pytest.raises(InvalidConfig, match=r"enable\.idempotence=true needs"):
        parse(enable_idempotence=True, **setting)


def test_the_delivery_timeout_covers_linger_and_request() -> None:
    assert parse(request_timeout_ms=200_000).delivery_timeout_ms == 200_005
    with pytest.raises(InvalidConfig, match=r"delivery\.timeout\.ms is 10"):
        parse(delivery_timeout_ms=10)


def test_transactions_need_idempotence() -> None:
    config = parse(transactional_id="t", transaction_timeout_ms="5")
    assert (config.transactional_id, config.transaction_timeout_ms) == ("t", 5)
    for conflict in ({"acks": "1"}, {"enable_idempotence": "false"}):
        with pytest.raises(InvalidConfig, match=r"transactional\.id"):
            parse(transactional_id="t", **conflict)


@pytest.mark.parametrize(("codec", "level"), [("gzip", -1), ("lz4", 9), ("zstd", 3), ("none", None), ("snappy", None)])
def test_each_codec_has_its_level(codec: str, level: int | None) -> None:
    assert parse(compression_type=codec).compression_level == level
