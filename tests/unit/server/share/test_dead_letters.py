"""Dead letters of share groups on a whole node: which there are, what stands in them, and where they may be."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, cast

import pytest

from millbeck.coordinator.share.partition.changes import DeadRecords
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import InvalidConfig, NotEnoughReplicas
from millbeck.kernel.ids import TopicPartition
from millbeck.records import batch
from millbeck.records.record import Record
from millbeck.replication.partition import Partition
from millbeck.server.config.sections.share_groups import DeadLetterOptions
from millbeck.server.share import dead_letters
from millbeck.server.share.dead_letters import DeadLetter, batches_of, check_topic, headers_of
from millbeck.wire.messages.configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from millbeck.wire.messages.nodes import FeatureUpdateKey, UpdateFeaturesRequest
from millbeck.wire.messages.topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.share_member import (
    ACCEPT,
    GAP,
    REJECT,
    RELEASE,
    ShareMember,
    acquired,
    begin,
    produce,
    settled,
    share_harness,
)

DEAD = "dlq.g"
NAME = "errors.deadletterqueue.topic.name"
COPY = "errors.deadletterqueue.copy.record.enable"
TOPIC_RESOURCE, GROUP_RESOURCE = 2, 32


def harness_with_dead_letters(**settings: str) -> BrokerHarness:
    return share_harness(
        **{"unstable.feature.versions.enable": "true", "group.share.delivery.count.limit": "2", **settings}
    )


async def alter(client: Client, kind: int, name: str, **options: str) -> int:
    configs = [IncrementalAlterableConfig(key.replace("_", "."), 0, value) for key, value in options.items()]
    request = IncrementalAlterConfigsRequest([IncrementalAlterConfigsResource(kind, name, configs)])
    return int((await client.ask(request, 1)).responses[0].error_code)


async def raise_share_version(client: Client, level: int = 2) -> int:
    update = UpdateFeaturesRequest(10_000, [FeatureUpdateKey("share.version", level, upgrade_type=1)])
    return int((await client.ask(update, 2)).error_code)


async def create_dead(client: Client, name: str = DEAD, **configs: str) -> None:
    options = {"errors.deadletterqueue.group.enable": "true"} | configs
    topic = CreatableTopic(name, 1, 1, configs=[CreatableTopicConfig(key, value) for key, value in options.items()])
    assert (await client.ask(CreateTopicsRequest([topic]), 7)).topics[0].error_code == 0


async def prepared(
    harness: BrokerHarness, client: Client, environment: Environment, **group: str
) -> tuple[ShareMember, bytes]:
    assert await raise_share_version(client) == 0
    options = {NAME.replace(".", "_"): DEAD} | group
    assert await alter(client, GROUP_RESOURCE, "g", **options) == 0
    return await begin(harness, client, environment)


def letters(harness: BrokerHarness, name: str = DEAD) -> list[Record]:
    assert harness.node is not None
    topic = harness.node.broker.topics.by_name.get(name)
    if topic is None:
        return []
    found: list[Record] = []
    for _, partition in sorted(topic.partitions.items()):
        piece = partition.log.read(0, size_bytes_max=1 << 20, upto_offset=partition.high_watermark)
        if piece is not None:
            for each in batch.split(piece.file.read(piece.size, piece.position)):
                found += batch.records_of(bytes(each.data))
            piece.release()
    return found


def told(record: Record) -> dict[str, str]:
    return {name.removeprefix("__dlq.errors."): (value or b"").decode() for name, value in record.headers}


async def until_over(harness: BrokerHarness, topic_id: bytes, start_offset: int) -> None:
    """Until the group's start has passed everything before it."""
    assert harness.node is not None
    for _ in range(300):
        led = harness.node.broker.shares.known("g", topic_id, 0)
        if led is not None and led.machine is not None and led.machine.start_offset >= start_offset:
            return
        await asyncio.sleep(0.1)
    raise AssertionError("what was given up is not over")


def test_what_is_rejected_is_written_to_the_groups_topic_and_then_over() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create_dead(client)
        member, topic_id = await prepared(harness, client, environment)
        assert acquired(await settled(member, topic_id)) == [(0, 9, 1)]
        await member.acknowledge(topic_id, (0, 2, [REJECT]), (3, 3, [GAP]), (4, 9, [ACCEPT]))
        await until_over(harness, topic_id, 10)
        found = letters(harness)
        assert [told(each)["offset"] for each in found] == ["0", "1", "2"]
        assert told(found[0]) == {
            "topic": "t",
            "partition": "0",
            "offset": "0",
            "group": "g",
            "delivery.count": "1",
            "message": "Offset rejected by client.",
        }
        assert {(each.key, each.value) for each in found} == {(None, None)}
        assert harness.node is not None
        counters = harness.node.broker.shares.counters.of_group("g")
        assert (counters.dead_letters, counters.dead_letter_failures) == (3, 0)
        assert counters.dead_letter_requests >= 1

    harness_with_dead_letters().run(scenario)


