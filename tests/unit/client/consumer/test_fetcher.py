"""Fetch requests: what they ask for, how often, and what becomes of the answers."""

from __future__ import annotations

import asyncio
from typing import Any

from millbeck.client.consumer import Consumer
from millbeck.kernel.errors import (
    FetchSessionIdNotFound,
    InvalidFetchSessionEpoch,
    NotLeaderOrFollower,
    OffsetOutOfRange,
)
from millbeck.kernel.ids import TopicPartition
from millbeck.records import batch
from millbeck.records.control import EndTransaction, marker_batch
from millbeck.records.record import Record
from millbeck.wire.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchedPartition,
    FetchRequest,
    FetchResponse,
)
from millbeck.wire.messages.metadata import MetadataRequest
from millbeck.wire.messages.shared import LeaderIdAndEpoch, NodeEndpoint
from tests.unit.client.fake_cluster import Call, FakeCluster, FakePartition, later, simulate

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


def open_consumer(cluster: FakeCluster, **settings: Any) -> Consumer:
    texts = {key.replace("_", "."): value for key, value in settings.items()}
    defaults = {"bootstrap.servers": cluster.bootstrap, "auto.offset.reset": "earliest"}
    return Consumer(defaults | texts, environment=cluster.environment)


def fill(log: FakePartition, *values: bytes) -> None:
    for value in values:
        log.append(batch.build([Record(-1, 1, None, value)]))


async def read(consumer: Consumer, count: int) -> list[bytes | None]:
    found: list[bytes | None] = []
    async with asyncio.timeout(120):
        while len(found) < count:
            for records in (await consumer.poll(timeout_s=1)).values():
                found += [record.value for record in records]
    return found


def answer(call: Call, number: int = 0, **fields: Any) -> FetchResponse:
    """An answer about one partition of the request's only topic."""
    (topic,) = call.message.topics
    found = FetchedPartition(partition_index=number, **fields)
    return FetchResponse(
        responses=[FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=[found])]
    )


class Sessions:
    """Grants a session and remembers what it is told, as a broker does."""

    def __init__(self, cluster: FakeCluster) -> None:
        self.cluster = cluster
        self.epoch = -1
        self.wanted: dict[tuple[bytes, int], Any] = {}
        self.full_count = 0
        cluster.on(FetchRequest, self.answer)

    async def answer(self, call: Call) -> FetchResponse:
        request: FetchRequest = call.message
        if request.session_epoch == 0:
            self.full_count += 1
            self.epoch = 0
            self.wanted = {}
        elif (request.session_id, request.session_epoch) != (9, self.epoch + 1):
            code = FetchSessionIdNotFound.code if request.session_id != 9 else InvalidFetchSessionEpoch.code
            return FetchResponse(error_code=code)
        else:
            self.epoch += 1
        for gone in request.forgotten_topics_data:
            for number in gone.partitions:
                del self.wanted[gone.topic_id, number]
        for topic in request.topics:
            for entry in topic.partitions:
                self.wanted[topic.topic_id, entry.partition] = entry
        response = FetchResponse(session_id=9)
        for (topic_id, number), entry in self.wanted.items():
            log = next(partitions for found_id, partitions in self.cluster.topics.values() if found_id == topic_id)[
                number
            ]
            if data := log.read(entry.fetch_offset):
                found = FetchedPartition(partition_index=number, high_watermark=log.end_offset, records=data)
                response.responses.append(FetchableTopicResponse(topic_id=topic_id, partitions=[found]))
        if not response.responses:
            await asyncio.sleep(request.max_wait_ms / 1000)
        return response


def test_in_a_session_only_changes_are_told() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        first, second = cluster.add_topic("a", 2)
        sessions = Sessions(cluster)
        async with open_consumer(cluster) as consumer:
            consumer.assign([A0, A1])
            for index in range(5):
                fill(first if index % 2 else second, b"v")
                await read(consumer, 1)
            consumer.pause(A1)
            await asyncio.sleep(2)
            assert [number for _, number in sessions.wanted] == [0]
        assert sessions.full_count == 1
        requests = [call.message for call in cluster.asked(FetchRequest)]
        assert [len(request.topics[0].partitions) if request.topics else 0 for request in requests[:3]] == [2, 1, 1]
        assert any(request.forgotten_topics_data for request in requests)

    simulate(scenario)


def test_a_session_the_broker_lost_is_opened_again() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        sessions = Sessions(cluster)
        async with open_consumer(cluster) as consumer:
            consumer.assign([A0])
            for index in range(6):
                if index % 2:
                    sessions.epoch = -7
                fill(log, b"%d" % index)
                assert await read(consumer, 1) == [b"%d" % index]
        assert sessions.full_count == 4

    simulate(scenario)


def test_what_is_asked_for() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        log.leader_epoch = 3
        async with open_consumer(
            cluster,
            fetch_max_wait_ms=123,
            fetch_min_bytes=7,
            fetch_max_bytes=9999,
            max_partition_fetch_bytes=555,
            isolation_level="read_committed",
            client_rack="r1",
        ) as consumer:
            consumer.assign([A0])
            await consumer.poll(timeout_s=1)
        request: FetchRequest = cluster.asked(FetchRequest)[0].message
        assert (request.max_wait_ms, request.min_bytes, request.max_bytes) == (123, 7, 9999)
        assert (request.isolation_level, request.rack_id) == (1, "r1")
        (entry,) = request.topics[0].partitions
        assert (entry.partition_max_bytes, entry.current_leader_epoch, entry.fetch_offset) == (555, 3, 0)
        assert request.topics[0].topic_id == cluster.topics["a"][0]

    simulate(scenario)


