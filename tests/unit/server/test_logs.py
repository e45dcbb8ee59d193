"""The node's logs as the metadata changes and the node stops."""

from __future__ import annotations

import asyncio
from typing import Any

from asking import create, delete, in_house, produce
from house import Client, House

from millbeck.kernel.environment import Environment
from millbeck.storage.directory import CLEAN_SHUTDOWN_FILE_NAME


def test_a_stop_during_a_flush_waits_for_it_and_is_clean() -> None:
    async def scenario(house: House, client: Client, environment: Environment) -> None:
        assert house.node is not None
        await create(client, flush_messages="1")
        threads: Any = house.node.environment.threads
        threads._delay_s = 5.0
        await produce(client, b"x")
        await asyncio.sleep(0.05)
        await house.node.stop()
        assert house.machine.disk.mount().exists(f"/data/{CLEAN_SHUTDOWN_FILE_NAME}")

    in_house(scenario)


def test_a_deleted_topic_leaves_no_partition_behind_though_the_loop_has_its_turns() -> None:
    async def scenario(house: House, client: Client, environment: Environment) -> None:
        assert house.node is not None
        await create(client, "many", 200)
        await create(client, "other")
        await delete(client, "many")
        broker = house.node.broker
        assert [partition.name.topic for partition in broker.topics.all_partitions()] == ["other"]
        assert [name.topic for name in broker.logs.directories[0].logs if name.topic[0] != "_"] == ["other"]
        await create(client, "many", 3)
        assert await produce(client, b"x", topic="many", index=2) == 0

    in_house(scenario)
