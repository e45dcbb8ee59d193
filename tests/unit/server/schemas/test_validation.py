"""Topics with validated schemas on a whole node: what is refused, and what is accepted as soon as it is registered."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import InvalidRecord, RequestTimedOut
from millbeck.records import batch
from millbeck.records.record import Record
from millbeck.server.schemas import reading
from millbeck.wire.messages.configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from millbeck.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from millbeck.wire.messages.topics import DeleteTopicsRequest, DeleteTopicState
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import create
from tests.unit.server.harness.transactional_producer import Transacting, transaction_harness

NOW = 1_700_000_000_000
VALIDATED: dict[str, Any] = {"confluent.value.schema.validation": "true"}


def with_id(number: int) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + b"payload"


async def produce(client: Client, topic: str, *records: Record, **fields: Any) -> Any:
    data = batch.build(list(records), **fields)
    partitions = [PartitionProduceData(0, data)]
    request = ProduceRequest(
        acks=-1, timeout_ms=30_000, topic_data=[TopicProduceData(topic, partition_data=partitions)]
    )
    return (await client.ask(request, 9)).responses[0].partition_responses[0]


async def send(client: Client, *values: bytes | None, **fields: Any) -> int:
    code: int = (
        await produce(client, "orders", *(Record(-1, NOW, None, each) for each in values), **fields)
    ).error_code
    return code


def schema_record(subject: str, schema_id: int, *, is_deleted: bool = False) -> tuple[bytes, bytes]:
    key = {"keytype": "SCHEMA", "subject": subject, "version": schema_id, "magic": 1}
    value = {"subject": subject, "version": schema_id, "id": schema_id, "schema": '"string"', "deleted": is_deleted}
    return json.dumps(key).encode(), json.dumps(value).encode()


async def register(client: Client, subject: str, schema_id: int, *, is_deleted: bool = False) -> None:
    record = Record(-1, NOW, *schema_record(subject, schema_id, is_deleted=is_deleted))
    assert (await produce(client, "_schemas", record)).error_code == 0


async def alter(client: Client, topic: str, **configs: str) -> None:
    entries = [IncrementalAlterableConfig(name.replace("_", "."), 0, value) for name, value in configs.items()]
    request = IncrementalAlterConfigsRequest(resources=[IncrementalAlterConfigsResource(2, topic, entries)])
    assert [each.error_code for each in (await client.ask(request, 1)).responses] == [0]


def test_a_record_needs_a_schema_of_its_subject() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, "_schemas", cleanup_policy="compact")
        await create(client, "orders", **VALIDATED)
        await create(client, "plain")
        await register(client, "orders-value", 1)
        await register(client, "other-value", 2)
        assert await send(client, with_id(1), None, with_id(1)) == 0
        for wrong in (b"{}", with_id(2), with_id(3)):
            answer = await produce(client, "orders", Record(-1, NOW, None, with_id(1)), Record(-1, NOW, None, wrong))
            assert answer.error_code == InvalidRecord.code
            assert [each.batch_index for each in answer.record_errors] == [1]
            assert "orders-value" in answer.error_message or "zero byte" in answer.error_message
        assert (await produce(client, "plain", Record(-1, NOW, None, b"{}"))).error_code == 0
        await register(client, "orders-value", 1, is_deleted=True)
        await register(client, "orders-value", 4)
        assert await send(client, with_id(4)) == 0
        assert await send(client, with_id(1)) == InvalidRecord.code

    BrokerHarness().run(scenario)


def test_a_schema_is_accepted_as_soon_as_it_is_registered() -> None:
    """Whoever registers a schema writes with it at once; the broker has not read it yet, and asks for the end first."""

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, "_schemas", cleanup_policy="compact")
        await create(client, "orders", **VALIDATED)
        other = await harness.connect(environment)
        for number in range(1, 30):
            await register(other, "orders-value", number)
            assert await send(client, with_id(number)) == 0

    BrokerHarness().run(scenario)


def test_validation_is_switched_on_and_off_while_the_broker_runs() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, "_schemas", cleanup_policy="compact")
        await create(client, "orders")
        await register(client, "orders-value", 1)
        assert await send(client, b"{}") == 0
        assert harness.node is not None
        validation = harness.node.broker.schemas
        assert validation._reader is None
        await alter(client, "orders", **VALIDATED)
        assert await send(client, b"{}") == InvalidRecord.code
        assert await send(client, with_id(1)) == 0
        await alter(client, "orders", confluent_value_subject_name_strategy="RecordNameStrategy")
        assert await send(client, with_id(1)) == InvalidRecord.code
        await alter(client, "orders", confluent_value_schema_validation="false")
        assert await send(client, b"{}") == 0
        assert validation._reader is None

    BrokerHarness().run(scenario)


def test_without_a_registry_nothing_is_accepted_and_a_new_topic_is_read_anew() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, "orders", **VALIDATED)
        assert await send(client, with_id(1)) == InvalidRecord.code
        await create(client, "_schemas", cleanup_policy="compact")
        await register(client, "orders-value", 1)
        assert await send(client, with_id(1)) == 0
        await client.ask(DeleteTopicsRequest(topics=[DeleteTopicState("_schemas")], timeout_ms=5000), 6)
        await asyncio.sleep(10)
        await create(client, "_schemas", cleanup_policy="compact")
        await register(client, "orders-value", 2)
        assert await send(client, with_id(2)) == 0
        assert await send(client, with_id(1)) == InvalidRecord.code

    BrokerHarness().run(scenario)


def test_a_registry_topic_that_cannot_be_read_is_no_reason_to_drop_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch behind it is refused for the same reason, so that a producer sends both again, in order."""

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, "_schemas", cleanup_policy="compact")
        await create(client, "orders", **VALIDATED)
        await register(client, "orders-value", 1)
        producer = {"producer_id": 7, "producer_epoch": 0}
        assert await send(client, with_id(1), base_sequence=0, **producer) == 0

        async def fails(self: Any, topic: Any) -> int:
            raise TimeoutError

        with monkeypatch.context() as patch:
            patch.setattr(reading.SchemasReader, "_asked_end", fails)
            assert await send(client, with_id(2), base_sequence=1, **producer) == RequestTimedOut.code
            assert await send(client, with_id(1), base_sequence=2, **producer) == RequestTimedOut.code
        await register(client, "orders-value", 2)
        assert await send(client, with_id(2), base_sequence=1, **producer) == 0
        assert await send(client, with_id(1), base_sequence=2, **producer) == 0

    BrokerHarness().run(scenario)


def test_what_is_not_committed_is_not_accepted() -> None:
    """A writer of schemas that is fenced before its commit has registered nothing."""

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        writer = await Transacting(await harness.connect(environment)).prepare()
        await create(client, "orders", **VALIDATED)
        for schema_id, is_committed in ((1, False), (2, True)):
            key, value = schema_record("orders-value", schema_id)
            assert await writer.produce(value, key=key) == 0
            assert await writer.end(is_committed) == 0
        assert await send(client, with_id(2)) == 0
        assert await send(client, with_id(1)) == InvalidRecord.code

    transaction_harness(millbeck_schemas_topic="t").run(scenario)
