"""What handlers share: threads that may be busy, topics made on first use, addresses, replicas that are down."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import InvalidTopic
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import create, partition_of, run_scenario


def broker_of(harness: BrokerHarness) -> Any:
    assert harness.node is not None
    return harness.node.broker


def test_a_full_queue_of_threads_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        broker = broker_of(harness)
        threads = broker.environment.threads
        run, refusals = threads.run, [0]

        def busy(job: Any, *arguments: Any) -> Any:
            if refusals[0] < 5:
                refusals[0] += 1
                raise BlockingIOError
            return run(job, *arguments)

        monkeypatch.setattr(threads, "run", busy)
        assert await broker.in_thread(lambda a, b: a + b, 2, 3) == 5
        assert refusals == [5]
        with pytest.raises(ZeroDivisionError):
            await broker.in_thread(lambda: 1 // 0)

    run_scenario(scenario)


def test_topics_are_made_on_first_use_and_errors_are_told_by_name() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        broker = broker_of(harness)
        await create(client, "there")
        errors = await broker.auto_create(["new", "there", "../x"])
        assert {name: type(error) for name, error in errors.items()} == {"../x": InvalidTopic}
        assert sorted(broker.topics.by_name) == ["new", "there"]
        await broker.auto_create(["__consumer_offsets"])
        topic = broker.topics.by_name["__consumer_offsets"]
        assert (len(topic.partitions), topic.is_internal) == (3, True)
        assert topic.config.cleanup_policy == ("compact",)

    run_scenario(scenario)


def test_asking_twice_at_once_makes_one_topic() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        broker = broker_of(harness)
        assert not any(await asyncio.gather(broker.auto_create(["new"]), broker.auto_create(["new"])))

    run_scenario(scenario)


def test_a_replica_is_offline_when_its_log_or_its_broker_is() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        broker = broker_of(harness)
        await create(client, partitions=2)
        image = broker.image.topics.named("t")
        assert [broker.offline_replicas("t", index, image.partitions[index]) for index in (0, 1)] == [[], []]
        partition_of(harness).log.mark_offline("a test")
        del broker.topics.by_name["t"].partitions[1]
        assert [broker.offline_replicas("t", index, image.partitions[index]) for index in (0, 1)] == [[1], [1]]

    run_scenario(scenario)


def test_what_is_reported_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        broker = broker_of(harness)
        broker.report(ZeroDivisionError("oh"), "somewhere")
        assert broker.unexpected_errors == 1
        broker.unexpected_errors = 0

    run_scenario(scenario)
    assert "somewhere" in caplog.text


def test_what_one_line_raises_again_and_again_is_logged_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        broker = broker_of(harness)

        def fail(number: int) -> None:
            try:
                _ = 1 / 0 if number else dict[str, int]()["missing"]
            except (ZeroDivisionError, KeyError) as error:
                broker.report(error, f"request {number}")

        for number in (1, 2, 3, 0, 4):
            fail(number)
        await asyncio.sleep(11)
        for number in (5, 6):
            fail(number)
        assert broker.unexpected_errors == 7
        broker.unexpected_errors = 0

    run_scenario(scenario)
    told = [record.getMessage() for record in caplog.records if "request" in record.getMessage()]
    assert told == ["request 1", "request 0", "request 5 (3 others like it since the last message)"]
