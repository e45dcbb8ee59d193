"""aiokafka, the asyncio client. The driver owns one event loop and runs each verb on it to its end."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError

from tests.interop.drivers.session import (
    Driver,
    DriverError,
    Unsupported,
    headers_to_send,
    raw_or_none,
    received_record,
    serve,
    value_to_send,
)


def _check(code: int, what: str) -> None:
    if code:
        raise DriverError(code, what)


class AiokafkaDriver(Driver):
    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._runner = asyncio.Runner()
        self._admin: Any = None
        self._member: Any = None

    def answer(self, command: dict[str, Any]) -> dict[str, Any]:
        return self._runner.run(self._answer(command))

    async def _answer(self, command: dict[str, Any]) -> dict[str, Any]:
        verb = command.pop("verb")
        method = getattr(self, f"do_{verb}", None)
        if method is None:
            return {"unsupported": f"no verb {verb}"}
        try:
            return dict(await method(**command) or {})
        except Unsupported as reason:
            return {"unsupported": str(reason)}
        except Exception as error:
            told = error if isinstance(error, DriverError) else self.as_error(error)
            return {"error": {"code": told.code, "name": told.name, "message": str(told)}}

    def as_error(self, error: Exception) -> DriverError:
        code = getattr(error, "errno", None) if isinstance(error, KafkaError) else None
        return DriverError(code, type(error).__name__, str(error))

    def close(self) -> None:
        async def finish() -> None:
            for client in (self._member, self._admin):
                if client is not None:
                    await (client.stop() if client is self._member else client.close())

        self._runner.run(finish())
        self._runner.close()

    async def admin(self) -> Any:
        if self._admin is None:
            self._admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap)
            await self._admin.start()
        return self._admin

    async def do_produce(
        self,
        topic: str,
        records: list[dict[str, Any]],
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
        size_bytes_max: int = 1_048_576,
        pause_ms: int = 0,
    ) -> dict[str, Any]:
        producer = AIOKafkaProducer(
            bootstrap_servers=self.bootstrap,
            compression_type=None if codec == "none" else codec,
            acks=acks if acks == "all" else int(acks),
            enable_idempotence=idempotent,
            max_request_size=size_bytes_max,
            linger_ms=0 if pause_ms else 20,
            retry_backoff_ms=50,
        )
        await producer.start()
        try:
            futures = []
            for record in records:
                futures.append(
                    await producer.send(
                        topic,
                        value=value_to_send(record),
                        key=raw_or_none(record.get("key")),
                        headers=headers_to_send(record),
                        partition=record.get("partition", 0),
                        timestamp_ms=record.get("timestamp_ms"),
                    )
                )
                if pause_ms:
                    await asyncio.sleep(pause_ms / 1000)
            results = await asyncio.wait_for(asyncio.gather(*futures), 70)
        finally:
            await producer.stop()
        return {"acknowledged": [[one.partition, one.offset] for one in results]}

    async def _consumer(self, **settings: Any) -> Any:
        consumer = AIOKafkaConsumer(bootstrap_servers=self.bootstrap, enable_auto_commit=False, **settings)
        await consumer.start()
        return consumer

    async def do_consume(
        self,
        topic: str,
        count: int,
        partition: int = 0,
        offset: int = 0,
        size_bytes_max: int = 1 << 20,
        timeout_ms: int = 30_000,
    ) -> dict[str, Any]:
        consumer = await self._consumer(max_partition_fetch_bytes=size_bytes_max, auto_offset_reset="none")
        target = TopicPartition(topic, partition)
        records: list[dict[str, Any]] = []
        deadline_s = time.monotonic() + timeout_ms / 1000
        try:
            consumer.assign([target])
            consumer.seek(target, offset)
            while len(records) < count and time.monotonic() < deadline_s:
                found = await consumer.getmany(target, timeout_ms=200, max_records=count - len(records))
                records += [received_record(one) for one in found.get(target, [])]
        finally:
            await consumer.stop()
        return {"records": records}

    async def do_offsets_for_times(self, topic: str, partition: int, timestamps_ms: list[int]) -> dict[str, Any]:
        consumer = await self._consumer()
        target = TopicPartition(topic, partition)
        try:
            found = [(await consumer.offsets_for_times({target: one}))[target] for one in timestamps_ms]
        finally:
            await consumer.stop()
        return {"offsets": [-1 if one is None else one.offset for one in found]}

    async def do_watermarks(self, topic: str, partition: int) -> dict[str, Any]:
        consumer = await self._consumer()
        target = TopicPartition(topic, partition)
        try:
            low = (await consumer.beginning_offsets([target]))[target]
            return {"low": low, "high": (await consumer.end_offsets([target]))[target]}
        finally:
            await consumer.stop()

    async def do_commit(self, group: str, topic: str, partition: int, offset: int) -> dict[str, Any]:
        consumer = await self._consumer(group_id=group)
        target = TopicPartition(topic, partition)
        try:
            consumer.assign([target])
            await consumer.commit({target: offset})
        finally:
            await consumer.stop()
        return {}

    async def do_committed(self, group: str, topic: str, partition: int) -> dict[str, Any]:
        consumer = await self._consumer(group_id=group)
        try:
            found = await consumer.committed(TopicPartition(topic, partition))
        finally:
            await consumer.stop()
        return {"offset": -1 if found is None else found}

    async def do_join(self, group: str, topic: str, session_timeout_ms: int = 10_000) -> dict[str, Any]:
        self._member = AIOKafkaConsumer(
            topic,
            bootstrap_servers=self.bootstrap,
            enable_auto_commit=False,
            group_id=group,
            session_timeout_ms=session_timeout_ms,
            heartbeat_interval_ms=500,
            auto_offset_reset="earliest",
        )
        await self._member.start()
        return {}

    async def do_poll(self, duration_ms: int) -> dict[str, Any]:
        records: list[dict[str, Any]] = []
        deadline_s = time.monotonic() + duration_ms / 1000
        while (left_s := deadline_s - time.monotonic()) > 0:
            found = await self._member.getmany(timeout_ms=max(1, int(left_s * 1000)))
            records += [received_record(one) for batch in found.values() for one in batch]
        if records:
            await self._member.commit()
        return {"assignment": sorted(one.partition for one in self._member.assignment()), "records": records}

    async def do_leave(self) -> dict[str, Any]:
        await self._member.stop()
        self._member = None
        return {}

    async def do_create_topic(
        self, topic: str, partitions: int = 1, configs: dict[str, str] | None = None
    ) -> dict[str, Any]:
        admin = await self.admin()
        new = NewTopic(topic, num_partitions=partitions, replication_factor=1, topic_configs=configs or {})
        reply = await admin.create_topics([new])
        for _, code, *_ in reply.topic_errors:
            _check(code, "create_topics")
        return {}

    async def do_list_topics(self) -> dict[str, Any]:
        return {"topics": sorted(await (await self.admin()).list_topics())}

    async def do_describe_topic(self, topic: str) -> dict[str, Any]:
        (found,) = await (await self.admin()).describe_topics([topic])
        _check(found["error_code"], "describe_topics")
        return {"partitions": len(found["partitions"]), "leaders": [one["leader"] for one in found["partitions"]]}

    async def do_describe_configs(self, topic: str) -> dict[str, Any]:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        (reply,) = await (await self.admin()).describe_configs([resource])
        code, _, _, _, entries = reply.resources[0][:5]
        _check(code, "describe_configs")
        return {"configs": {entry[0]: entry[1] for entry in entries}}

    async def do_alter_config(self, topic: str, configs: dict[str, str]) -> dict[str, Any]:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs)
        (reply,) = await (await self.admin()).alter_configs([resource])
        _check(reply.resources[0][0], "alter_configs")
        return {}

    async def do_add_partitions(self, topic: str, total: int) -> dict[str, Any]:
        await (await self.admin()).create_partitions({topic: NewPartitions(total)})
        return {}

    async def do_delete_topic(self, topic: str) -> dict[str, Any]:
        reply = await (await self.admin()).delete_topics([topic])
        for _, code, *_ in reply.topic_error_codes:
            _check(code, "delete_topics")
        return {}

    async def do_list_groups(self) -> dict[str, Any]:
        return {"groups": sorted(one[0] for one in await (await self.admin()).list_consumer_groups())}

    async def do_describe_group(self, group: str) -> dict[str, Any]:
        (reply,) = await (await self.admin()).describe_consumer_groups([group])
        code, _, state, _, _, members = reply.groups[0][:6]
        _check(code, "describe_groups")
        return {"state": state, "members": len(members)}

    async def do_delete_records(self, topic: str, partition: int, offset: int) -> dict[str, Any]:
        target = TopicPartition(topic, partition)
        result = await (await self.admin()).delete_records({target: RecordsToDelete(offset)})
        return {"low": result[target]}


if __name__ == "__main__":
    serve(AiokafkaDriver)
