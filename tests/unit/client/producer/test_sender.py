"""What becomes of records when brokers fail in all the ways they do: none lost, none twice, none out of order."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.client.errors import ClientClosed, DeliveryTimeout
from millbeck.client.producer import Producer, RecordMetadata
from millbeck.kernel.errors import (
    ClusterAuthorizationFailed,
    DuplicateSequenceNumber,
    InvalidProducerEpoch,
    InvalidRecord,
    KafkaStorageError,
    LeaderNotAvailable,
    MessageTooLarge,
    NotEnoughReplicas,
    NotLeaderOrFollower,
    OutOfOrderSequenceNumber,
    TopicAuthorizationFailed,
    UnknownProducerId,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from millbeck.records import batch
from millbeck.wire.messages.metadata import MetadataRequest
from millbeck.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from millbeck.wire.messages.shared import LeaderIdAndEpoch, NodeEndpoint
from millbeck.wire.messages.transactions import InitProducerIdRequest, InitProducerIdResponse
from tests.unit.client.fake_cluster import (
    CLOSE,
    SILENCE,
    USUAL,
    Call,
    FakeCluster,
    FakePartition,
    later,
    produce_error,
    simulate,
)


def open_producer(cluster: FakeCluster, **settings: Any) -> Producer:
    texts = {key.replace("_", "."): value for key, value in settings.items()}
    return Producer({"bootstrap.servers": cluster.bootstrap} | texts, environment=cluster.environment)


async def send_all(producer: Producer, values: list[bytes], **options: Any) -> list[asyncio.Future[RecordMetadata]]:
    return [await producer.enqueue("a", value, **options) for value in values]


def values(count: int) -> list[bytes]:
    return [b"v%d" % index for index in range(count)]


PASSING = (
    NotLeaderOrFollower,
    LeaderNotAvailable,
    UnknownTopicOrPartition,
    UnknownTopicId,
    NotEnoughReplicas,
    KafkaStorageError,
)


@pytest.mark.parametrize("error", PASSING, ids=lambda error: error.__name__)
def test_a_passing_error_is_retried(error: Any) -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        cluster.next(ProduceRequest, produce_error(error.code), produce_error(error.code))
        async with open_producer(cluster) as producer:
            sent = await send_all(producer, values(3))
            await producer.flush()
            assert [future.result().offset for future in sent] == [0, 1, 2]
        assert log.values == values(3)

    simulate(scenario)


@pytest.mark.parametrize("answer", [CLOSE, SILENCE], ids=["hung up", "no answer"])
def test_a_lost_answer_does_not_double_records(answer: Any) -> None:
    """The first copy is stored and its answer lost; the second is recognised by its sequence."""

    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        cluster.next(ProduceRequest, lambda call: cluster.usual(call) and answer)
        async with open_producer(cluster) as producer:
            sent = await send_all(producer, values(3))
            await producer.flush()
            assert [future.result().offset for future in sent] == [0, 1, 2]
        assert log.values == values(3)
        assert len(cluster.asked(ProduceRequest)) == 2

    simulate(scenario)


@pytest.mark.parametrize("failing", range(5))
def test_nothing_overtakes_a_batch_that_comes_back(failing: int) -> None:
    """Five batches are in flight when one of them fails; later ones are refused as out of order and follow it."""

    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        answers = [USUAL] * failing + [produce_error(NotLeaderOrFollower.code)]
        async with open_producer(cluster, batch_size=1, linger_ms=0) as producer:
            await producer.send("a", b"first")
            cluster.next(ProduceRequest, *answers)
            sent = await send_all(producer, values(12))
            await producer.flush()
            assert [future.result().offset for future in sent] == list(range(1, 13))
        assert log.values == [b"first", *values(12)]
        assert {batch.read_header(one).producer_epoch for one in log.batches} == {0}

    simulate(scenario)


def test_requests_in_flight_are_bounded() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a", 20)
        async with open_producer(
            cluster, batch_size=1, linger_ms=0, max_in_flight_requests_per_connection=3
        ) as producer:
            await producer.send("a", b"first")
            connection = producer.cluster.connection_nowait(1)
            assert connection is not None
            most = 0

            def answer(call: Call) -> Any:
                nonlocal most
                most = max(most, connection.in_flight_count)
                return later(0.05)(call)

            cluster.on(ProduceRequest, answer)
            await send_all(producer, values(40))
            await producer.flush()
        assert most == 3

    simulate(scenario)


def test_requests_are_no_larger_than_allowed_and_serve_partitions_in_turn() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a", 3)
        async with open_producer(cluster, batch_size=1, linger_ms=50, max_request_size=2500) as producer:
            await producer.send("a", b"first")
            cluster.calls.clear()
            producer._yielded_s = asyncio.get_running_loop().time()
            for index in range(12):
                await producer.enqueue("a", b"v" * 1000, partition=index // 4)
            await producer.flush()
        requests = [
            [(entry.index, len(entry.records)) for topic in call.message.topic_data for entry in topic.partition_data]
            for call in cluster.asked(ProduceRequest)
        ]
        assert all(sum(size for _, size in request) <= 2500 for request in requests)
        served = [number for request in requests for number, _ in request]
        assert [sorted(served[start : start + 3]) for start in (0, 3, 6, 9)] == [[0, 1, 2]] * 4

    simulate(scenario)


def test_a_throttled_broker_is_left_in_peace() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a")

        def throttle(call: Call) -> Any:
            response = cluster.usual(call)
            response.throttle_time_ms = 5000
            return response

        cluster.next(ProduceRequest, throttle)
        async with open_producer(cluster) as producer:
            await producer.send("a", b"0")
            loop = asyncio.get_running_loop()
            began = loop.time()
            await producer.send("a", b"1")
            assert loop.time() - began == pytest.approx(5, abs=0.1)

    simulate(scenario)


def test_retries_are_counted() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a")
        cluster.on(ProduceRequest, produce_error(NotLeaderOrFollower.code))
        async with open_producer(cluster, retries=2) as producer:
            with pytest.raises(NotLeaderOrFollower):
                await producer.send("a", b"0")
        assert len(cluster.asked(ProduceRequest)) == 3

    simulate(scenario)


def test_topics_without_a_known_id_are_named() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        cluster.limit(MetadataRequest, 0, 9)
        async with open_producer(cluster) as producer:
            await producer.send("a", b"0")
        assert cluster.asked(ProduceRequest)[0].version == 12
        assert log.values == [b"0"]

    simulate(scenario)


def test_a_leader_that_moved_is_followed() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a", leader_id=1)
        async with open_producer(cluster) as producer:
            await producer.send("a", b"0")
            log.leader_id, log.leader_epoch = 2, 1
            assert (await (await producer.enqueue("a", b"1"))).offset == 1
        assert log.values == [b"0", b"1"]
        assert cluster.asked(ProduceRequest)[-1].node_id == 2

    simulate(scenario, brokers=2)


def test_a_broker_that_names_the_new_leader_saves_the_question() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a", leader_id=1)
        async with open_producer(cluster) as producer:
            await producer.send("a", b"0")
            log.leader_id, log.leader_epoch = 2, 1

            def moved(call: Call) -> ProduceResponse:
                return ProduceResponse(
                    responses=[
                        TopicProduceResponse(
                            topic_id=call.message.topic_data[0].topic_id,
                            partition_responses=[
                                PartitionProduceResponse(
                                    index=0,
                                    error_code=NotLeaderOrFollower.code,
                                    current_leader=LeaderIdAndEpoch(leader_id=2, leader_epoch=1),
                                )
                            ],
                        )
                    ],
                    node_endpoints=[NodeEndpoint(node_id=2, host="127.0.0.1", port=cluster.brokers[2].port)],
                )

            cluster.next(ProduceRequest, moved)
            cluster.on(MetadataRequest, lambda call: SILENCE)
            assert (await (await producer.enqueue("a", b"1"))).offset == 1
        assert log.values == [b"0", b"1"]

    simulate(scenario, brokers=2)


def test_a_broker_that_restarts_is_waited_for() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        async with open_producer(cluster) as producer:
            await producer.send("a", b"0")
            cluster.brokers[1].stop()
            sent = await send_all(producer, values(5))
            await asyncio.sleep(20)
            assert not any(future.done() for future in sent)
            await cluster.brokers[1].start()
            await producer.flush()
        assert log.values == [b"0", *values(5)]

    simulate(scenario)


def test_a_refused_batch_fails_alone_and_a_new_epoch_begins() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        async with open_producer(cluster, batch_size=1, linger_ms=0) as producer:
            await producer.send("a", b"first")
            cluster.next(
                ProduceRequest,
                USUAL,
                produce_error(
                    InvalidRecord.code,
                    error_message="one is bad",
                    record_errors=[BatchIndexAndErrorMessage(batch_index=0, batch_index_error_message="no key")],
                ),
            )
            sent = await send_all(producer, values(6))
            await producer.flush()
            with pytest.raises(InvalidRecord, match="one is bad: no key"):
                sent[1].result()
            assert [future.result().offset for index, future in enumerate(sent) if index != 1] == [1, 2, 3, 4, 5]
        assert log.values == [b"first", b"v0", b"v2", b"v3", b"v4", b"v5"]
        assert {batch.read_header(one).producer_epoch for one in log.batches} == {0, 1}
        assert {batch.read_header(one).producer_id for one in log.batches} == {1001}

    simulate(scenario)


def test_a_broker_that_forgot_the_producer_gets_a_new_epoch() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        first, second = cluster.add_topic("a", 2)
        async with open_producer(cluster) as producer:
            for partition in (0, 1):
                await producer.send("a", b"0", partition=partition)
            cluster.next(ProduceRequest, produce_error(UnknownProducerId.code))
            await producer.send("a", b"1", partition=0)
            await producer.send("a", b"1", partition=1)
        assert [batch.read_header(one).producer_epoch for one in first.batches] == [0, 1]
        assert [batch.read_header(one).base_sequence for one in first.batches] == [0, 0]
        # The other partition follows as soon as it is idle.
        assert [batch.read_header(one).producer_epoch for one in second.batches] == [0, 1]

    simulate(scenario)


def test_out_of_order_with_nothing_missing_begins_a_new_epoch() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        async with open_producer(cluster) as producer:
            await producer.send("a", b"0")
            cluster.next(ProduceRequest, produce_error(OutOfOrderSequenceNumber.code))
            assert (await (await producer.enqueue("a", b"1"))).offset == 1
        assert [batch.read_header(one).producer_epoch for one in log.batches] == [0, 1]

    simulate(scenario)


def test_a_producer_id_that_is_refused_is_replaced() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        async with open_producer(cluster) as producer:
            await producer.send("a", b"0")
            cluster.next(ProduceRequest, produce_error(InvalidProducerEpoch.code))
            await producer.send("a", b"1")
        assert [batch.read_header(one).producer_id for one in log.batches] == [1001, 1002]
        assert len(cluster.asked(InitProducerIdRequest)) == 2

    simulate(scenario)


def test_a_duplicate_long_known_counts_as_stored() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a")
        cluster.next(ProduceRequest, produce_error(DuplicateSequenceNumber.code, base_offset=-1))
        async with open_producer(cluster) as producer:
            assert (await (await producer.enqueue("a", b"0"))).offset == -1

    simulate(scenario)


def test_a_batch_too_large_for_the_broker_is_split() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")

        def take_small(call: Call) -> Any:
            data = call.message.topic_data[0].partition_data[0].records
            return USUAL if batch.read_header(data).record_count <= 3 else produce_error(MessageTooLarge.code)(call)

        cluster.on(ProduceRequest, take_small)
        async with open_producer(cluster, linger_ms=100) as producer:
            sent = await send_all(producer, values(20))
            await producer.flush()
            assert [future.result().offset for future in sent] == list(range(20))
        assert log.values == values(20)

    simulate(scenario)


def test_a_record_too_large_for_the_broker_names_the_setting() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a")
        cluster.on(ProduceRequest, produce_error(MessageTooLarge.code))
        async with open_producer(cluster) as producer:
            with pytest.raises(MessageTooLarge, match=r"max\.message\.bytes"):
                await producer.send("a", b"0")

    simulate(scenario)


def test_a_final_error_is_not_retried() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a")
        cluster.on(ProduceRequest, produce_error(TopicAuthorizationFailed.code))
        async with open_producer(cluster) as producer:
            with pytest.raises(TopicAuthorizationFailed):
                await producer.send("a", b"0")
        assert len(cluster.asked(ProduceRequest)) == 1

    simulate(scenario)


def test_delivery_is_given_up_in_time_and_the_rest_goes_on() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        async with open_producer(cluster, delivery_timeout_ms=4000, request_timeout_ms=1000, linger_ms=0) as producer:
            await producer.send("a", b"0")
            cluster.on(ProduceRequest, produce_error(NotLeaderOrFollower.code))
            loop = asyncio.get_running_loop()
            began = loop.time()
            with pytest.raises(DeliveryTimeout, match=r"delivery\.timeout\.ms \(4000\); the last attempt: .*leader"):
                await producer.send("a", b"lost")
            assert loop.time() - began == pytest.approx(4, abs=0.1)
            cluster.on(ProduceRequest, None)
            assert (await (await producer.enqueue("a", b"2"))).offset == 1
        assert log.values == [b"0", b"2"]

    simulate(scenario)


def test_a_batch_given_up_in_flight_still_counts_when_it_was_stored() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        async with open_producer(cluster, delivery_timeout_ms=4000, request_timeout_ms=3000) as producer:
            await producer.send("a", b"0")
            cluster.next(ProduceRequest, later(6))
            with pytest.raises(DeliveryTimeout):
                await producer.send("a", b"late")
            await asyncio.sleep(3)
            assert (await (await producer.enqueue("a", b"2"))).offset == 2
        assert log.values == [b"0", b"late", b"2"]
        assert {batch.read_header(one).producer_epoch for one in log.batches} == {0}

    simulate(scenario)


def test_a_producer_that_gets_no_id_fails_with_the_reason() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a")
        cluster.on(
            InitProducerIdRequest, lambda call: InitProducerIdResponse(error_code=ClusterAuthorizationFailed.code)
        )
        async with open_producer(cluster) as producer:
            with pytest.raises(ClusterAuthorizationFailed):
                await producer.send("a", b"0")

    simulate(scenario)


@pytest.mark.parametrize(("acks", "offset"), [("1", 0), ("0", -1)])
def test_without_idempotence(acks: str, offset: int) -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        async with open_producer(cluster, acks=acks) as producer:
            assert (await (await producer.enqueue("a", b"0"))).offset == offset
            await producer.flush()
            await asyncio.sleep(1)
        assert log.values == [b"0"]
        assert not cluster.asked(InitProducerIdRequest)
        assert batch.read_header(log.batches[0]).producer_id == -1

    simulate(scenario)


@pytest.mark.parametrize(("highest", "by_id"), [(3, False), (12, False), (13, True)])
def test_topics_are_named_as_the_version_wants(highest: int, by_id: bool) -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        cluster.limit(ProduceRequest, 3, highest)
        async with open_producer(cluster) as producer:
            await producer.send("a", b"0")
        (call,) = cluster.asked(ProduceRequest)
        assert call.version == highest
        assert call.message.topic_data[0].name == ("" if by_id else "a")
        assert log.values == [b"0"]

    simulate(scenario)


def test_a_topic_made_again_is_written_to_under_its_new_id() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a")
        async with open_producer(cluster) as producer:
            await producer.send("a", b"old")
            del cluster.topics["a"]
            (log,) = cluster.add_topic("a")
            assert (await (await producer.enqueue("a", b"new"))).offset == 0
        assert log.values == [b"new"]

    simulate(scenario)


def test_partitions_share_requests() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        logs = cluster.add_topic("a", 10)
        async with open_producer(cluster, linger_ms=50) as producer:
            for number in range(10):
                await producer.enqueue("a", b"v", partition=number)
            await producer.flush()
        assert all(log.values == [b"v"] for log in logs)
        assert len(cluster.asked(ProduceRequest)) == 1

    simulate(scenario)


def test_closing_at_once_fails_what_is_left() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a")
        cluster.on(ProduceRequest, lambda call: SILENCE)
        producer = open_producer(cluster, linger_ms=0)
        sent = await send_all(producer, values(2))
        await asyncio.sleep(1)
        waiting = await producer.enqueue("a", b"x")
        await producer.close(timeout_s=2)
        for future in (*sent, waiting):
            with pytest.raises(ClientClosed):
                future.result()

    simulate(scenario)


@pytest.mark.parametrize("seed", range(4))
def test_order_and_number_survive_connections_cut_at_random(seed: int) -> None:
    async def scenario(cluster: FakeCluster) -> list[FakePartition]:
        logs = cluster.add_topic("a", 3)
        dice = cluster.environment.randomness

        def unreliable(call: Call) -> Any:
            fate = dice.below(10)
            if fate == 0:
                return CLOSE
            if fate == 1:
                cluster.usual(call)
                return CLOSE
            if fate == 2:
                return produce_error(NotLeaderOrFollower.code)(call)
            return USUAL

        async with open_producer(cluster, batch_size=100, linger_ms=1) as producer:
            sent: list[tuple[int, asyncio.Future[RecordMetadata]]] = []
            for index in range(300):
                if index == 20:
                    cluster.on(ProduceRequest, unreliable)
                if index == 200:
                    for log in logs:
                        log.leader_id, log.leader_epoch = 3 - log.leader_id, log.leader_epoch + 1
                sent.append((index % 3, await producer.enqueue("a", b"v%d" % index, partition=index % 3)))
                await asyncio.sleep(0.001)
            await producer.flush()
            for number, log in enumerate(logs):
                assert log.values == [b"v%d" % index for index in range(300) if index % 3 == number]
                offsets = [future.result().offset for partition, future in sent if partition == number]
                assert offsets == list(range(100))
        return logs

    simulate(scenario, brokers=2, seed=seed)