def test_the_last_delivery_and_a_copy_of_the_record() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create_dead(client)
        member, topic_id = await prepared(harness, client, environment, **{COPY.replace(".", "_"): "true"})
        await settled(member, topic_id)
        await member.acknowledge(topic_id, (0, 8, [ACCEPT]), (9, 9, [RELEASE]))
        assert acquired(await member.fetch(topic_id, max_wait_ms=500)) == [(9, 9, 2)]
        # Nobody says anything: the lock runs out.
        await until_over(harness, topic_id, 10)
        (letter,) = letters(harness)
        assert letter.value == b"9"
        assert told(letter)["delivery.count"] == "2"
        assert told(letter)["message"] == "Offset delivery count exceeded the threshold."
        assert acquired(await member.fetch(topic_id)) == []

    harness_with_dead_letters().run(scenario)


def test_a_topic_that_may_not_be_used_gets_nothing_and_holds_nobody_up() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create_dead(client, **{"errors.deadletterqueue.group.enable": "false"})
        member, topic_id = await prepared(harness, client, environment)
        await settled(member, topic_id)
        await member.acknowledge(topic_id, (0, 4, [REJECT]))
        await until_over(harness, topic_id, 5)
        assert letters(harness) == []
        assert await alter(client, TOPIC_RESOURCE, DEAD, errors_deadletterqueue_group_enable="true") == 0
        await member.acknowledge(topic_id, (5, 9, [REJECT]))
        await until_over(harness, topic_id, 10)
        assert [told(each)["offset"] for each in letters(harness)] == ["5", "6", "7", "8", "9"]

    harness_with_dead_letters().run(scenario)


def test_the_topic_is_made_where_that_is_allowed() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        member, topic_id = await prepared(harness, client, environment)
        await settled(member, topic_id)
        await member.acknowledge(topic_id, (0, 9, [REJECT]))
        await until_over(harness, topic_id, 10)
        assert len(letters(harness)) == 10
        assert harness.node is not None
        made = harness.node.broker.image.configs.of_topic(DEAD)
        assert made == {"errors.deadletterqueue.group.enable": "true", "message.timestamp.type": "CreateTime"}

    harness_with_dead_letters(**{"errors.deadletterqueue.auto.create.topics.enable": "true"}).run(scenario)


def test_below_share_version_2_what_is_given_up_is_simply_over() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create_dead(client)
        assert await alter(client, GROUP_RESOURCE, "g", **{NAME.replace(".", "_"): DEAD}) == 0
        member, topic_id = await begin(harness, client, environment)
        await settled(member, topic_id)
        await member.acknowledge(topic_id, (0, 4, [REJECT]))
        await until_over(harness, topic_id, 5)
        assert letters(harness) == []
        # From then on, for who is here already as well.
        assert await raise_share_version(client) == 0
        await asyncio.sleep(0.1)
        await member.acknowledge(topic_id, (5, 9, [REJECT]))
        await until_over(harness, topic_id, 10)
        assert len(letters(harness)) == 5

    harness_with_dead_letters().run(scenario)


def test_only_where_unstable_features_are_offered() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert await raise_share_version(client) != 0

    share_harness().run(scenario)


def test_what_was_on_its_way_is_written_by_the_leader_that_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create_dead(client)
        member, topic_id = await prepared(harness, client, environment)
        await settled(member, topic_id)
        send = dead_letters.DeadLetterWriter._send

        async def nobody_takes_it(self: Any, letter: DeadLetter, data: bytes) -> None:
            raise NotEnoughReplicas

        monkeypatch.setattr(dead_letters.DeadLetterWriter, "_send", nobody_takes_it)
        await member.acknowledge(topic_id, (0, 4, [REJECT]), (5, 9, [ACCEPT]))
        await asyncio.sleep(0.5)
        harness.machine.crash()
        monkeypatch.setattr(dead_letters.DeadLetterWriter, "_send", send)
        await harness.start()
        again = ShareMember(await harness.connect(environment))
        await asyncio.sleep(1)
        assert acquired(await again.fetch(topic_id, max_wait_ms=1000)) == [], "nobody is given it meanwhile"
        await until_over(harness, topic_id, 10)
        assert [told(each)["offset"] for each in letters(harness)] == ["0", "1", "2", "3", "4"]
        assert {told(each)["message"] for each in letters(harness)} == {"Offset rejected by client."}

    harness_with_dead_letters(**{"log.flush.interval.messages": "1"}).run(scenario)


