"""A member of a share group that speaks plain wire messages to a simulated node."""

from __future__ import annotations

import asyncio
from typing import Any

from millbeck.kernel.environment import Environment
from millbeck.records import batch, control
from millbeck.records.validation import ValidatedBatch
from millbeck.replication.partition import Partition
from millbeck.replication.partition_appends import CallbackAppend
from millbeck.storage.producer_state import AppendOrigin
from millbeck.wire.messages.configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from millbeck.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from millbeck.wire.messages.share_fetch import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
    ShareFetchPartition,
    ShareFetchRequest,
    ShareFetchTopic,
)
from millbeck.wire.messages.share_fetch import AcknowledgementBatch as FetchAcknowledgement
from millbeck.wire.messages.share_groups import ShareGroupHeartbeatRequest
from millbeck.wire.messages.topics import CreatableTopic, CreateTopicsRequest
from tests.unit.server.harness.broker_harness import BrokerHarness, Client, one_batch
from tests.unit.server.harness.client_requests import find_coordinator

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
GROUP_RESOURCE = 32
SETTINGS: dict[str, Any] = {
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "3",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.record.lock.duration.ms": "2000",
}


def share_harness(**settings: Any) -> BrokerHarness:
    return BrokerHarness(**{key.replace(".", "_"): value for key, value in (SETTINGS | settings).items()})


async def create(client: Client, name: str = "t", partitions: int = 1) -> bytes:
    request = CreateTopicsRequest([CreatableTopic(name, partitions, 1)])
    topic = (await client.ask(request, 7)).topics[0]
    assert topic.error_code == 0
    return bytes(topic.topic_id)


async def produce(
    client: Client, *values: bytes, name: str = "t", partition: int = 0, data: bytes | None = None
) -> int:
    records = one_batch(*values) if data is None else data
    request = ProduceRequest(
        acks=-1,
        timeout_ms=10_000,
        topic_data=[TopicProduceData(name=name, partition_data=[PartitionProduceData(partition, records)])],
    )
    answer = (await client.ask(request, 9)).responses[0].partition_responses[0]
    assert answer.error_code == 0
    return int(answer.base_offset)


async def configure(client: Client, group: str, **options: Any) -> int:
    configs = [IncrementalAlterableConfig(name.replace("_", "."), 0, value) for name, value in options.items()]
    request = IncrementalAlterConfigsRequest([IncrementalAlterConfigsResource(GROUP_RESOURCE, group, configs)])
    return int((await client.ask(request, 1)).responses[0].error_code)


