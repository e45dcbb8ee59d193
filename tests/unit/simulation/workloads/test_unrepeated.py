"""Producers that never send a record twice, on a cluster without faults."""

from __future__ import annotations

import asyncio
import random

import pytest

from millbeck.kernel.environment import Environment
from millbeck.simulation.cluster import SimCluster
from millbeck.simulation.histories.history import History
from millbeck.simulation.workloads.leaders import MultiNodeCluster
from millbeck.simulation.workloads.produce_and_read import HistoryReader
from millbeck.simulation.workloads.unrepeated import send_each_once


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_everything_that_was_sent_is_there_when_nothing_breaks(acks: int) -> None:
    cluster, history = SimCluster(1), History()

    async def scenario(environment: Environment) -> None:
        cluster.start_all()
        clients = MultiNodeCluster(environment, cluster.addresses, random.Random(1))
        await clients.create_topic(1, {}, replication_factor=3)
        sending = asyncio.create_task(send_each_once(clients, history, "p", random.Random(1), acks=acks))
        await asyncio.sleep(3)
        clients.is_calm = True
        await sending
        await asyncio.sleep(1)
        history.record_final_read("0", await HistoryReader(clients, history, "final", 0).read_all())

    with cluster.world as world:
        world.run(scenario, limit_s=60)
    assert history.acknowledged_count() == len(history.sends) > 10
    assert [value for _, value in history.final["0"]] == [send.value for send in history.sends]