def test_what_nobody_takes_is_given_up_after_some_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create_dead(client)
        member, topic_id = await prepared(harness, client, environment)
        await settled(member, topic_id)

        async def nobody_takes_it(self: Any, letter: DeadLetter, data: bytes) -> None:
            raise NotEnoughReplicas

        monkeypatch.setattr(dead_letters.DeadLetterWriter, "_send", nobody_takes_it)
        await member.acknowledge(topic_id, (0, 9, [REJECT]))
        await until_over(harness, topic_id, 10)
        assert harness.node is not None
        counters = harness.node.broker.shares.counters.of_group("g")
        assert (counters.dead_letters, counters.dead_letter_requests, counters.dead_letter_failures) == (0, 5, 1)

    harness_with_dead_letters().run(scenario)


def test_a_lowered_limit_gives_up_what_was_given_back() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create_dead(client)
        member, topic_id = await prepared(harness, client, environment, share_delivery_count_limit="4")
        await settled(member, topic_id)
        await member.acknowledge(topic_id, (0, 9, [RELEASE]))
        await member.fetch(topic_id, max_wait_ms=500)
        await member.acknowledge(topic_id, (0, 9, [RELEASE]))
        assert await alter(client, GROUP_RESOURCE, "g", share_delivery_count_limit="2") == 0
        await asyncio.sleep(0.1)
        assert acquired(await member.fetch(topic_id, max_wait_ms=500)) == []
        await until_over(harness, topic_id, 10)
        assert len(letters(harness)) == 10
        await produce(await harness.connect(environment), b"next")
        assert acquired(await member.fetch(topic_id, max_wait_ms=500)) == [(10, 10, 1)]

    harness_with_dead_letters().run(scenario)


@dataclass
class Source:
    name: TopicPartition


def letter(topic: str = DEAD, *, first: int = 0, last: int = 0) -> DeadLetter:
    source = cast(Partition, Source(TopicPartition("t", 7)))
    return DeadLetter("g", source, DeadRecords(first, last, 3, False), topic, True)


@pytest.mark.parametrize(
    ("topic", "exists", "is_enabled", "options", "problem"),
    [
        ("", False, False, {}, "is empty"),
        ("__consumer_offsets", True, True, {}, "cannot start with __"),
        (DEAD, True, False, {}, "DLQ is not enabled on configured DLQ topic"),
        (DEAD, False, False, {}, "auto create is disabled"),
        ("other", True, True, {}, "does not comply with the DLQ topic prefix"),
        ("other", True, True, {"topic_name_prefix": ""}, None),
        (DEAD, True, True, {}, None),
        (DEAD, False, False, {"auto_create_topics": "true"}, None),
    ],
)
def test_which_topics_may_be_used(
    topic: str, exists: bool, is_enabled: bool, options: dict[str, str], problem: str | None
) -> None:
    known: Any = object() if exists else None
    if problem is None:
        check_topic(letter(topic), known, is_enabled, DeadLetterOptions.of(**options))
        return
    with pytest.raises(InvalidConfig, match=problem):
        check_topic(letter(topic), known, is_enabled, DeadLetterOptions.of(**options))


def test_letters_are_split_into_batches_that_the_topic_takes() -> None:
    originals = {offset: (b"k", bytes(300)) for offset in range(10)} | {4: (b"k", bytes(5000))}
    made = batches_of(letter(last=10), range(11), originals, size_bytes_max=2000, now_ms=77)
    records = [record for _, data in made for record in batch.records_of(data)]
    assert [told(each)["offset"] for each in records] == [str(each) for each in range(11)]
    assert all(len(data) <= 2000 for _, data in made)
    assert sum(count for count, _ in made) == 11
    assert {each.timestamp for each in records} == {77}
    # What is too large for the topic, or not there any more, is named and not copied.
    assert [index for index, each in enumerate(records) if each.value is None] == [4, 10]
    assert dict(headers_of(letter(), 3))["__dlq.errors.partition"] == b"7"
