"""Every topic option is honoured: one scenario for each, on a whole node, that fails when the option is ignored.

`honours` enters a scenario under its option's name. Each is run twice: as it is, and with the option ignored by the
node, which the scenario must notice. An option without a scenario fails `test_every_option_has_a_scenario`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from millbeck.kernel import option_layers
from millbeck.kernel.errors import InvalidConfig, InvalidRecord, InvalidTimestamp, MessageTooLarge
from millbeck.kernel.options import ConfigLayers, ConfigSource, Option
from millbeck.kernel.units import MIB
from millbeck.records.batch import TimestampType, split
from millbeck.records.compression import Codec
from millbeck.server.config import BROKER_OPTIONS
from millbeck.storage.config import TOPIC_OPTIONS
from millbeck.wire.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from millbeck.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from millbeck.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from millbeck.wire.messages.topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from tests.unit.server.harness.broker_harness import BrokerHarness, Client, one_batch
from tests.unit.server.harness.client_requests import NOW_MS, create, find_coordinator, partition_of, produce
from tests.unit.server.schemas.test_validation import register, with_id

Scenario = Callable[[BrokerHarness, Client], Coroutine[Any, Any, None]]
SCENARIOS: dict[str, tuple[Scenario, dict[str, str]]] = {}
TOPIC, BROKER = 2, 4
SET, DELETE = 0, 1
OFTEN = {"log_retention_check_interval_ms": "1000"}


def honours(name: str, **settings: Any) -> Callable[[Scenario], Scenario]:
    """Enter a scenario for an option; ``settings`` are the node's."""

    def enter(scenario: Scenario) -> Scenario:
        assert name not in SCENARIOS
        SCENARIOS[name] = (scenario, settings)
        return scenario

    return enter


def _options(values: dict[str, Any]) -> dict[str, Any]:
    """Arguments whose names are not known before."""
    return values


def run(name: str) -> None:
    scenario, settings = SCENARIOS[name]
    options: dict[str, Any] = settings

    async def whole(harness: BrokerHarness, client: Client, environment: object) -> None:
        await scenario(harness, client)

    BrokerHarness(**options).run(whole)


def test_every_option_has_a_scenario() -> None:
    assert sorted(SCENARIOS) == sorted(TOPIC_OPTIONS.by_name)


@pytest.mark.parametrize("name", sorted(TOPIC_OPTIONS.by_name))
def test_option_is_honoured(name: str) -> None:
    assert SCENARIOS[name][0].__name__ == f"honours_{name.replace('.', '_')}"
    run(name)


