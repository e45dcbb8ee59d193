"""Share fetches that wait, and whom they are woken for."""

from __future__ import annotations

import asyncio

from millbeck.kernel.environment import Environment
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.share_member import (
    ACCEPT,
    ShareMember,
    acquired,
    begin,
    configure,
    create,
    produce,
    settled,
    share_harness,
)


def test_one_record_wakes_one_of_those_who_wait() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        member, topic_id = await begin(harness, client, environment, count=0)
        members = [member]
        for number in range(2, 6):
            other = ShareMember(await harness.connect(environment), f"m{number}")
            await other.join("t", is_assigned=False)
            members.append(other)
        for each in members:
            await each.fetch(topic_id)
        waiting = [asyncio.ensure_future(each.fetch(topic_id, max_wait_ms=2000)) for each in members]
        await asyncio.sleep(0.5)
        await produce(await harness.connect(environment), b"one")
        found = [acquired(each) for each in await asyncio.gather(*waiting)]
        assert found.count([(0, 0, 1)]) == 1
        assert found.count([]) == 4

    share_harness().run(scenario)


def test_when_a_lock_expires_the_first_fetch_in_line_is_served_once_and_not_before() -> None:
    """A member closes, the next one is given what it held and settles nothing; two others wait for the lock."""

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        first, topic_id = await begin(harness, client, environment)
        assert acquired(await settled(first, topic_id)) == [(0, 9, 1)]
        others = []
        for number in range(2, 5):
            other = ShareMember(await harness.connect(environment), f"m{number}")
            await other.join("t", is_assigned=False)
            await other.fetch(topic_id)
            others.append(other)
        second, third, fourth = others
        await first.fetch(topic_id, epoch=-1)
        clock = environment.clock
        assert acquired(await second.fetch(topic_id, max_wait_ms=500)) == [(0, 9, 2)]
        acquired_s = clock.monotonic()
        early = asyncio.ensure_future(third.fetch(topic_id, max_wait_ms=5000))
        late = asyncio.ensure_future(fourth.fetch(topic_id, max_wait_ms=3000))
        assert acquired(await early) == [(0, 9, 3)]
        assert 1.99 < clock.monotonic() - acquired_s < 2.02, "the lock lasts for two seconds"
        assert acquired(await late) == []

    share_harness().run(scenario)


def test_a_full_window_has_room_again_when_something_is_settled() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        member, topic_id = await begin(harness, client, environment, count=0)
        await configure(client, "g", share_partition_max_record_locks="100")
        await produce(client, *[b"x"] * 100)
        await produce(client, b"y")
        assert acquired(await settled(member, topic_id)) == [(0, 99, 1)]
        other = ShareMember(await harness.connect(environment), "m2")
        await other.join("t")
        await other.fetch(topic_id)
        waiting = asyncio.ensure_future(other.fetch(topic_id, max_wait_ms=1500))
        await asyncio.sleep(0.5)
        assert not waiting.done()
        await member.acknowledge(topic_id, (0, 9, [ACCEPT]))
        assert acquired(await waiting) == [(100, 100, 1)]

    share_harness().run(scenario)


def test_partitions_take_turns() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await create(client, partitions=2)
        await configure(client, "g", share_auto_offset_reset="earliest")
        member = ShareMember(client)
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

    share_harness().run(scenario)


def test_what_is_not_in_memory_is_read_by_a_thread() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        member, topic_id = await begin(harness, client, environment)
        harness.machine.disk.faults.cold_read = 1.0
        await member.fetch(topic_id)
        answer = await member.fetch(topic_id, max_wait_ms=5000)
        assert acquired(answer) == [(0, 9, 1)]

    share_harness().run(scenario)
