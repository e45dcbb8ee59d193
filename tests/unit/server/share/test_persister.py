from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from millbeck.coordinator.runtime.result import ResponseCallback
from millbeck.coordinator.share.shard import ShareKey
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError, CoordinatorNotAvailable, InvalidRequest, RequestTimedOut
from millbeck.kernel.names import SHARE_GROUP_STATE_TOPIC
from millbeck.server.share.persister import SECONDS_MAX, Persister
from millbeck.server.share.persister_requests import NOTHING_STORED
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.share_member import create, share_harness


def test_the_topic_is_made_for_the_first_who_asks() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await create(client)
        assert harness.node is not None
        broker = harness.node.broker
        persister = broker.shares.persister
        answers: list[Any] = []
        failures: list[ApiError] = []
        key = ShareKey("g", topic_id, 0)
        persister.summary(key, ResponseCallback(answers.append, failures.append))
        persister.initialize(key, 1, 5, ResponseCallback(answers.append, failures.append))
        await asyncio.sleep(2)
        assert broker.image.topics.named(SHARE_GROUP_STATE_TOPIC) is not None
        assert sorted(answers, key=str) in ([NOTHING_STORED, True], [True, NOTHING_STORED])
        persister.read(key, 3, ResponseCallback(answers.append, failures.append))
        await asyncio.sleep(0.1)
        assert answers[-1][:2] == (1, 5)
        persister.read(ShareKey("none", topic_id, 0), 3, ResponseCallback(answers.append, failures.append))
        await asyncio.sleep(0.1)
        assert [type(error) for error in failures] == [InvalidRequest], "that is final"

    share_harness().run(scenario)


def test_a_coordinator_that_does_not_answer_is_asked_for_a_bounded_time() -> None:
    """Each attempt may take as long as a request does: what counts is the time, not how often."""

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await create(client)
        assert harness.node is not None
        broker = harness.node.broker
        # A shared topic that another broker leads, and does not answer for.
        elsewhere = SimpleNamespace(partitions={0: SimpleNamespace(leader=2)})
        image = SimpleNamespace(topics=SimpleNamespace(named=lambda _: elsewhere))
        asked_s: list[float] = []
        failed_s: list[float] = []
        loop = asyncio.get_running_loop()

        async def never(*arguments: Any, timeout_s: float) -> Any:
            asked_s.append(loop.time())
            await asyncio.sleep(timeout_s)
            raise RequestTimedOut

        def failed(_: ApiError) -> None:
            failed_s.append(loop.time())

        peers = SimpleNamespace(request=never)
        context = SimpleNamespace(image=image, node_id=1, deadlines=broker.deadlines, spawn=broker.spawn, peers=peers)
        persister = Persister(cast(Any, context))
        began_s = loop.time()
        for index in range(3):
            persister.summary(ShareKey("g", topic_id, index), ResponseCallback(lambda _: None, failed))
            # The later ones wait for the answer to the first.
            await asyncio.sleep(0.1)
        await asyncio.sleep(60)
        assert len(failed_s) == 3
        assert max(failed_s) - began_s <= 2 * SECONDS_MAX
        assert len(asked_s) <= 2

    share_harness().run(scenario)


def test_what_cannot_be_is_given_up_after_a_while() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await create(client)
        assert harness.node is not None
        broker = harness.node.broker
        failures: list[ApiError] = []
        broker.shares.persister.summary(ShareKey("g", topic_id, 0), ResponseCallback(lambda _: None, failures.append))
        await asyncio.sleep(5)
        assert failures == []
        await asyncio.sleep(20)
        assert [type(error) for error in failures] == [CoordinatorNotAvailable]
        broker.shares.persister.close()
        broker.shares.persister.summary(ShareKey("g", topic_id, 0), ResponseCallback(lambda _: None, failures.append))
        assert len(failures) == 2

    share_harness(**{"share.coordinator.state.topic.replication.factor": "3"}).run(scenario)
