"""A transactional id whose producer epochs are used up, over the wire: no client gets the last one, and nobody suffers.

The last epoch is for markers. A producer that could begin a transaction with it could not be fenced any more, and
whatever is late in the same partition of the coordinator would never be aborted.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest

from bench.systems import SYSTEMS
from millbeck.host import real_environment
from millbeck.simulation.workloads.outage_requests import TRANSACTION, coordinators_of
from millbeck.simulation.workloads.wire_client import WireClient
from millbeck.simulation.workloads.without_controller import error_codes
from millbeck.wire.messages.topics import CreatableTopic, CreateTopicsRequest
from millbeck.wire.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    DescribeTransactionsRequest,
    EndTxnRequest,
    InitProducerIdRequest,
)

SETTINGS = {"transaction.state.log.num.partitions": "1"}
LAST_SHOWN, FOR_MARKERS = 32766, 32767
AT_ONCE = 500
READY_S = 30.0
TIMEOUT_S, CHECK_S, SLACK_S = 5.0, 10.0, 2.0
CONCURRENT_TRANSACTIONS, INVALID_PRODUCER_ID_MAPPING = 51, 49


class Attack:
    def __init__(self, client: WireClient) -> None:
        self._client = client

    async def run(self) -> None:
        await self._until_answered(CreateTopicsRequest([CreatableTopic("t", 1, 1)], 10_000), 7)
        await self._until_answered(coordinators_of(TRANSACTION, "attacker"), 4)
        last = await self._use_up("attacker")
        assert await self._add("attacker", last, LAST_SHOWN) == 0
        # The open transaction is aborted with the last epoch.
        fenced = await self._client.ask(InitProducerIdRequest("attacker", 60_000), 4)
        assert fenced.error_code == CONCURRENT_TRANSACTIONS
        await self._until_answered(InitProducerIdRequest("attacker", 60_000), 4)
        assert await self._add("attacker", last, FOR_MARKERS) == INVALID_PRODUCER_ID_MAPPING
        for version in (3, 5):
            ended = await self._client.ask(EndTxnRequest("attacker", last, FOR_MARKERS, True), version)
            assert ended.error_code == INVALID_PRODUCER_ID_MAPPING
        await self._check_timeout("other")

    async def _use_up(self, transactional_id: str) -> int:
        """Take epochs until the last one; the producer id."""
        first = await self._until_answered(InitProducerIdRequest(transactional_id, 60_000), 4)
        epoch = first.producer_epoch
        while epoch < LAST_SHOWN:
            asked = [
                self._client.send(InitProducerIdRequest(transactional_id, 60_000), 4)
                for _ in range(min(AT_ONCE, LAST_SHOWN - epoch))
            ]
            answers = await asyncio.gather(*asked)
            assert {each.producer_id for each in answers if not each.error_code} <= {first.producer_id}
            epoch = max([epoch, *(each.producer_epoch for each in answers)])
        return int(first.producer_id)

    async def _check_timeout(self, transactional_id: str) -> None:
        """Another id of the same partition is aborted in time."""
        producer = await self._until_answered(InitProducerIdRequest(transactional_id, int(TIMEOUT_S * 1000)), 4)
        assert await self._add(transactional_id, producer.producer_id, producer.producer_epoch) == 0
        async with asyncio.timeout(TIMEOUT_S + CHECK_S + SLACK_S):
            while await self._state(transactional_id) != "CompleteAbort":
                await asyncio.sleep(0.2)

    async def _state(self, transactional_id: str) -> str:
        answer = await self._client.ask(DescribeTransactionsRequest([transactional_id]), 0)
        return str(answer.transaction_states[0].transaction_state)

    async def _add(self, transactional_id: str, producer_id: int, epoch: int) -> int:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=transactional_id,
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic("t", [0])],
        )
        answer = await self._client.ask(request, 3)
        topic = answer.results_by_topic_v3_and_below[0]
        return int(topic.results_by_partition[0].partition_error_code)

    async def _until_answered(self, request: Any, version: int) -> Any:
        async with asyncio.timeout(READY_S):
            while any(error_codes(answer := await self._client.ask(request, version))):
                await asyncio.sleep(0.2)
        return answer


@pytest.mark.timeout(120)
def test_used_up_epochs_do_not_keep_another_id_from_timing_out(system: str, tmp_path: Path) -> None:
    async def attack(port: int) -> None:
        _, client = await real_environment().network.connect(WireClient, host="127.0.0.1", port=port)
        await Attack(cast(WireClient, client)).run()

    with SYSTEMS[system](tmp_path, overrides=SETTINGS) as node:
        asyncio.run(attack(node.port))
