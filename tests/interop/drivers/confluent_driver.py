"""confluent-kafka, the Python face of librdkafka."""

from __future__ import annotations

import functools
import time
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from tests.interop.drivers.session import (
    Driver,
    DriverError,
    headers_to_send,
    raw_or_none,
    received,
    serve,
    value_to_send,
)

ADMIN_TIMEOUT_S = 30


def _raise(error: Any) -> None:
    raise DriverError(error.code(), error.name(), error.str())


def _received(message: Any) -> dict[str, Any]:
    return received(
        partition=message.partition(),
        offset=message.offset(),
        timestamp_ms=message.timestamp()[1],
        key=message.key(),
        value=message.value(),
        headers=message.headers(),
    )


class ConfluentDriver(Driver):
    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._admin: AdminClient | None = None
        self._member: Consumer | None = None
        self._assignment: list[int] = []

    @property
    def admin(self) -> AdminClient:
        if self._admin is None:
            self._admin = AdminClient({"bootstrap.servers": self.bootstrap})
        return self._admin

    def as_error(self, error: Exception) -> DriverError:
        if isinstance(error, KafkaException):
            return DriverError(error.args[0].code(), error.args[0].name(), str(error))
        return super().as_error(error)

    def do_produce(
        self,
        topic: str,
        records: list[dict[str, Any]],
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
        size_bytes_max: int = 1_000_000,
        pause_ms: int = 0,
    ) -> dict[str, Any]:
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "compression.type": codec,
                "acks": acks,
                "enable.idempotence": idempotent,
                "message.max.bytes": size_bytes_max,
                "linger.ms": 0 if pause_ms else 20,
                "message.timeout.ms": 60_000,
                "retry.backoff.ms": 50,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 200,
                "statistics.interval.ms": 0,
            }
        )
        acknowledged: list[list[int]] = [[-1, -1] for _ in records]
        errors: list[KafkaError] = []

        def on_delivery(index: int, error: KafkaError | None, message: Any) -> None:
            if error is not None:
                errors.append(error)
            else:
                acknowledged[index] = [message.partition(), message.offset()]

        for index, record in enumerate(records):
            timestamp = {"timestamp": record["timestamp_ms"]} if record.get("timestamp_ms") else {}
            producer.produce(
                topic,
                value=value_to_send(record),
                key=raw_or_none(record.get("key")),
                partition=record.get("partition", 0),
                headers=list(headers_to_send(record)),
                on_delivery=functools.partial(on_delivery, index),
                **timestamp,
            )
            if pause_ms:
                # The first record waits for its acknowledgement: before it has a producer id, the client gathers all.
                producer.poll(pause_ms / 1000) if index else producer.flush(30)
            else:
                producer.poll(0)
        remaining = producer.flush(70)
        if errors:
            _raise(errors[0])
        if remaining:
            raise DriverError(None, "TIMEOUT", f"{remaining} records were not acknowledged")
        return {"acknowledged": acknowledged}

    def do_consume(
        self,
        topic: str,
        count: int,
        partition: int = 0,
        offset: int = 0,
        size_bytes_max: int = 1 << 20,
        timeout_ms: int = 30_000,
    ) -> dict[str, Any]:
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "unused",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "max.partition.fetch.bytes": size_bytes_max,
            }
        )
        consumer.assign([TopicPartition(topic, partition, offset)])
        records: list[dict[str, Any]] = []
        deadline_s = time.monotonic() + timeout_ms / 1000
        try:
            while len(records) < count and time.monotonic() < deadline_s:
                for message in consumer.consume(min(1000, count - len(records)), 0.2):
                    if message.error():
                        _raise(message.error())
                    records.append(_received(message))
        finally:
            consumer.close()
        return {"records": records}

    def _offsets_consumer(self, group: str = "unused") -> Consumer:
        return Consumer({"bootstrap.servers": self.bootstrap, "group.id": group, "enable.auto.commit": False})

    def do_offsets_for_times(self, topic: str, partition: int, timestamps_ms: list[int]) -> dict[str, Any]:
        consumer = self._offsets_consumer()
        try:
            offsets = []
            for timestamp_ms in timestamps_ms:
                (found,) = consumer.offsets_for_times([TopicPartition(topic, partition, timestamp_ms)], 30)
                if found.error:
                    _raise(found.error)
                offsets.append(found.offset)
        finally:
            consumer.close()
        # librdkafka answers OFFSET_END (-1) when no record is that young.
        return {"offsets": offsets}

    def do_watermarks(self, topic: str, partition: int) -> dict[str, Any]:
        consumer = self._offsets_consumer()
        try:
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), 30)
        finally:
            consumer.close()
        return {"low": low, "high": high}

    def do_commit(self, group: str, topic: str, partition: int, offset: int) -> dict[str, Any]:
        consumer = self._offsets_consumer(group)
        try:
            consumer.assign([TopicPartition(topic, partition, offset)])
            (result,) = consumer.commit(offsets=[TopicPartition(topic, partition, offset)], asynchronous=False)
            if result.error:
                _raise(result.error)
        finally:
            consumer.close()
        return {}

    def do_committed(self, group: str, topic: str, partition: int) -> dict[str, Any]:
        consumer = self._offsets_consumer(group)
        try:
            (found,) = consumer.committed([TopicPartition(topic, partition)], 30)
        finally:
            consumer.close()
        if found.error:
            _raise(found.error)
        return {"offset": max(-1, found.offset)}

    def do_join(
        self,
        group: str,
        topic: str = "",
        session_timeout_ms: int = 10_000,
        settings: dict[str, str] | None = None,
        pattern: str | None = None,
    ) -> dict[str, Any]:
        wanted: dict[str, Any] = {"group.protocol": "classic"} | (settings or {})
        if wanted["group.protocol"] == "classic":
            wanted |= {"session.timeout.ms": session_timeout_ms, "heartbeat.interval.ms": 500}
        self._member = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
            | wanted
        )
        # librdkafka takes what begins with a caret for an expression.
        self._member.subscribe([topic if pattern is None else f"^{pattern}"])
        return {}

    def do_poll(self, duration_ms: int) -> dict[str, Any]:
        assert self._member is not None, "join first"
        records = []
        deadline_s = time.monotonic() + duration_ms / 1000
        while (left_s := deadline_s - time.monotonic()) > 0:
            message = self._member.poll(left_s)
            if message is not None and not message.error():
                records.append(_received(message))
        if records:
            self._member.commit(asynchronous=False)
        return {"assignment": sorted(one.partition for one in self._member.assignment()), "records": records}

    def do_leave(self) -> dict[str, Any]:
        assert self._member is not None, "join first"
        self._member.close()
        self._member = None
        return {}

    def do_create_topic(self, topic: str, partitions: int = 1, configs: dict[str, str] | None = None) -> dict[str, Any]:
        new = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=configs or {})
        self.admin.create_topics([new])[topic].result(ADMIN_TIMEOUT_S)
        return {}

    def do_list_topics(self) -> dict[str, Any]:
        return {"topics": sorted(self.admin.list_topics(timeout=ADMIN_TIMEOUT_S).topics)}

    def do_describe_topic(self, topic: str) -> dict[str, Any]:
        found = self.admin.list_topics(topic, timeout=ADMIN_TIMEOUT_S).topics[topic]
        if found.error:
            _raise(found.error)
        return {"partitions": len(found.partitions), "leaders": [one.leader for one in found.partitions.values()]}

    def do_describe_configs(self, topic: str) -> dict[str, Any]:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        found = self.admin.describe_configs([resource])[resource].result(ADMIN_TIMEOUT_S)
        return {"configs": {name: entry.value for name, entry in found.items()}}

    def do_alter_config(self, topic: str, configs: dict[str, str]) -> dict[str, Any]:
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in configs.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        self.admin.incremental_alter_configs([resource])[resource].result(ADMIN_TIMEOUT_S)
        return {}

    def do_add_partitions(self, topic: str, total: int) -> dict[str, Any]:
        self.admin.create_partitions([NewPartitions(topic, total)])[topic].result(ADMIN_TIMEOUT_S)
        return {}

    def do_delete_topic(self, topic: str) -> dict[str, Any]:
        self.admin.delete_topics([topic])[topic].result(ADMIN_TIMEOUT_S)
        return {}

    def do_list_groups(self) -> dict[str, Any]:
        found = self.admin.list_consumer_groups().result(ADMIN_TIMEOUT_S)
        if found.errors:
            raise found.errors[0]
        return {"groups": sorted(one.group_id for one in found.valid)}

    def do_describe_group(self, group: str) -> dict[str, Any]:
        found = self.admin.describe_consumer_groups([group])[group].result(ADMIN_TIMEOUT_S)
        return {"state": found.state.name.title().replace("_", ""), "members": len(found.members)}

    def do_delete_group(self, group: str) -> dict[str, Any]:
        self.admin.delete_consumer_groups([group])[group].result(ADMIN_TIMEOUT_S)
        return {}

    def do_delete_records(self, topic: str, partition: int, offset: int) -> dict[str, Any]:
        (future,) = self.admin.delete_records([TopicPartition(topic, partition, offset)]).values()
        return {"low": future.result(ADMIN_TIMEOUT_S).low_watermark}


if __name__ == "__main__":
    serve(ConfluentDriver)
