"""Produce: what is appended, what is answered, and what is refused."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import (
    CorruptMessage,
    InvalidRecord,
    InvalidRequiredAcks,
    InvalidTopic,
    MessageTooLarge,
    NotEnoughReplicas,
    OutOfOrderSequenceNumber,
    RequestTimedOut,
    TransactionalIdAuthorizationFailed,
    UnknownTopicId,
    UnknownTopicOrPartition,
    UnsupportedCompressionType,
)
from millbeck.records import batch as batches
from millbeck.records.compression import Codec
from millbeck.records.header import read_header
from millbeck.server.requests.heavy_batches import RAW_BYTES_MAX
from millbeck.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from millbeck.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from millbeck.wire.messages.transactions import InitProducerIdRequest
from tests.unit.server.harness.broker_harness import BrokerHarness, Client, one_batch
from tests.unit.server.harness.client_requests import create


def produce(
    data: bytes | None, *, topic: str = "t", index: int = 0, acks: int = 1, transactional_id: str | None = None
) -> ProduceRequest:
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=30_000,
        topic_data=[TopicProduceData(name=topic, partition_data=[PartitionProduceData(index, data)])],
    )


async def stored(client: Client, topic: str = "t", index: int = 0) -> bytes:
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=50_000_000,
        topics=[FetchTopic(topic, partitions=[FetchPartition(index, fetch_offset=0, partition_max_bytes=50_000_000)])],
    )
    response = await client.ask(request, 11)
    records: bytes = response.responses[0].partitions[0].records
    return records


def result_of(response: Any) -> Any:
    return response.responses[0].partition_responses[0]


def run_scenario(scenario: Any, **settings: Any) -> Any:
    return BrokerHarness(**settings).run(scenario)


@pytest.mark.parametrize("version", range(3, 14))
def test_every_version_appends_and_answers_with_the_offset(version: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await create(client)
        for expected in (0, 2):
            request = produce(one_batch(b"a", b"b"))
            request.topic_data[0].topic_id = topic_id
            answer = result_of(await client.ask(request, version))
            assert (answer.error_code, answer.base_offset) == (0, expected)
            assert answer.log_append_time_ms == -1
        records = [record for each in batches.split(await stored(client)) for record in batches.records_of(each.data)]
        assert [(record.offset, record.value) for record in records] == [(0, b"a"), (1, b"b"), (2, b"a"), (3, b"b")]

    run_scenario(scenario)


@pytest.mark.parametrize("acks", [1, -1])
def test_requests_on_one_connection_take_effect_and_are_answered_in_order(acks: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        replies = [client.send(produce(one_batch(b"%d" % number), acks=acks), 9) for number in range(200)]
        offsets = [result_of(await reply).base_offset for reply in replies]
        assert offsets == list(range(200))

    run_scenario(scenario)


def test_acks_zero_is_not_answered_and_its_error_ends_the_connection() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        client.send(produce(one_batch(b"quiet"), acks=0), 9, expects_reply=False)
        assert b"quiet" in await stored(client)
        client.send(produce(one_batch(b"x"), topic="nowhere", acks=0), 9, expects_reply=False)
        await asyncio.sleep(1)
        assert client.is_lost

    run_scenario(scenario)


def test_acks_all_waits_for_the_disk_where_flush_messages_is_one() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, flush_messages="1")
        assert harness.node is not None
        partition = harness.node.broker.topics.partition("t", 0)
        reply = client.send(produce(one_batch(b"x"), acks=-1), 9)
        answer = result_of(await reply)
        assert answer.error_code == 0
        assert partition.log.flushed_offset == 1

    run_scenario(scenario)


@pytest.mark.parametrize("is_heavy", [False, True])
def test_an_append_that_takes_too_long_is_told_so_and_the_others_are_not(is_heavy: bool) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, "slow", flush_messages="1")
        await create(client, "fast")
        harness.machine.disk.faults.sync_cost_s = 5
        noise = random.Random(5).randbytes(200_000)
        data = one_batch(noise, codec=Codec.GZIP) if is_heavy else one_batch(b"x")
        request = produce(data, topic="slow", acks=-1)
        request.timeout_ms = 1000
        request.topic_data.append(TopicProduceData(name="fast", partition_data=[PartitionProduceData(0, data)]))
        began = asyncio.get_running_loop().time()
        slow, fast = (await client.ask(request, 9)).responses
        assert 1 <= asyncio.get_running_loop().time() - began < 1.5
        assert (slow.name, slow.partition_responses[0].error_code) == ("slow", RequestTimedOut.code)
        answer = fast.partition_responses[0]
        assert (fast.name, answer.error_code, answer.base_offset) == ("fast", 0, 0)
        await asyncio.sleep(30)
        assert harness.node is not None
        assert len(harness.node.deadlines) == 0

    run_scenario(scenario)


async def refusal(client: Client, request: ProduceRequest, version: int = 9) -> Any:
    answer = result_of(await client.ask(request, version))
    assert answer.base_offset == -1
    return answer


def damaged(data: bytes, position: int, value: int) -> bytes:
    return data[:position] + bytes([value]) + data[position + 1 :]


REFUSED = {
    "unknown topic": (lambda: produce(one_batch(b"x"), topic="nowhere"), UnknownTopicOrPartition),
    "unknown partition": (lambda: produce(one_batch(b"x"), index=7), UnknownTopicOrPartition),
    "negative partition": (lambda: produce(one_batch(b"x"), index=-1), UnknownTopicOrPartition),
    "acks of 2": (lambda: produce(one_batch(b"x"), acks=2), InvalidRequiredAcks),
    "wrong checksum": (lambda: produce(damaged(one_batch(b"x"), 18, 99)), CorruptMessage),
    "old magic": (lambda: produce(damaged(one_batch(b"x"), 16, 1)), InvalidRecord),
    "no batch": (lambda: produce(b""), InvalidRecord),
    "null records": (lambda: produce(None), InvalidRecord),
    "two batches": (lambda: produce(one_batch(b"x") + one_batch(b"y")), InvalidRecord),
    "a control batch": (lambda: produce(_control()), InvalidRecord),
    "an unknown codec": (lambda: produce(_with_codec(7)), UnsupportedCompressionType),
    "a record count that lies": (lambda: produce(_with_count(5)), InvalidRecord),
    "too large": (lambda: produce(one_batch(b"x" * 1_100_000)), MessageTooLarge),
    "a transaction that nobody began": (
        lambda: produce(
            one_batch(b"x", producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True),
            transactional_id="tx",
        ),
        NotEnoughReplicas,
    ),
    "a transaction without an id": (
        lambda: produce(one_batch(b"x", producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True)),
        TransactionalIdAuthorizationFailed,
    ),
}


def _patched(change: Any) -> bytes:
    header = read_header(one_batch(b"x"))
    fields = {"attributes": header.attributes, "record_count": header.record_count}
    fields.update(change)
    payload = one_batch(b"x")[61:]
    return batches.assemble(
        payload,
        record_count=fields["record_count"],
        last_offset_delta=fields["record_count"] - 1,
        base_timestamp=header.base_timestamp,
        max_timestamp=header.max_timestamp,
        attributes=fields["attributes"],
    )


def _control() -> bytes:
    return _patched({"attributes": 0x20})


def _with_codec(codec: int) -> bytes:
    return _patched({"attributes": codec})


def _with_count(count: int) -> bytes:
    return _patched({"record_count": count})


@pytest.mark.parametrize(("make", "error"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused_changes_nothing_and_says_why(make: Any, error: Any) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        assert (await refusal(client, make())).error_code == error.code
        assert await stored(client) == b""
        assert result_of(await client.ask(produce(one_batch(b"fine")), 9)).base_offset == 0

    run_scenario(scenario)


def test_an_unknown_topic_id_is_named_as_such() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        request = produce(one_batch(b"x"))
        request.topic_data[0].topic_id = bytes(range(16))
        assert (await refusal(client, request, 13)).error_code == UnknownTopicId.code

    run_scenario(scenario)


def test_internal_topics_are_written_by_the_node_alone() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        await harness.node.broker.auto_create(["__consumer_offsets"])
        answer = await refusal(client, produce(one_batch(b"x", key=b"k"), topic="__consumer_offsets"))
        assert answer.error_code == InvalidTopic.code

    run_scenario(scenario)


def test_zstd_is_refused_below_version_seven() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        data = one_batch(b"x" * 100, codec=Codec.ZSTD)
        assert (await refusal(client, produce(data), 6)).error_code == UnsupportedCompressionType.code
        assert result_of(await client.ask(produce(data), 7)).error_code == 0

    run_scenario(scenario)


def test_one_bad_partition_does_not_harm_the_others() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, partitions=2)
        request = produce(one_batch(b"good"))
        request.topic_data[0].partition_data.append(PartitionProduceData(1, b"garbage"))
        good, bad = (await client.ask(request, 9)).responses[0].partition_responses
        assert (good.error_code, good.base_offset) == (0, 0)
        assert bad.error_code != 0

    run_scenario(scenario)


def test_a_repeated_batch_of_a_producer_gets_its_old_offset_and_a_gap_is_refused() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        producer_id = (await client.ask(InitProducerIdRequest(transactional_id=None), 5)).producer_id

        def numbered(sequence: int) -> ProduceRequest:
            data = one_batch(b"%d" % sequence, producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
            return produce(data, acks=-1)

        offsets = [result_of(await client.ask(numbered(sequence), 9)).base_offset for sequence in (0, 1, 2, 1, 2, 0)]
        assert offsets == [0, 1, 2, 1, 2, 0]
        assert (await refusal(client, numbered(7))).error_code == OutOfOrderSequenceNumber.code

    run_scenario(scenario)


def test_repeats_within_one_turn_are_found_too() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        data = one_batch(b"once", producer_id=5, producer_epoch=0, base_sequence=0)
        replies = [client.send(produce(data, acks=-1), 9) for _ in range(5)]
        assert [result_of(await reply).base_offset for reply in replies] == [0] * 5
        assert (await stored(client)).count(b"once") == 1

    run_scenario(scenario)


def test_a_large_compressed_batch_is_checked_on_a_thread_and_keeps_its_place() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, max_message_bytes="10000000")
        noise = random.Random(5).randbytes(200_000)
        large = one_batch(noise, codec=Codec.GZIP)
        assert len(large) > 64 * 1024
        replies = [client.send(produce(data), 9) for data in (one_batch(b"a"), large, one_batch(b"b"))]
        assert [result_of(await reply).base_offset for reply in replies] == [0, 1, 2]

    run_scenario(scenario)


def test_a_short_batch_that_holds_much_goes_to_a_thread_and_keeps_its_place() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        dense = one_batch(bytes(RAW_BYTES_MAX), codec=Codec.ZSTD)
        assert len(dense) < 1000
        replies = [client.send(produce(data), 9) for data in (one_batch(b"a"), dense, one_batch(b"b"))]
        assert [result_of(await reply).base_offset for reply in replies] == [0, 1, 2]

    run_scenario(scenario)


def test_log_append_time_is_stamped_and_told() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, message_timestamp_type="LogAppendTime")
        answer = result_of(await client.ask(produce(one_batch(b"x", timestamp=12345)), 9))
        (record,) = batches.records_of(await stored(client))
        assert answer.log_append_time_ms == record.timestamp > 1_600_000_000_000

    run_scenario(scenario)


def test_a_full_disk_refuses_appends_and_takes_them_again_when_there_is_room() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        await create(client)
        assert result_of(await client.ask(produce(one_batch(b"before")), 9)).error_code == 0
        disk = harness.machine.disk
        disk.faults.capacity_bytes = disk.used_bytes + 10
        refused = await refusal(client, produce(one_batch(b"x" * 5000)))
        assert refused.error_code == 56
        counts = harness.node.broker.topics.by_name["t"].counts
        assert counts.produce_failed == 1, "what an alert looks at"
        assert b"before" in await stored(client)
        disk.faults.capacity_bytes = disk.used_bytes + 10_000_000
        await asyncio.sleep(0.1)
        assert result_of(await client.ask(produce(one_batch(b"after")), 9)).base_offset == 1
        assert counts.produce_failed == 1

    run_scenario(scenario)
