"""Administration of share groups, on a whole node in the simulator."""

from __future__ import annotations

import asyncio

from millbeck.client.admin import Admin
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import GroupIdNotFound, NonEmptyGroup
from millbeck.kernel.ids import TopicPartition
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.share_member import begin, settled, share_harness

T0 = TopicPartition("t", 0)


def test_share_groups_are_described_and_set_anew() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        member, topic_id = await begin(harness, client, environment)
        await settled(member, topic_id)
        async with Admin({"bootstrap.servers": "n1:9092"}, environment=environment) as admin:
            described = await admin.describe_share_groups(["g", "none"])
            assert described.succeeded["g"].members[0].assignment == (T0,)
            assert isinstance(described.failed["none"], GroupIdNotFound)
            offsets = (await admin.list_share_offsets(["g"])).all()["g"]
            assert (offsets[T0].start_offset, offsets[T0].lag) == (0, 10)
            try:
                await admin.alter_share_offsets("g", {T0: 4})
            except NonEmptyGroup:
                pass
            else:
                raise AssertionError("the group has a member")
            await member.fetch(topic_id, epoch=-1)
            member.epoch = -1
            await member.heartbeat()
            await asyncio.sleep(0.5)
            assert (await admin.alter_share_offsets("g", {T0: 4})).all() == {T0: 4}
            assert (await admin.list_share_offsets(["g"])).all()["g"][T0].lag == 6
            assert (await admin.delete_share_offsets("g", ["t"])).all() == {"t": "t"}
            assert (await admin.list_share_offsets(["g"])).all()["g"] == {}

    share_harness().run(scenario)
