"""kafka-python, the pure Python client."""

from __future__ import annotations

import re
import time
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import BrokerResponseError, KafkaError
from kafka.structs import OffsetAndMetadata

from tests.interop.drivers.session import (
    Driver,
    DriverError,
    headers_to_send,
    raw_or_none,
    received_record,
    serve,
    value_to_send,
)


class KafkaPythonDriver(Driver):
    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._admin: Any = None
        self._member: Any = None

    @property
    def admin(self) -> Any:
        if self._admin is None:
            self._admin = KafkaAdminClient(bootstrap_servers=self.bootstrap)
        return self._admin

    def as_error(self, error: Exception) -> DriverError:
        cause = error
        while not isinstance(cause, BrokerResponseError) and isinstance(cause.__cause__, Exception):
            cause = cause.__cause__
        code = getattr(cause, "errno", None) if isinstance(cause, KafkaError) else None
        return DriverError(code, type(cause).__name__, str(error))

    def do_produce(
        self,
        topic: str,
        records: list[dict[str, Any]],
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
        size_bytes_max: int = 1_048_576,
        pause_ms: int = 0,
    ) -> dict[str, Any]:
        producer = KafkaProducer(
            bootstrap_servers=self.bootstrap,
            compression_type=None if codec == "none" else codec,
            acks=acks if acks == "all" else int(acks),
            enable_idempotence=idempotent,
            max_request_size=size_bytes_max,
            linger_ms=0 if pause_ms else 20,
            retry_backoff_ms=50,
            reconnect_backoff_ms=20,
            reconnect_backoff_max_ms=200,
        )
        try:
            futures = []
            for record in records:
                futures.append(
                    producer.send(
                        topic,
                        value=value_to_send(record),
                        key=raw_or_none(record.get("key")),
                        headers=headers_to_send(record),
                        partition=record.get("partition", 0),
                        timestamp_ms=record.get("timestamp_ms"),
                    )
                )
                time.sleep(pause_ms / 1000)
            results = [future.get(timeout=70) for future in futures]
        finally:
            producer.close(timeout=10)
        return {"acknowledged": [[one.partition, one.offset] for one in results]}

    def _consumer(self, **settings: Any) -> Any:
        return KafkaConsumer(bootstrap_servers=self.bootstrap, enable_auto_commit=False, **settings)

    def do_consume(
        self,
        topic: str,
        count: int,
        partition: int = 0,
        offset: int = 0,
        size_bytes_max: int = 1 << 20,
        timeout_ms: int = 30_000,
    ) -> dict[str, Any]:
        consumer = self._consumer(max_partition_fetch_bytes=size_bytes_max, auto_offset_reset="none")
        target = TopicPartition(topic, partition)
        records: list[dict[str, Any]] = []
        deadline_s = time.monotonic() + timeout_ms / 1000
        try:
            consumer.assign([target])
            consumer.seek(target, offset)
            while len(records) < count and time.monotonic() < deadline_s:
                found = consumer.poll(timeout_ms=200, max_records=count - len(records))
                records += [received_record(one) for one in found.get(target, [])]
        finally:
            consumer.close()
        return {"records": records}

    def do_offsets_for_times(self, topic: str, partition: int, timestamps_ms: list[int]) -> dict[str, Any]:
        consumer = self._consumer()
        target = TopicPartition(topic, partition)
        try:
            found = [consumer.offsets_for_times({target: one})[target] for one in timestamps_ms]
        finally:
            consumer.close()
        return {"offsets": [-1 if one is None else one.offset for one in found]}

    def do_watermarks(self, topic: str, partition: int) -> dict[str, Any]:
        consumer = self._consumer()
        target = TopicPartition(topic, partition)
        try:
            return {"low": consumer.beginning_offsets([target])[target], "high": consumer.end_offsets([target])[target]}
        finally:
            consumer.close()

    def do_commit(self, group: str, topic: str, partition: int, offset: int) -> dict[str, Any]:
        consumer = self._consumer(group_id=group)
        target = TopicPartition(topic, partition)
        try:
            consumer.assign([target])
            consumer.commit({target: OffsetAndMetadata(offset, "", -1)})
        finally:
            consumer.close()
        return {}

    def do_committed(self, group: str, topic: str, partition: int) -> dict[str, Any]:
        consumer = self._consumer(group_id=group)
        try:
            found = consumer.committed(TopicPartition(topic, partition))
        finally:
            consumer.close()
        return {"offset": -1 if found is None else found}

    def do_join(self, group: str, topic: str, session_timeout_ms: int = 10_000) -> dict[str, Any]:
        self._member = self._consumer(
            group_id=group,
            session_timeout_ms=session_timeout_ms,
            heartbeat_interval_ms=500,
            auto_offset_reset="earliest",
        )
        self._member.subscribe([topic])
        return {}

    def do_poll(self, duration_ms: int) -> dict[str, Any]:
        records: list[dict[str, Any]] = []
        deadline_s = time.monotonic() + duration_ms / 1000
        while (left_s := deadline_s - time.monotonic()) > 0:
            found = self._member.poll(timeout_ms=max(1, int(left_s * 1000)))
            records += [received_record(one) for batch in found.values() for one in batch]
        if records:
            self._member.commit()
        return {"assignment": sorted(one.partition for one in self._member.assignment()), "records": records}

    def do_leave(self) -> dict[str, Any]:
        self._member.close()
        self._member = None
        return {}

    def do_create_topic(self, topic: str, partitions: int = 1, configs: dict[str, str] | None = None) -> dict[str, Any]:
        options = {"num_partitions": partitions, "replication_factor": 1, "configs": configs or {}}
        self.admin.create_topics({topic: options})
        return {}

    def do_list_topics(self) -> dict[str, Any]:
        return {"topics": sorted(self.admin.list_topics())}

    def do_describe_topic(self, topic: str) -> dict[str, Any]:
        (found,) = self.admin.describe_topics([topic])
        if found["error_code"]:
            raise DriverError(found["error_code"], "describe_topics")
        return {"partitions": len(found["partitions"]), "leaders": [one["leader_id"] for one in found["partitions"]]}

    def do_describe_configs(self, topic: str) -> dict[str, Any]:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        found = self.admin.describe_configs([resource], config_filter="all")["topic"][topic]
        return {"configs": {name: entry["value"] for name, entry in found.items()}}

    def do_alter_config(self, topic: str, configs: dict[str, str]) -> dict[str, Any]:
        results = self.admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs)])
        told = results["topic"][topic]
        if told != "OK":
            # The client turns the error into text; its code stands in brackets.
            code = re.search(r"\[Error (\d+)\]", told)
            raise DriverError(int(code.group(1)) if code else None, "alter_configs", told)
        return {}

    def do_add_partitions(self, topic: str, total: int) -> dict[str, Any]:
        self.admin.create_partitions({topic: total})
        return {}

    def do_delete_topic(self, topic: str) -> dict[str, Any]:
        self.admin.delete_topics([topic])
        return {}

    def do_list_groups(self) -> dict[str, Any]:
        return {"groups": sorted(one["group_id"] for one in self.admin.list_groups())}

    def do_describe_group(self, group: str) -> dict[str, Any]:
        found = self.admin.describe_groups([group])[group]
        return {"state": found["group_state"], "members": len(found["members"])}

    def do_delete_group(self, group: str) -> dict[str, Any]:
        told = self.admin.delete_groups([group])[group]
        if told != "OK":
            raise DriverError(None, "delete_groups", str(told))
        return {}

    def do_delete_records(self, topic: str, partition: int, offset: int) -> dict[str, Any]:
        (result,) = self.admin.delete_records({TopicPartition(topic, partition): offset}).values()
        return {"low": result["low_watermark"]}


if __name__ == "__main__":
    serve(KafkaPythonDriver)