def test_topics_without_a_known_id_are_named() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        fill(log, b"v")
        cluster.limit(MetadataRequest, 0, 9)
        async with open_consumer(cluster) as consumer:
            consumer.assign([A0])
            assert await read(consumer, 1) == [b"v"]
        assert cluster.asked(FetchRequest)[0].version == 12

    simulate(scenario)


def test_old_brokers_are_read_from_too() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        fill(log, b"v")
        cluster.limit(FetchRequest, 4, 4)
        async with open_consumer(cluster) as consumer:
            consumer.assign([A0])
            assert await read(consumer, 1) == [b"v"]

    simulate(scenario)


def test_one_request_at_a_time_and_data_fetched_ahead() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        fill(log, *(b"%d" % index for index in range(20)))
        async with open_consumer(cluster, max_poll_records=1) as consumer:
            consumer.assign([A0])
            await consumer.poll()
            fill(log, b"later")
            await asyncio.sleep(2)
            state = consumer._positions.get(A0)
            assert state is not None
            assert (state.position, state.fetch_offset) == (1, 21)

    simulate(scenario)


def test_a_refusal_is_not_followed_by_a_busy_loop() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a")
        cluster.on(FetchRequest, lambda call: answer(call, error_code=NotLeaderOrFollower.code))
        async with open_consumer(cluster) as consumer:
            consumer.assign([A0])
            await consumer.poll(timeout_s=20)
        assert 15 <= len(cluster.asked(FetchRequest)) <= 35
        assert len(cluster.asked(MetadataRequest)) > 10

    simulate(scenario)


def test_a_broker_that_names_the_new_leader_saves_the_question() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a", leader_id=1)
        async with open_consumer(cluster) as consumer:
            consumer.assign([A0])
            await consumer.poll(timeout_s=1)
            log.leader_id, log.leader_epoch = 2, 1
            fill(log, b"v")

            def moved(call: Call) -> FetchResponse:
                response = answer(
                    call,
                    error_code=NotLeaderOrFollower.code,
                    current_leader=LeaderIdAndEpoch(leader_id=2, leader_epoch=1),
                )
                response.node_endpoints = [NodeEndpoint(node_id=2, host="127.0.0.1", port=cluster.brokers[2].port)]
                return response

            cluster.next(FetchRequest, moved)
            cluster.on(MetadataRequest, later(100))
            assert await read(consumer, 1) == [b"v"]

    simulate(scenario, brokers=2)


def test_a_nearer_replica_is_read_from_until_it_fails() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a", leader_id=1)
        fill(log, b"0")

        def point(call: Call) -> Any:
            asked.append(call.node_id)
            if call.node_id == 1 and not fails:
                return answer(call, preferred_read_replica=2)
            if call.node_id == 2 and fails:
                return answer(call, error_code=OffsetOutOfRange.code)
            call.node_id = 1
            return cluster.usual(call)

        fails = False
        asked: list[int] = []
        cluster.on(FetchRequest, point)
        async with open_consumer(cluster, client_rack="r2") as consumer:
            consumer.assign([A0])
            assert await read(consumer, 1) == [b"0"]
            assert asked[:2] == [1, 2]
            fails = True
            fill(log, b"1")
            assert await read(consumer, 1) == [b"1"]
            assert asked[-1] == 1
            assert await consumer.position(A0) == 2

    simulate(scenario, brokers=2)


def test_committed_records_only() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        transactional = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
        log.append(batch.build([Record(-1, 1, None, b"aborted")], **transactional))  # type: ignore[arg-type]
        end = EndTransaction(committed=False, coordinator_epoch=0)
        log.batches.append(marker_batch(end, producer_id=5, producer_epoch=0, timestamp=1, base_offset=1))
        fill(log, b"plain")

        async def with_aborted(call: Call) -> FetchResponse:
            response: FetchResponse = await cluster.fetch(call)
            found = response.responses[0].partitions[0]
            if call.message.isolation_level:
                found.aborted_transactions = [AbortedTransaction(producer_id=5, first_offset=0)]
            return response

        cluster.on(FetchRequest, with_aborted)
        async with open_consumer(cluster, isolation_level="read_committed") as consumer:
            consumer.assign([A0])
            assert await read(consumer, 1) == [b"plain"]
        async with open_consumer(cluster) as consumer:
            consumer.assign([A0])
            assert await read(consumer, 2) == [b"aborted", b"plain"]

    simulate(scenario)


def test_a_slow_program_does_not_hold_other_partitions_back() -> None:
    """One partition's buffer is full; the fetch for the others does not sleep for long at the broker."""

    async def scenario(cluster: FakeCluster) -> None:
        first, _ = cluster.add_topic("a", 2)
        fill(first, *(b"v" * 1000 for _ in range(10)))
        async with open_consumer(
            cluster, max_partition_fetch_bytes=5000, fetch_max_wait_ms=60_000, max_poll_records=5
        ) as consumer:
            consumer.assign([A0, A1])
            await asyncio.sleep(2)
            fill(first, b"w")
            loop = asyncio.get_running_loop()
            began = loop.time()
            await read(consumer, 11)
            assert loop.time() - began < 1

    simulate(scenario)
