"""Share fetches that wait, and whom they are woken for."""

from __future__ import annotations

import asyncio

from house import Client, House
from sharing import ACCEPT, Member, acquired, begin, configure, create, produce, settled, share_house

from millbeck.kernel.environment import Environment


def test_one_record_wakes_one_of_those_who_wait() -> None:
    async def scenario(house: House, client: Client, environment: Environment) -> None:
        member, topic_id = await begin(house, client, environment, count=0)
        members = [member]
        for number in range(2, 6):
            other = Member(await house.connect(environment), f"m{number}")
            await other.join("t", is_assigned=False)
            members.append(other)
        for each in members:
            await each.fetch(topic_id)
        waiting = [asyncio.ensure_future(each.fetch(topic_id, max_wait_ms=2000)) for each in members]
        await asyncio.sleep(0.5)
        await produce(await house.connect(environment), b"one")
        found = [acquired(each) for each in await asyncio.gather(*waiting)]
        assert found.count([(0, 0, 1)]) == 1
        assert found.count([]) == 4

    share_house().run(scenario)


def test_a_full_window_has_room_again_when_something_is_settled() -> None:
    async def scenario(house: House, client: Client, environment: Environment) -> None:
        member, topic_id = await begin(house, client, environment, count=0)
        await configure(client, "g", share_partition_max_record_locks="100")
        await produce(client, *[b"x"] * 100)
        await produce(client, b"y")
        assert acquired(await settled(member, topic_id)) == [(0, 99, 1)]
        other = Member(await house.connect(environment), "m2")
        await other.join("t")
        await other.fetch(topic_id)
        waiting = asyncio.ensure_future(other.fetch(topic_id, max_wait_ms=1500))
        await asyncio.sleep(0.5)
        assert not waiting.done()
        await member.acknowledge(topic_id, (0, 9, [ACCEPT]))
        assert acquired(await waiting) == [(100, 100, 1)]

    share_house().run(scenario)


def test_partitions_take_turns() -> None:
    async def scenario(house: House, client: Client, environment: Environment) -> None:
        topic_id = await create(client, partitions=2)
        await configure(client, "g", share_auto_offset_reset="earliest")
        member = Member(client)
        await member.join("t")
        await member.fetch(topic_id, 0, 1)
        await asyncio.sleep(0.5)
        for index in (0, 1):
            for _ in range(2):
                await produce(client, b"v", partition=index)
        turns = []
        for _ in range(3):
            answer = await member.fetch(topic_id, 0, 1, max_records=1, is_strict=True)
            turns += [index for index in (0, 1) if acquired(answer, index)]
        assert turns in ([1, 0, 1], [0, 1, 0])

    share_house().run(scenario)


def test_what_is_not_in_memory_is_read_by_a_thread() -> None:
    async def scenario(house: House, client: Client, environment: Environment) -> None:
        member, topic_id = await begin(house, client, environment)
        house.machine.disk.faults.cold_read = 1.0
        await member.fetch(topic_id)
        answer = await member.fetch(topic_id, max_wait_ms=5000)
        assert acquired(answer) == [(0, 9, 1)]

    share_house().run(scenario)
