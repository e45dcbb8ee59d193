"""Every API of clients in every version, asked of a node of each system in the same state: the answers must be equal.

Whole answers are compared, field by field, so that a field that is left out, null or filled with another default is
found in the version in which it is. What no two nodes have in common (times, sizes, ids that are drawn) is left out by
name in `VARYING`; what differs on purpose is in `DIFFERENCES`, with the reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from bench.systems import SYSTEMS
from millbeck.host import real_environment
from millbeck.records import batch
from millbeck.records.record import Record
from millbeck.simulation.workloads.outage_changes import remote_requests
from millbeck.simulation.workloads.outage_requests import (
    GROUP,
    KNOWN,
    MEMBER_ID,
    SHARE,
    SHARE_KEY,
    TRANSACTION,
    Situation,
    coordinators_of,
    local_requests,
    metadata,
)
from millbeck.simulation.workloads.wire_client import WireClient
from millbeck.simulation.workloads.without_controller import error_codes
from millbeck.wire import codec
from millbeck.wire.api_keys import APIS
from millbeck.wire.errors import EncodeError
from millbeck.wire.messages.classic_groups import (
    DescribeGroupsRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from millbeck.wire.messages.consumer_groups import ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest
from millbeck.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from millbeck.wire.messages.groups import ListGroupsRequest
from millbeck.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from millbeck.wire.messages.share_groups import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    ShareGroupDescribeRequest,
    ShareGroupHeartbeatRequest,
)
from millbeck.wire.messages.topics import CreatableTopic, CreateTopicsRequest
from millbeck.wire.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    DescribeTransactionsRequest,
    InitProducerIdRequest,
)
from millbeck.wire.schema import schema_of

PATIENCE_S = 20.0
SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    # When a topic is there that was asked for is a matter of time.
    "auto.create.topics.enable": "false",
}
CONCURRENT_TRANSACTIONS = 51
STABLE, MODERN, SHARED, OPEN_ID = "stable", "modern", "shared", "t3"
SUBSCRIPTION = b"\x00\x00\x00\x00\x00\x01\x00\x05known\xff\xff\xff\xff"
ASSIGNMENT = b"\x00\x00\x00\x00\x00\x01\x00\x05known\x00\x00\x00\x01\x00\x00\x00\x00\xff\xff\xff\xff"

VARYING = frozenset(
    {
        "error_message",
        "host",
        "port",
        "client_host",
        "member_id",
        "leader",
        "cluster_id",
        "log_dir",
        "topic_id",
        "producer_id",
        "start_timestamp_ms",
        "transaction_start_time_ms",
        "total_bytes",
        "usable_bytes",
        "partition_size",
        "last_timestamp",
        "coordinator_epoch",
        "log_append_time_ms",
        # The metadata log's length, and what it has of the voters.
        "log_end_offset",
        "high_watermark",
        "last_fetch_timestamp",
        "last_caught_up_timestamp",
        "voter_directory_id",
        "replica_directory_id",
        "leader_epoch",
        # Apache Kafka begins a group's epochs at 2, so that its first member can get an empty assignment at epoch 1
        # while the assignor works elsewhere (KAFKA-20268). Here the assignor's answer is there at once.
        "member_epoch",
        "group_epoch",
        "assignment_epoch",
    }
)

DIFFERENCES = {
    "DescribeConfigs topic, broker": "documentation is our own; options that are not available are marked so",
    "CreateDelegationToken, without a secret key": "a refusal repeats owner and requester",
    "ShareFetch": "before anybody joined the group: UNKNOWN_SERVER_ERROR there, INVALID_REQUEST here",
    "ShareGroupHeartbeat, joins": "a member comes back sooner while its partitions have no state yet",
}


def plain(value: Any) -> Any:
    """An answer as dictionaries and lists in an order of their own, without what varies."""
    if isinstance(value, list):
        return sorted((plain(each) for each in value), key=repr)
    names = getattr(type(value), "__slots__", None)
    if names is None:
        return value
    return {name: plain(getattr(value, name)) for name in names if name not in VARYING}


class Asking:
    def __init__(self, port: int) -> None:
        self._port = port
        self._client: WireClient | None = None
        self._now_ms = real_environment().clock.wall_ms()

    async def answers(self) -> dict[str, Any]:
        known = await self._prepare()
        found: dict[str, Any] = {}
        for name, request in [*_described(), *((each.name, each.request) for each in local_requests(known))]:
            found |= await self._in_every_version(name, request)
        # The topic is deleted after everything else.
        for each in sorted(remote_requests(known), key=lambda each: each.name == "DeleteTopics"):
            found |= await self._in_every_version(each.name, each.request)
        return found

    async def _in_every_version(self, name: str, request: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        key = schema_of(type(request)).api_key
        assert key is not None
        for version in range(APIS[key].min_version, APIS[key].max_version + 1):
            try:
                codec.encoder(type(request), version)(request)
            except EncodeError:
                # Asks for what this version has no field for.
                continue
            try:
                answer = await self._ask(request, version)
                while CONCURRENT_TRANSACTIONS in error_codes(answer):
                    # How long markers take is nobody's contract.
                    await asyncio.sleep(0.2)
                    answer = await self._ask(request, version)
                found[f"{name} v{version}"] = plain(answer)
            except ConnectionError:
                found[f"{name} v{version}"] = "the connection is closed"
        assert found, f"{name}: no version can ask that"
        return found

    async def _ask(self, request: Any, version: int) -> Any:
        if self._client is None or self._client.is_lost:
            _, client = await real_environment().network.connect(WireClient, host="127.0.0.1", port=self._port)
            self._client = cast(WireClient, client)
        return await asyncio.wait_for(self._client.send(request, version), PATIENCE_S)

    async def _until_answered(self, request: Any, version: int) -> Any:
        """The first answer without an error: coordinators are being created."""
        async with asyncio.timeout(PATIENCE_S):
            while any(error_codes(answer := await self._ask(request, version))):
                await asyncio.sleep(0.2)
        return answer

    async def _prepare(self) -> Situation:
        await self._until_answered(CreateTopicsRequest([CreatableTopic(KNOWN, 1, 1)], 10_000), 7)
        for key_type, key in ((GROUP, STABLE), (TRANSACTION, OPEN_ID), (SHARE, SHARE_KEY)):
            await self._until_answered(coordinators_of(key_type, key), 6)
        answer = await self._until_answered(metadata(KNOWN, creates=False), 12)
        ids = ["t0", "t1", "t2", OPEN_ID]
        producers = {each: await self._producer_of(each) for each in ids}
        await self._begin_transaction(*producers[OPEN_ID])
        await self._join_all()
        return Situation(
            survivor=1,
            led_partition=0,
            topic_id=answer.topics[0].topic_id,
            groups=[f"g{index}" for index in range(6)],
            transactional_ids=[*ids, "t4"],
            producers=producers,
            now_ms=self._now_ms,
        )

    async def _producer_of(self, transactional_id: str) -> tuple[int, int]:
        answer = await self._until_answered(InitProducerIdRequest(transactional_id, 60_000), 4)
        return answer.producer_id, answer.producer_epoch

    async def _begin_transaction(self, producer_id: int, epoch: int) -> None:
        added = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=OPEN_ID,
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(KNOWN, [0])],
        )
        await self._until_answered(added, 3)
        records = [Record(-1, self._now_ms, None, b"open")]
        data = batch.build(
            records, producer_id=producer_id, producer_epoch=epoch, base_sequence=0, is_transactional=True
        )
        topics = [TopicProduceData(name=KNOWN, partition_data=[PartitionProduceData(0, data)])]
        await self._until_answered(
            ProduceRequest(transactional_id=OPEN_ID, acks=-1, timeout_ms=5000, topic_data=topics), 9
        )

    async def _join_all(self) -> None:
        """A member in a group of each kind, and a committed offset."""
        protocol = JoinGroupRequestProtocol("range", SUBSCRIPTION)
        joining = JoinGroupRequest(STABLE, 60_000, 60_000, "", protocol_type="consumer", protocols=[protocol])
        joined = await self._until_answered(joining, 3)
        await self._until_answered(
            SyncGroupRequest(
                STABLE,
                joined.generation_id,
                joined.member_id,
                assignments=[SyncGroupRequestAssignment(joined.member_id, ASSIGNMENT)],
            ),
            3,
        )
        committed = OffsetCommitRequestTopic(KNOWN, partitions=[OffsetCommitRequestPartition(0, 7, -1, "seven")])
        await self._until_answered(
            OffsetCommitRequest(STABLE, joined.generation_id, joined.member_id, topics=[committed]), 8
        )
        modern = ConsumerGroupHeartbeatRequest(
            group_id=MODERN,
            member_id=MEMBER_ID,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=[KNOWN],
            topic_partitions=[],
        )
        await self._until_answered(modern, 1)
        shared = ShareGroupHeartbeatRequest(SHARED, MEMBER_ID, 0, None, [KNOWN])
        epoch = (await self._until_answered(shared, 1)).member_epoch
        # Its partition is assigned once the share coordinator has a state for it.
        while True:
            beat = ShareGroupHeartbeatRequest(SHARED, MEMBER_ID, epoch, None, None)
            answer = await self._until_answered(beat, 1)
            epoch = answer.member_epoch
            if answer.assignment is not None and answer.assignment.topic_partitions:
                return
            await asyncio.sleep(0.2)


def _described() -> Iterator[tuple[str, Any]]:
    """Questions about what `_prepare` has made."""
    yield "ListGroups, with members", ListGroupsRequest()
    yield "DescribeGroups, with a member", DescribeGroupsRequest([STABLE])
    yield "DescribeGroups, with operations", DescribeGroupsRequest([STABLE], include_authorized_operations=True)
    yield "ConsumerGroupDescribe, with a member", ConsumerGroupDescribeRequest([MODERN])
    yield "ConsumerGroupDescribe, of other kinds", ConsumerGroupDescribeRequest([STABLE, SHARED])
    yield "DescribeGroups, of other kinds", DescribeGroupsRequest([MODERN, SHARED])
    yield "ShareGroupDescribe, with a member", ShareGroupDescribeRequest([SHARED])
    yield "ShareGroupDescribe, of other kinds", ShareGroupDescribeRequest([STABLE, MODERN])
    group = DescribeShareGroupOffsetsRequestGroup(SHARED, None)
    yield "DescribeShareGroupOffsets, with a state", DescribeShareGroupOffsetsRequest([group])
    yield "OffsetFetch, committed", OffsetFetchRequest(groups=[OffsetFetchRequestGroup(STABLE, topics=None)])
    yield "DescribeTransactions, open", DescribeTransactionsRequest([OPEN_ID, "missing"])


def answers_of(system: str, directory: Path) -> dict[str, Any]:
    with SYSTEMS[system](directory, overrides=SETTINGS) as node:
        return asyncio.run(Asking(node.port).answers())


@pytest.mark.timeout(200)
def test_every_answer_is_kafkas_in_every_version(tmp_path: Path) -> None:
    mine, theirs = (answers_of(system, tmp_path / system) for system in ("millbeck", "apache-kafka"))
    assert mine.keys() == theirs.keys()
    differing = {name: (mine[name], theirs[name]) for name in mine if mine[name] != theirs[name]}
    excused = {name for name in differing if name.rpartition(" v")[0] in DIFFERENCES}
    for name in sorted(differing.keys() - excused):
        print(f"{name}\n  millbeck     {differing[name][0]}\n  Apache Kafka {differing[name][1]}")
    print(f"{len(mine)} answers, {len(excused)} of them differ on purpose")
    assert differing.keys() == excused
    assert {name.rpartition(" v")[0] for name in excused} == DIFFERENCES.keys()
