"""Markers from other coordinators and from administrators."""

from __future__ import annotations

from millbeck.kernel import errors
from millbeck.kernel.environment import Environment
from millbeck.security.authorizer import ResourceType
from millbeck.wire.messages.transactions import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.transactional_producer import (
    Denying,
    Transacting,
    aborted,
    stable_offset,
    transaction_harness,
)


def marker(
    producer: Transacting, *, epoch: int, coordinator_epoch: int = 9, version: int = 0
) -> WriteTxnMarkersRequest:
    topics = [WritableTxnMarkerTopic("t", [0, 5])]
    return WriteTxnMarkersRequest(
        markers=[WritableTxnMarker(producer.producer_id, epoch, False, topics, coordinator_epoch, version)]
    )


async def codes(client: Client, request: WriteTxnMarkersRequest, version: int = 2) -> list[int]:
    answer = await client.ask(request, version)
    return [each.error_code for topic in answer.markers[0].topics for each in topic.partitions]


def test_a_marker_ends_what_is_open_and_an_older_one_is_refused() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        producer = await Transacting(client).prepare()
        unknown = errors.UnknownTopicOrPartition.code
        assert await producer.produce(b"a") == 0
        assert await stable_offset(client) == 0
        assert await codes(client, marker(producer, epoch=producer.epoch, version=2)) == [
            errors.InvalidProducerEpoch.code,
            unknown,
        ], "from version 2 on a marker's epoch is above its records'"
        assert await codes(client, marker(producer, epoch=producer.epoch), 1) == [0, unknown]
        assert await stable_offset(client) == 2
        assert await aborted(client) == [(producer.producer_id, 0)]
        late = marker(producer, epoch=producer.epoch, coordinator_epoch=8)
        assert await codes(client, late) == [errors.TransactionCoordinatorFenced.code, unknown]

    transaction_harness().run(scenario)


def test_not_everybody_may_write_markers() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        producer = await Transacting(client).prepare()
        assert harness.node is not None
        harness.node.broker.authorizer = Denying(lambda operation, kind, name: kind is ResourceType.CLUSTER)
        refused = errors.ClusterAuthorizationFailed.code
        assert await codes(client, marker(producer, epoch=0)) == [refused, refused]

    transaction_harness().run(scenario)