@pytest.mark.parametrize("name", sorted(TOPIC_OPTIONS.by_name))
def test_scenario_notices_that_its_option_is_ignored(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    links = option_layers._links

    def ignoring(declared: Option[Any], layers: ConfigLayers) -> Iterator[Any]:
        return iter(()) if declared is TOPIC_OPTIONS[name] else links(declared, layers)

    monkeypatch.setattr(option_layers, "_links", ignoring)
    with pytest.raises(AssertionError):
        run(name)


# What the scenarios ask and look at.


async def fetch_error(client: Client, **configs: Any) -> str:
    """The message with which a topic's creation is refused."""
    settings = [CreatableTopicConfig(key.replace("_", "."), value) for key, value in configs.items()]
    topic = CreatableTopic("refused", num_partitions=1, replication_factor=1, configs=settings)
    (result,) = (await client.ask(CreateTopicsRequest(topics=[topic]), 7)).topics
    assert result.error_code == InvalidConfig.code, result
    message: str = result.error_message
    return message


async def produce_error(client: Client, data: bytes, topic: str = "t") -> int:
    partition = PartitionProduceData(0, data)
    request = ProduceRequest(
        acks=1, timeout_ms=30_000, topic_data=[TopicProduceData(name=topic, partition_data=[partition])]
    )
    code: int = (await client.ask(request, 9)).responses[0].partition_responses[0].error_code
    return code


async def stored(client: Client, topic: str = "t") -> list[Any]:
    """The batches a consumer gets."""
    partition = FetchPartition(0, fetch_offset=0, partition_max_bytes=50_000_000)
    request = FetchRequest(
        max_wait_ms=0, min_bytes=0, max_bytes=50_000_000, topics=[FetchTopic(topic, partitions=[partition])]
    )
    response = await client.ask(request, 11)
    return list(split(response.responses[0].partitions[0].records))


async def described(client: Client, name: str, resource_type: int = TOPIC) -> dict[str, DescribeConfigsResourceResult]:
    request = DescribeConfigsRequest(
        resources=[DescribeConfigsResource(resource_type, name, None)], include_synonyms=True
    )
    (result,) = (await client.ask(request, 4)).results
    assert result.error_code == 0, result
    return {entry.name: entry for entry in result.configs}


async def alter(client: Client, name: str, value: str | None, *, resource_type: int = BROKER, of: str = "") -> None:
    config = IncrementalAlterableConfig(name, DELETE if value is None else SET, value)
    request = IncrementalAlterConfigsRequest(resources=[IncrementalAlterConfigsResource(resource_type, of, [config])])
    (response,) = (await client.ask(request, 1)).responses
    assert response.error_code == 0, response


def segment_count(harness: BrokerHarness, topic: str = "t", index: int = 0) -> int:
    return len(partition_of(harness, topic, index).log.segments)


def file_names(harness: BrokerHarness, topic: str = "t") -> list[str]:
    assert harness.node is not None
    return harness.node.environment.files.names(f"/data/{topic}-0")


def text(length: int, seed: int = 1) -> bytes:
    """Something a codec can make smaller, and the more so the more it tries."""
    words = [b"%d" % number for number in range(200)]
    chosen = random.Random(seed)
    return b" ".join(chosen.choice(words) for _ in range(length // 3))[:length]


# Compression.


@honours("compression.type")
async def honours_compression_type(harness: BrokerHarness, client: Client) -> None:
    wanted = {
        "gzip": Codec.GZIP,
        "snappy": Codec.SNAPPY,
        "lz4": Codec.LZ4,
        "zstd": Codec.ZSTD,
        "uncompressed": Codec.NONE,
    }
    for name, codec in wanted.items():
        await create(client, name, compression_type=name)
        await produce(client, text(3000), topic=name)
        await produce(client, text(3000), topic=name, codec=Codec.LZ4)
        assert [each.header.codec for each in await stored(client, name)] == [codec, codec]


async def sizes_by_level(client: Client, codec: str, *levels: str) -> list[int]:
    sizes = []
    for level in levels:
        topic = f"{codec}{level}"
        await create(client, topic, **_options({"compression_type": codec, f"compression_{codec}_level": level}))
        await produce(client, text(40_000), topic=topic)
        sizes.append((await stored(client, topic))[0].header.size_bytes)
    return sizes


@honours("compression.gzip.level")
async def honours_compression_gzip_level(harness: BrokerHarness, client: Client) -> None:
    fast, thorough = await sizes_by_level(client, "gzip", "1", "9")
    assert thorough < fast


@honours("compression.lz4.level")
async def honours_compression_lz4_level(harness: BrokerHarness, client: Client) -> None:
    fast, thorough = await sizes_by_level(client, "lz4", "1", "12")
    assert thorough < fast


@honours("compression.zstd.level")
async def honours_compression_zstd_level(harness: BrokerHarness, client: Client) -> None:
    fast, thorough = await sizes_by_level(client, "zstd", "-5", "19")
    assert thorough < fast


# What is accepted.


@honours("confluent.key.schema.validation")
async def honours_confluent_key_schema_validation(harness: BrokerHarness, client: Client) -> None:
    await create(client, confluent_key_schema_validation="true")
    assert await produce_error(client, one_batch(b"v", key=b"without a schema")) == InvalidRecord.code


@honours("confluent.key.subject.name.strategy")
async def honours_confluent_key_subject_name_strategy(harness: BrokerHarness, client: Client) -> None:
    await create(client, "_schemas", cleanup_policy="compact")
    await register(client, "t-key", 1)
    options = {"confluent_key_schema_validation": "true", "confluent_key_subject_name_strategy": "RecordNameStrategy"}
    await create(client, **_options(options))
    assert await produce_error(client, one_batch(b"v", key=with_id(1))) == InvalidRecord.code


@honours("confluent.value.schema.validation")
async def honours_confluent_value_schema_validation(harness: BrokerHarness, client: Client) -> None:
    await create(client, confluent_value_schema_validation="true")
    assert await produce_error(client, one_batch(b"without a schema")) == InvalidRecord.code


@honours("confluent.value.subject.name.strategy")
async def honours_confluent_value_subject_name_strategy(harness: BrokerHarness, client: Client) -> None:
    await create(client, "_schemas", cleanup_policy="compact")
    await register(client, "t-value", 1)
    options = {"confluent_value_schema_validation": "true"}
    await create(client, **_options(options), confluent_value_subject_name_strategy="RecordNameStrategy")
    assert await produce_error(client, one_batch(with_id(1))) == InvalidRecord.code


@honours("max.message.bytes")
async def honours_max_message_bytes(harness: BrokerHarness, client: Client) -> None:
    await create(client, max_message_bytes="1000")
    assert await produce_error(client, one_batch(bytes(800))) == 0
    assert await produce_error(client, one_batch(bytes(1000))) == MessageTooLarge.code


@honours("message.timestamp.type")
async def honours_message_timestamp_type(harness: BrokerHarness, client: Client) -> None:
    await create(client, message_timestamp_type="LogAppendTime")
    await produce(client, b"old", timestamp=5)
    (batch,) = await stored(client)
    assert batch.header.timestamp_type == TimestampType.LOG_APPEND_TIME
    assert batch.header.max_timestamp >= NOW_MS


@honours("message.timestamp.before.max.ms")
async def honours_message_timestamp_before_max_ms(harness: BrokerHarness, client: Client) -> None:
    await create(client, message_timestamp_before_max_ms="60000")
    assert await produce_error(client, one_batch(b"x", timestamp=NOW_MS - 30_000)) == 0
    assert await produce_error(client, one_batch(b"x", timestamp=NOW_MS - 90_000)) == InvalidTimestamp.code


@honours("message.timestamp.after.max.ms")
async def honours_message_timestamp_after_max_ms(harness: BrokerHarness, client: Client) -> None:
    await create(client, message_timestamp_after_max_ms="60000")
    assert await produce_error(client, one_batch(b"x", timestamp=NOW_MS + 30_000)) == 0
    assert await produce_error(client, one_batch(b"x", timestamp=NOW_MS + 90_000)) == InvalidTimestamp.code


# Segments.


@honours("segment.bytes")
async def honours_segment_bytes(harness: BrokerHarness, client: Client) -> None:
    await create(client, segment_bytes=str(MIB))
    for _ in range(3):
        await produce(client, bytes(600_000))
    assert segment_count(harness) == 3


@honours("internal.segment.bytes")
async def honours_internal_segment_bytes(harness: BrokerHarness, client: Client) -> None:
    await create(client, internal_segment_bytes="1000")
    for _ in range(3):
        await produce(client, bytes(600))
    assert segment_count(harness) == 3


@honours("segment.ms")
async def honours_segment_ms(harness: BrokerHarness, client: Client) -> None:
    await create(client, segment_ms="10000")
    for seconds in (0, 9, 11):
        await produce(client, b"x", timestamp=NOW_MS + seconds * 1000)
    assert segment_count(harness) == 2


@honours("segment.jitter.ms")
async def honours_segment_jitter_ms(harness: BrokerHarness, client: Client) -> None:
    await create(client, partitions=20, segment_ms="10000", segment_jitter_ms="10000")
    for seconds in (0, 6):
        for index in range(20):
            await produce(client, b"x", index=index, timestamp=NOW_MS + seconds * 1000)
    counts = [segment_count(harness, index=index) for index in range(20)]
    assert set(counts) == {1, 2}


async def index_entries(harness: BrokerHarness, client: Client, topic: str) -> int:
    for _ in range(20):
        await produce(client, bytes(200), topic=topic)
    return partition_of(harness, topic).log.active.offset_index().entry_count


@honours("index.interval.bytes")
async def honours_index_interval_bytes(harness: BrokerHarness, client: Client) -> None:
    await create(client, "sparse", index_interval_bytes="2000")
    await create(client, "dense", index_interval_bytes="300")
    sparse, dense = await index_entries(harness, client, "sparse"), await index_entries(harness, client, "dense")
    assert 1 <= sparse <= 3
    assert dense >= 9


@honours("segment.index.bytes")
async def honours_segment_index_bytes(harness: BrokerHarness, client: Client) -> None:
    await create(client, segment_index_bytes="64", index_interval_bytes="0")
    for number in range(20):
        await produce(client, b"x", timestamp=NOW_MS + number)
    assert segment_count(harness) > 2
    assert all(segment.offset_index().entry_count <= 8 for segment in partition_of(harness).log.segments)


@honours("preallocate")
async def honours_preallocate(harness: BrokerHarness, client: Client) -> None:
    await create(client, preallocate="true", segment_bytes=str(MIB))
    assert harness.node is not None
    files = harness.node.environment.files
    await produce(client, bytes(600_000))
    first, second = "/data/t-0/00000000000000000000.log", "/data/t-0/00000000000000000001.log"
    assert files.size(first) == MIB
    await produce(client, bytes(600_000))
    assert files.size(second) == MIB
    await asyncio.sleep(120)
    assert files.size(first) < MIB, "what was not needed is given back"


# Flushing.


@honours("flush.messages")
async def honours_flush_messages(harness: BrokerHarness, client: Client) -> None:
    await create(client, flush_messages="3")
    log = partition_of(harness).log
    for number in range(4):
        await produce(client, b"x")
        await asyncio.sleep(1)
        assert log.flushed_offset == (3 if number >= 2 else 0)


@honours("flush.ms", log_flush_scheduler_interval_ms="500")
async def honours_flush_ms(harness: BrokerHarness, client: Client) -> None:
    await create(client, "soon", flush_ms="2000")
    await create(client, "late", flush_ms="3600000")
    for topic in ("soon", "late"):
        await produce(client, b"x", topic=topic)
    await asyncio.sleep(1.2)
    assert partition_of(harness, "soon").log.flushed_offset == 0
    await asyncio.sleep(2)
    assert partition_of(harness, "soon").log.flushed_offset == 1
    assert partition_of(harness, "late").log.flushed_offset == 0


# Retention.


@honours("retention.ms", **OFTEN)
async def honours_retention_ms(harness: BrokerHarness, client: Client) -> None:
    await create(client, retention_ms="10000")
    await produce(client, b"x")
    await asyncio.sleep(5)
    assert partition_of(harness).log.log_start_offset == 0
    await asyncio.sleep(10)
    assert partition_of(harness).log.log_start_offset == 1


@honours("retention.bytes", **OFTEN)
async def honours_retention_bytes(harness: BrokerHarness, client: Client) -> None:
    await create(client, retention_bytes="1500000", segment_bytes=str(MIB))
    for _ in range(4):
        await produce(client, bytes(600_000))
    await asyncio.sleep(3)
    assert partition_of(harness).log.log_start_offset == 1


@honours("file.delete.delay.ms", **OFTEN)
async def honours_file_delete_delay_ms(harness: BrokerHarness, client: Client) -> None:
    await create(client, retention_ms="1000", file_delete_delay_ms="10000")
    await produce(client, b"x")
    await asyncio.sleep(5)
    assert "00000000000000000000.log.deleted" in file_names(harness)
    await asyncio.sleep(10)
    assert not [name for name in file_names(harness) if name.endswith(".deleted")]


@honours("cleanup.policy", **OFTEN)
async def honours_cleanup_policy(harness: BrokerHarness, client: Client) -> None:
    assert "cleanup.policy" in await fetch_error(client, cleanup_policy="shrink")
    await create(client, "kept", cleanup_policy="", retention_ms="1000")
    await create(client, "dropped", cleanup_policy="delete", retention_ms="1000")
    for topic in ("kept", "dropped"):
        await produce(client, b"x", topic=topic)
    await asyncio.sleep(5)
    assert [partition_of(harness, topic).log.log_start_offset for topic in ("kept", "dropped")] == [0, 1]


# Stored and listed, while one node or this release makes them idle.


async def assert_listed(
    client: Client, name: str, value: str, inherited: ConfigSource = ConfigSource.DEFAULT_CONFIG
) -> None:
    """A topic is given the option; it is listed with the topic as its source, also after it was changed back."""
    topic = "listed"
    await create(client, topic, **_options({name.replace(".", "_"): value}))
    entry = (await described(client, topic))[name]
    assert (entry.value, entry.config_source) == (value, ConfigSource.DYNAMIC_TOPIC_CONFIG)
    assert (entry.synonyms[0].name, entry.synonyms[0].value) == (name, value)
    await alter(client, name, None, resource_type=TOPIC, of=topic)
    entry = (await described(client, topic))[name]
    assert (entry.value, entry.config_source) == (TOPIC_OPTIONS[name].default_text, inherited)


@honours("min.insync.replicas")
async def honours_min_insync_replicas(harness: BrokerHarness, client: Client) -> None:
    await assert_listed(client, "min.insync.replicas", "2", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)
    await alter(client, "min.insync.replicas", "2", resource_type=TOPIC, of="listed")
    assert await produce(client, b"x", topic="listed", acks=-1) == 0


STORED = {
    "delete.retention.ms": "5",
    "errors.deadletterqueue.group.enable": "true",
    "follower.replication.throttled.replicas": "0:1,1:1",
    "leader.replication.throttled.replicas": "*",
    "local.retention.bytes": "5",
    "local.retention.ms": "5",
    "max.compaction.lag.ms": "5",
    "min.cleanable.dirty.ratio": "0.25",
    "min.compaction.lag.ms": "5",
    "unclean.leader.election.enable": "true",
}
REFUSED = ("remote.storage.enable", "remote.log.copy.disable", "remote.log.delete.on.disable")


def _enter_stored(name: str, value: str) -> None:
    async def scenario(harness: BrokerHarness, client: Client) -> None:
        await assert_listed(client, name, value)

    scenario.__name__ = f"honours_{name.replace('.', '_')}"
    honours(name)(scenario)


def _enter_refused(name: str) -> None:
    async def scenario(harness: BrokerHarness, client: Client) -> None:
        assert name in await fetch_error(client, **{name.replace(".", "_"): "true"})
        await create(client, "fine", **_options({name.replace(".", "_"): "false"}))
        assert (await described(client, "fine"))[name].value == "false"

    scenario.__name__ = f"honours_{name.replace('.', '_')}"
    honours(name)(scenario)


for _name, _value in STORED.items():
    _enter_stored(_name, _value)
for _name in REFUSED:
    _enter_refused(_name)


# Beyond single options.


def test_internal_topics_are_compacted_from_the_start() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: object) -> None:
        await find_coordinator(client, "g")
        await asyncio.sleep(1)
        entry = (await described(client, "__consumer_offsets"))["cleanup.policy"]
        assert (entry.value, entry.config_source) == ("compact", ConfigSource.DYNAMIC_TOPIC_CONFIG)
        assert partition_of(harness, "__consumer_offsets").log.config.is_compacted

    BrokerHarness().run(scenario)


def test_a_changed_broker_default_reaches_topics_at_once() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: object) -> None:
        await create(client)
        await create(client, "own", max_message_bytes="5000")
        await alter(client, "message.max.bytes", "1000")
        assert await produce_error(client, one_batch(bytes(2000))) == MessageTooLarge.code
        assert await produce_error(client, one_batch(bytes(2000)), "own") == 0
        await alter(client, "message.max.bytes", "3000", of="1")
        assert await produce_error(client, one_batch(bytes(2000))) == 0
        await alter(client, "message.max.bytes", None, of="1")
        await alter(client, "message.max.bytes", None)
        assert await produce_error(client, one_batch(bytes(4000))) == 0

    BrokerHarness().run(scenario)


CHANGES = {
    "compression.type": ("gzip", "compression_type", "gzip"),
    "log.segment.bytes": (str(MIB), "segment_bytes", MIB),
    "log.roll.ms": ("5000", "segment_ms", 5000),
    "log.retention.ms": ("5000", "retention_ms", 5000),
    "log.flush.interval.messages": ("7", "flush_messages", 7),
    "log.flush.interval.ms": ("7", "flush_ms", 7),
    "log.message.timestamp.type": ("LogAppendTime", "message_timestamp_type", "LogAppendTime"),
    "log.message.timestamp.before.max.ms": ("7", "message_timestamp_before_max_ms", 7),
    "log.message.timestamp.after.max.ms": ("7", "message_timestamp_after_max_ms", 7),
}
FILE: dict[str, Any] = {"log_retention_hours": "3", "log_roll_hours": "2", "log_retention_minutes": "9"}


def test_changed_broker_defaults_come_before_the_file_in_every_topic() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: object) -> None:
        await create(client)
        log = partition_of(harness).log
        assert (log.config.retention_ms, log.config.segment_ms) == (9 * 60_000, 2 * 3_600_000)
        before = log.config
        for name, (value, attribute, expected) in CHANGES.items():
            await alter(client, name, value)
            assert getattr(log.config, attribute) == expected, name
            await alter(client, name, None)
            assert log.config == before, name

    BrokerHarness(**FILE).run(scenario)


