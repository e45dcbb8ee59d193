"""A group with a member of the consumer protocol, taken over with its directory: Kafka's by us, and ours by Kafka."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewTopic

from bench.systems import SYSTEMS
from millbeck.client.admin import Admin
from millbeck.client.admin.results import GroupDescription
from tests.interop.cluster import until

T = TypeVar("T")
OVERRIDES = {"offsets.topic.num.partitions": "1", "group.initial.rebalance.delay.ms": "0"}


async def _described(admin: Admin) -> GroupDescription:
    return (await admin.describe_groups(["g"])).all()["g"]


def _ask(bootstrap: str, work: Callable[[Admin], Awaitable[T]]) -> T:
    async def run() -> T:
        async with Admin({"bootstrap.servers": bootstrap}) as admin:
            return await work(admin)

    return asyncio.run(run())


@pytest.mark.parametrize(("writer", "reader"), [("apache-kafka", "millbeck"), ("millbeck", "apache-kafka")])
def test_a_member_of_the_consumer_protocol_is_taken_over(writer: str, reader: str, tmp_path: Path) -> None:
    with SYSTEMS[writer](tmp_path / writer, overrides=OVERRIDES) as node:
        admin = AdminClient({"bootstrap.servers": node.bootstrap})
        admin.create_topics([NewTopic("t", 2, 1)])["t"].result(30)
        member = Consumer({"bootstrap.servers": node.bootstrap, "group.id": "g", "group.protocol": "consumer"})
        try:
            member.subscribe(["t"])

            def is_assigned() -> bool:
                member.poll(0.2)
                return len(member.assignment()) == 2

            until(is_assigned, "an assignment")
            before = _ask(node.bootstrap, _described)
            # The member stays in the group: the node goes away before it can leave.
            node.stop()
        finally:
            member.close()
    shutil.copytree(node.data, tmp_path / reader / "data")
    with SYSTEMS[reader](tmp_path / reader, overrides=OVERRIDES, node_id=node.node_id) as heir:
        after = _ask(heir.bootstrap, _described)
    assert [each.uses_classic_protocol for each in after.members] == [False]
    assert [(each.member_id, each.assignment) for each in after.members] == [
        (each.member_id, each.assignment) for each in before.members
    ]
