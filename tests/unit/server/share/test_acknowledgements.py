from __future__ import annotations

import pytest

from millbeck.kernel import errors
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import InvalidRequest
from millbeck.server.share.acknowledgements import checked
from millbeck.wire.messages.share_fetch import AcknowledgementBatch
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.share_member import ACCEPT, RENEW, begin, settled, share_harness


def test_what_makes_sense_goes_on() -> None:
    found = checked([AcknowledgementBatch(0, 2, [1]), AcknowledgementBatch(5, 6, [0, 3])], may_renew=False)
    assert [(each.first_offset, each.last_offset, list(each.types)) for each in found] == [(0, 2, [1]), (5, 6, [0, 3])]
    assert checked([AcknowledgementBatch(0, 0, [RENEW])], may_renew=True)


@pytest.mark.parametrize(
    "batches",
    [
        [(3, 2, [1])],
        [(0, 2, [1]), (2, 3, [1])],
        [(5, 6, [1]), (0, 1, [1])],
        [(0, 2, [1, 1])],
        [(0, 2, [])],
        [(0, 0, [5])],
        [(0, 0, [-1])],
        [(0, 0, [RENEW])],
    ],
)
def test_what_makes_no_sense_is_refused(batches: list[tuple[int, int, list[int]]]) -> None:
    with pytest.raises(InvalidRequest):
        checked([AcknowledgementBatch(*each) for each in batches], may_renew=False)


def test_each_partition_has_its_outcome() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        member, topic_id = await begin(harness, client, environment)
        await settled(member, topic_id)
        nobody = await member.acknowledge(topic_id, (0, 0, [ACCEPT]), partition=4)
        assert nobody.responses[0].partitions[0].error_code == errors.UnknownTopicOrPartition.code
        good = await member.acknowledge(topic_id, (0, 0, [ACCEPT]))
        assert good.responses[0].partitions[0].error_code == 0
        assert harness.node is not None
        counters = harness.node.broker.shares.counters
        assert (counters.failed_acknowledgements, counters.acknowledge_requests) == (1, 2)

    share_harness().run(scenario)
