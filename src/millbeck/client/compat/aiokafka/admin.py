"""`AIOKafkaAdminClient` on millbeck's admin client: topics, partitions, records, groups and their offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Self

from millbeck.client.admin import Admin
from millbeck.client.admin import results as own
from millbeck.client.compat.aiokafka.errors import KafkaConnectionError, translating
from millbeck.client.compat.aiokafka.settings import COMMON, arguments, common_settings
from millbeck.client.compat.aiokafka.structs import OffsetAndMetadata
from millbeck.client.retry import Deadline
from millbeck.kernel.errors import ApiError
from millbeck.kernel.ids import TopicPartition


class NewTopic:
    """A topic to create."""

    def __init__(
        self,
        name: str,
        num_partitions: int,
        replication_factor: int,
        replica_assignments: Mapping[int, list[int]] | None = None,
        topic_configs: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.num_partitions = num_partitions
        self.replication_factor = replication_factor
        self.replica_assignments = replica_assignments or {}
        self.topic_configs = topic_configs or {}


class NewPartitions:
    """The partition count that a topic gets."""

    def __init__(self, total_count: int, new_assignments: list[list[int]] | None = None) -> None:
        self.total_count = total_count
        self.new_assignments = new_assignments


class RecordsToDelete:
    """The offset before which records of a partition are deleted."""

    def __init__(self, before_offset: int) -> None:
        self.before_offset = before_offset


class Response:
    """The answer to a call about several topics: an attribute ``topic_errors``, and `to_object`."""

    def __init__(self, **fields: Any) -> None:
        self._fields = fields
        self.__dict__.update(fields)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the answer has no {name}")

    def to_object(self) -> dict[str, Any]:
        found = dict(self._fields)
        if "topic_errors" in found:
            found["topic_errors"] = [
                {"topic": topic, "error_code": code, "error_message": message}
                for topic, code, message in found["topic_errors"]
            ]
        return found


class AIOKafkaAdminClient:
    """An admin client with aiokafka's arguments and methods."""

    def __init__(self, **options: Any) -> None:
        found = arguments("AIOKafkaAdminClient", {**COMMON, "client_id": "aiokafka"}, options)
        self._timeout_s = found["request_timeout_ms"] / 1000
        with translating(KafkaConnectionError):
            self._admin = Admin(common_settings(found))

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def start(self) -> None:
        """Connect; raises KafkaConnectionError if no broker can be reached."""
        with translating(KafkaConnectionError):
            try:
                await self._admin.cluster.refresh(Deadline(self._timeout_s))
            except BaseException:
                await self._admin.close()
                raise

    async def close(self) -> None:
        await self._admin.close()

    async def create_topics(
        self, new_topics: Iterable[NewTopic], timeout_ms: int | None = None, validate_only: bool = False
    ) -> Response:
        wanted = [
            own.NewTopic(
                name=topic.name,
                partition_count=topic.num_partitions,
                replication_factor=topic.replication_factor,
                assignments=topic.replica_assignments,
                configs=dict(topic.topic_configs),
            )
            for topic in new_topics
        ]
        with translating(KafkaConnectionError):
            created = await self._admin.create_topics(
                wanted, validate_only=validate_only, timeout_s=self._seconds(timeout_ms)
            )
        return Response(topic_errors=_codes([topic.name for topic in wanted], created.failed))

    async def delete_topics(self, topics: Iterable[str], timeout_ms: int | None = None) -> Response:
        names = list(topics)
        with translating(KafkaConnectionError):
            deleted = await self._admin.delete_topics(names, timeout_s=self._seconds(timeout_ms))
        return Response(topic_error_codes=[(name, code) for name, code, _ in _codes(names, deleted.failed)])

    async def create_partitions(
        self,
        topic_partitions: Mapping[str, NewPartitions],
        timeout_ms: int | None = None,
        validate_only: bool = False,
    ) -> Response:
        wanted = {
            name: own.NewPartitions(total_count=new.total_count, assignments=new.new_assignments)
            for name, new in topic_partitions.items()
        }
        with translating(KafkaConnectionError):
            created = await self._admin.create_partitions(
                wanted, validate_only=validate_only, timeout_s=self._seconds(timeout_ms)
            )
        return Response(topic_errors=_codes(list(wanted), created.failed))

    async def delete_records(
        self, records_to_delete: Mapping[TopicPartition, RecordsToDelete], timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """Delete records; returns the new first offset of each partition."""
        wanted = {TopicPartition(*partition): each.before_offset for partition, each in records_to_delete.items()}
        with translating(KafkaConnectionError):
            return (await self._admin.delete_records(wanted, timeout_s=self._seconds(timeout_ms))).all()

    async def list_topics(self) -> list[str]:
        with translating(KafkaConnectionError):
            return list(await self._admin.list_topics())

    async def describe_topics(self, topics: Iterable[str] | None = None) -> list[dict[str, Any]]:
        names = await self.list_topics() if topics is None else list(topics)
        with translating(KafkaConnectionError):
            described = await self._admin.describe_topics(names)
        found = [
            {
                "error_code": 0,
                "topic": topic.name,
                "is_internal": topic.is_internal,
                "partitions": [
                    {
                        "error_code": 0 if each.error is None else each.error.code,
                        "partition": each.partition,
                        "leader": each.leader_id,
                        "replicas": list(each.replicas),
                        "isr": list(each.in_sync),
                        "offline_replicas": list(each.offline),
                    }
                    for each in topic.partitions
                ],
            }
            for topic in described.succeeded.values()
        ]
        missing = [
            {"error_code": error.code, "topic": name, "is_internal": False, "partitions": []}
            for name, error in described.failed.items()
        ]
        return [*found, *missing]

    async def describe_cluster(self) -> dict[str, Any]:
        with translating(KafkaConnectionError):
            cluster = await self._admin.describe_cluster()
        return {
            "cluster_id": cluster.cluster_id,
            "controller_id": cluster.controller_id,
            "brokers": [
                {"node_id": node.node_id, "host": node.host, "port": node.port, "rack": node.rack}
                for node in cluster.nodes
            ],
        }

    async def list_consumer_groups(self, broker_ids: Iterable[int] | None = None) -> list[tuple[str, str]]:
        """The groups as pairs of id and protocol type, of all brokers."""
        if broker_ids is not None:
            raise NotImplementedError("groups are listed for all brokers: leave broker_ids out")
        with translating(KafkaConnectionError):
            groups = await self._admin.list_groups()
        return [(group.group_id, group.protocol_type) for group in groups.values()]

    async def list_consumer_group_offsets(
        self, group_id: str, group_coordinator_id: int | None = None, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        with translating(KafkaConnectionError):
            committed = (await self._admin.list_group_offsets([group_id]))[group_id]
        wanted = None if partitions is None else {TopicPartition(*each) for each in partitions}
        return {
            partition: OffsetAndMetadata(each.offset, each.metadata)
            for partition, each in committed.items()
            if wanted is None or partition in wanted
        }

    def _seconds(self, timeout_ms: int | None) -> float:
        return self._timeout_s if timeout_ms is None else timeout_ms / 1000


def _codes(names: Iterable[str], failed: Mapping[str, ApiError]) -> list[tuple[str, int, str | None]]:
    return [(name, failed[name].code, str(failed[name])) if name in failed else (name, 0, None) for name in names]