def test_topics_keep_their_options_over_a_restart() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Any) -> None:
        await create(client, retention_ms="5000", follower_replication_throttled_replicas="0:1")
        await alter(client, "log.segment.bytes", "2000000")
        harness.machine.crash()
        await harness.start()
        config = partition_of(harness).log.config
        assert (config.retention_ms, config.segment_bytes) == (5000, 2_000_000)
        entry = (await described(await harness.connect(environment), "t"))["follower.replication.throttled.replicas"]
        assert entry.value == "0:1"

    BrokerHarness().run(scenario)


def test_a_topic_lists_every_option_with_its_type_and_where_it_comes_from() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: object) -> None:
        await create(client, max_message_bytes="5000")
        await alter(client, "message.max.bytes", "4000", of="1")
        await alter(client, "message.max.bytes", "3000")
        entries = await described(client, "t")
        assert sorted(entries) == sorted(declared.name for declared in TOPIC_OPTIONS if not declared.internal)
        for name, entry in entries.items():
            assert entry.config_type == TOPIC_OPTIONS[name].kind.code
            assert not entry.read_only
            assert not entry.is_sensitive
        chain = [(link.name, link.value, link.source) for link in entries["max.message.bytes"].synonyms]
        assert chain == [
            ("max.message.bytes", "5000", ConfigSource.DYNAMIC_TOPIC_CONFIG),
            ("message.max.bytes", "4000", ConfigSource.DYNAMIC_BROKER_CONFIG),
            ("message.max.bytes", "3000", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
            ("message.max.bytes", "2000", ConfigSource.STATIC_BROKER_CONFIG),
            ("message.max.bytes", "1048588", ConfigSource.DEFAULT_CONFIG),
        ]

    BrokerHarness(message_max_bytes="2000").run(scenario)


def test_a_broker_lists_every_option() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: object) -> None:
        entries = await described(client, "1", BROKER)
        assert sorted(entries) == sorted(declared.name for declared in BROKER_OPTIONS if not declared.internal)
        assert entries["ssl.key.password"].is_sensitive
        assert entries["ssl.key.password"].value is None
        assert entries["log.dirs"].config_source == ConfigSource.STATIC_BROKER_CONFIG
        assert entries["log.dirs"].read_only
        assert not entries["num.io.threads"].read_only

    BrokerHarness().run(scenario)
