"""Topics are created in the background: each once, one request after another, and none waits for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, cast

import pytest

from millbeck.controller.auto_creation import InternalTopic
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError, PolicyViolation, RequestTimedOut
from millbeck.server.broker import Broker
from millbeck.server.metadata.auto_creation import NAMES_MAX, SECONDS_MAX, AutoCreation
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import create, run_scenario


class Controller:
    """Stands in for the broker: creations wait until it is there."""

    def __init__(self, harness: BrokerHarness, environment: Environment) -> None:
        assert harness.node is not None
        self.environment = environment
        self.spawn = harness.node.spawn
        self.asked: list[list[str]] = []
        self.made_as: dict[str, InternalTopic] = {}
        self.refused: dict[str, ApiError] = {}
        self.reported: list[Exception] = []
        self.is_there = asyncio.Event()
        self.error: Exception | None = None

    async def create_missing(
        self, names: Iterable[str], made_as: Mapping[str, InternalTopic], *, timeout_s: float
    ) -> dict[str, ApiError]:
        self.asked.append(list(names))
        self.made_as |= made_as
        try:
            async with asyncio.timeout(timeout_s):
                await self.is_there.wait()
        except TimeoutError:
            return dict.fromkeys(names, RequestTimedOut())
        if self.error is not None:
            raise self.error
        return self.refused

    def report(self, error: Exception, where: str) -> None:
        self.reported.append(error)


def creating(harness: BrokerHarness, environment: Environment) -> tuple[AutoCreation, Controller]:
    controller = Controller(harness, environment)
    return AutoCreation(cast(Broker, cast(Any, controller))), controller


def test_a_topic_is_asked_for_once_at_a_time() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        creation, controller = creating(harness, environment)
        creation.request(["a", "b", "a"])
        creation.request(["a"])
        creation.request(["b", "c"])
        await asyncio.sleep(1)
        assert controller.asked == [["a", "b"]]
        controller.is_there.set()
        await asyncio.sleep(1)
        assert controller.asked == [["a", "b"], ["c"]]
        creation.request(["a"])
        await asyncio.sleep(1)
        assert controller.asked == [["a", "b"], ["c"], ["a"]]

    run_scenario(scenario)


def test_no_more_than_a_bound_wait_and_each_is_forgotten_in_time(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        creation, controller = creating(harness, environment)
        creation.request(f"t{number}" for number in range(NAMES_MAX - 1))
        await asyncio.sleep(SECONDS_MAX / 2)
        creation.request(["last", "too-many"])
        creation.request(["too-many"])
        await asyncio.sleep(SECONDS_MAX / 2 + 1)
        assert controller.asked[1:] == [["last"]]
        creation.request(["t0"])
        await asyncio.sleep(SECONDS_MAX / 2)
        assert controller.asked[2:] == [["t0"]]
        controller.is_there.set()
        creation.request(["too-many"])
        await asyncio.sleep(1)
        assert controller.asked[3:] == [["too-many"]]

    run_scenario(scenario)
    assert "topic last could not be created on first use: REQUEST_TIMED_OUT" in caplog.text


def test_what_fails_unexpectedly_does_not_stop_the_others() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        creation, controller = creating(harness, environment)
        controller.error = ZeroDivisionError("oh")
        controller.is_there.set()
        creation.request(["a"])
        creation.request(["b"])
        await asyncio.sleep(1)
        assert controller.asked == [["a"], ["b"]]
        assert len(controller.reported) == 2

    run_scenario(scenario)


def test_a_refusal_is_logged_once_however_often_clients_ask(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        await create(client, "a.b")
        for _ in range(5):
            harness.node.broker.auto_creation.request(["a_b", "fine"])
            await asyncio.sleep(0.5)
        assert harness.node.broker.image.topics.named("fine") is not None

    run_scenario(scenario)
    assert caplog.text.count("topic a_b could not be created on first use: INVALID_TOPIC_EXCEPTION") == 1


def test_a_topic_that_was_refused_is_asked_for_again_after_a_pause() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        creation, controller = creating(harness, environment)
        controller.is_there.set()
        controller.refused = {"a": PolicyViolation("not here")}
        made_as = {"a": InternalTopic(partition_count=3, replication_factor=-1)}
        creation.request(["a"], made_as, pause_s=10)
        await asyncio.sleep(1)
        assert (controller.made_as, creation.refusals(["a", "b"])) == (made_as, {"a": "POLICY_VIOLATION: not here"})
        creation.request(["a"], made_as, pause_s=10)
        await asyncio.sleep(10)
        assert len(controller.asked) == 1
        controller.refused = {}
        creation.request(["a"], made_as, pause_s=10)
        await asyncio.sleep(1)
        assert (len(controller.asked), creation.refusals(["a"])) == (2, {})

    run_scenario(scenario)