class ShareMember:
    def __init__(self, client: Client, member_id: str = "m1", group: str = "g") -> None:
        self.client = client
        self.group = group
        self.member_id = member_id
        self.epoch = 0
        self.session_epoch = 0
        self.assigned: dict[bytes, list[int]] = {}

    async def heartbeat(self, topics: list[str] | None = None) -> Any:
        answer = await self.client.ask(
            ShareGroupHeartbeatRequest(self.group, self.member_id, self.epoch, None, topics), 1
        )
        if not answer.error_code:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.assigned = {each.topic_id: each.partitions for each in answer.assignment.topic_partitions}
        return answer

    async def join(self, *topics: str, is_assigned: bool = True) -> Any:
        await find_coordinator(self.client, self.group)
        answer = await self.heartbeat(list(topics))
        assert answer.error_code == 0, answer
        for _ in range(100):
            if self.assigned or not is_assigned:
                return answer
            await asyncio.sleep(0.1)
            answer = await self.heartbeat()
        raise AssertionError("nothing was assigned")

    async def fetch(
        self,
        topic_id: bytes,
        *partitions: int,
        said: dict[int, list[tuple[int, int, list[int]]]] | None = None,
        max_wait_ms: int = 0,
        min_bytes: int = 1,
        max_bytes: int = 1 << 20,
        max_records: int = 500,
        is_strict: bool = False,
        epoch: int | None = None,
        is_renewing: bool = False,
        version: int = 2,
    ) -> Any:
        said = said or {}
        request = ShareFetchRequest(
            self.group,
            self.member_id,
            self.session_epoch if epoch is None else epoch,
            0 if is_renewing else max_wait_ms,
            0 if is_renewing else min_bytes,
            0 if is_renewing else max_bytes,
            0 if is_renewing else max_records,
            500,
            int(is_strict),
            is_renewing,
            [
                ShareFetchTopic(
                    topic_id,
                    [
                        ShareFetchPartition(index, [FetchAcknowledgement(*each) for each in said.get(index, [])])
                        for index in (partitions or (0,))
                    ],
                )
            ],
        )
        answer = await self.client.ask(request, version)
        if not answer.error_code and epoch is None:
            self.session_epoch += 1
        return answer

    async def acknowledge(
        self,
        topic_id: bytes,
        *said: tuple[int, int, list[int]],
        partition: int = 0,
        epoch: int | None = None,
        is_renewing: bool = False,
        version: int = 2,
    ) -> Any:
        batches = [AcknowledgementBatch(*each) for each in said]
        answer = await self.client.ask(
            ShareAcknowledgeRequest(
                self.group,
                self.member_id,
                self.session_epoch if epoch is None else epoch,
                is_renewing,
                [AcknowledgeTopic(topic_id, [AcknowledgePartition(partition, batches)])],
            ),
            version,
        )
        if not answer.error_code and epoch is None:
            self.session_epoch += 1
        return answer


def acquired(answer: Any, partition: int = 0) -> list[tuple[int, int, int]]:
    """First and last offset and delivery count of what a fetch has given."""
    assert answer.error_code == 0, answer
    found = []
    for topic in answer.responses:
        for each in topic.partitions:
            if each.partition_index == partition:
                assert each.error_code == 0, each
                found += [(one.first_offset, one.last_offset, one.delivery_count) for one in each.acquired_records]
    return found


def values(answer: Any) -> list[bytes | None]:
    """The records that a fetch has given, in order, without those around them."""
    found = []
    for topic in answer.responses:
        for each in topic.partitions:
            offsets = {
                offset for one in each.acquired_records for offset in range(one.first_offset, one.last_offset + 1)
            }
            for part in batch.split(each.records or b""):
                if not part.header.is_control:
                    found += [record.value for record in batch.records_of(part.data) if record.offset in offsets]
    return found


async def begin(
    harness: BrokerHarness, client: Client, environment: Environment, count: int = 10
) -> tuple[ShareMember, bytes]:
    """A topic with some records, and a member of a group that reads it from the beginning."""
    topic_id = await create(client)
    assert await configure(client, "g", share_auto_offset_reset="earliest") == 0
    member = ShareMember(client)
    await member.join("t")
    if count:
        await produce(client, *[b"%d" % each for each in range(count)])
    return member, topic_id


async def settled(member: ShareMember, topic_id: bytes) -> Any:
    """Fetch, again while the share partition is being loaded."""
    for _ in range(50):
        answer = await member.fetch(topic_id)
        if acquired(answer):
            return answer
        await asyncio.sleep(0.05)
    raise AssertionError("nothing came")


def abort_a_transaction(harness: BrokerHarness, partition: Partition) -> None:
    assert harness.node is not None
    now_ms = harness.node.broker.now_ms()
    data = one_batch(b"aborted", producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    marker = control.marker_batch(
        control.EndTransaction(committed=False, coordinator_epoch=0), producer_id=7, producer_epoch=0, timestamp=now_ms
    )
    for each, origin in ((data, AppendOrigin.CLIENT), (marker, AppendOrigin.COORDINATOR)):
        header = batch.read_header(each)
        validated = ValidatedBatch(each, header, header.max_timestamp, 1, -1)
        partition.append(validated, CallbackAppend(lambda error: None), now_ms=now_ms, origin=origin)
