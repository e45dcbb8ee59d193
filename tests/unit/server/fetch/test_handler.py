"""Fetch sessions on a whole node: what is named once, what is told, and when a session ends."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import (
    FetchSessionIdNotFound,
    FetchSessionTopicIdError,
    InvalidFetchSessionEpoch,
    UnknownServerError,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from millbeck.server.fetch.handler import error_reply
from millbeck.server.fetch.sessions import FetchSession
from millbeck.wire.messages.topics import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from tests.unit.server.harness.broker_harness import BrokerHarness, Client, one_batch
from tests.unit.server.harness.client_requests import (
    append_straight,
    create,
    delete,
    fetch,
    in_transaction,
    leases,
    partition_of,
    produce,
    results,
    run_scenario,
)

BATCH = len(one_batch(b"x" * 100))


class Session:
    """A client's half of one session over a topic: it counts the epochs."""

    def __init__(self, client: Client, version: int = 11, topic_id: bytes = bytes(16)) -> None:
        self.client = client
        self.version = version
        self.topic_id = topic_id
        self.session_id = 0
        self.epoch = 0

    def send(self, *partitions: Any, **options: Any) -> Any:
        request = fetch(*partitions, session=(self.session_id, self.epoch), topic_id=self.topic_id, **options)
        self.epoch += 1
        return self.client.send(request, self.version)

    async def ask(self, *partitions: Any, **options: Any) -> dict[int, Any]:
        response = await asyncio.wait_for(self.send(*partitions, **options), 60)
        assert response.error_code == 0
        if self.session_id == 0:
            self.session_id = response.session_id
            assert self.session_id > 0
        assert response.session_id == self.session_id
        return results(response)


@pytest.mark.parametrize("version", range(7, 19))
def test_only_partitions_with_news_are_listed(version: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await create(client, partitions=3)
        other = await harness.connect(environment)
        session = Session(client, version, topic_id)
        assert sorted(await session.ask((0, 0), (1, 0), (2, 0))) == [0, 1, 2]
        assert await session.ask() == {}
        await produce(other, b"x", index=1)
        listed = await session.ask()
        assert [(index, result.high_watermark) for index, result in listed.items()] == [(1, 1)]
        assert await session.ask((1, 1)) == {}

    run_scenario(scenario)


def test_a_client_that_does_not_move_on_gets_the_same_data_again() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        await produce(client, b"x")
        session = Session(client)
        first = await session.ask((0, 0))
        again = await session.ask()
        assert first[0].records == again[0].records != b""
        assert await session.ask((0, 1)) == {}

    run_scenario(scenario)


def test_a_parked_session_is_woken_by_any_of_its_partitions() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, partitions=50)
        other = await harness.connect(environment)
        session = Session(client)
        await session.ask(*((index, 0) for index in range(50)))
        for index in (7, 33):
            reply = session.send(max_wait_ms=30_000)
            await asyncio.sleep(1)
            assert not reply.done()
            await produce(other, b"x", index=index)
            assert list(results(await asyncio.wait_for(reply, 1))) == [index]
            await session.ask((index, 1))
        assert leases(harness) == 0

    run_scenario(scenario)


@pytest.mark.parametrize("is_first", [True, False], ids=["the first fetch", "an incremental fetch"])
def test_a_fetch_whose_session_is_closed_is_answered_at_once(is_first: bool) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        other = await harness.connect(environment)
        session = Session(client)
        if is_first:
            reply = session.send((0, 0), max_wait_ms=30_000)
        else:
            await session.ask((0, 0))
            reply = session.send(max_wait_ms=30_000)
        await asyncio.sleep(1)
        (watcher,) = partition_of(harness).watchers
        assert isinstance(watcher, FetchSession)
        await other.ask(fetch(session=(watcher.session_id, -1)), 11)
        response = await asyncio.wait_for(reply, 0.1)
        assert (response.error_code, response.session_id) == (FetchSessionIdNotFound.code, 0)
        assert list(partition_of(harness).watchers) == []
        session = Session(client)
        assert list(await session.ask((0, 0))) == [0]

    run_scenario(scenario)


def test_growth_between_two_fetches_is_not_missed() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        other = await harness.connect(environment)
        session = Session(client)
        await session.ask((0, 0))
        await produce(other, b"x")
        assert len((await session.ask(max_wait_ms=30_000))[0].records) > 0

    run_scenario(scenario)


def test_a_partition_added_later_is_told_even_when_it_is_empty() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, partitions=2)
        session = Session(client)
        await session.ask((0, 0))
        assert list(await session.ask((1, 0), max_wait_ms=100)) == [1]
        assert await session.ask(max_wait_ms=100) == {}

    run_scenario(scenario)


def test_a_forgotten_partition_is_neither_listed_nor_watched() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, partitions=2)
        other = await harness.connect(environment)
        session = Session(client)
        await session.ask((0, 0), (1, 0))
        assert await session.ask(forgotten=(1,)) == {}
        assert partition_of(harness, index=1).watchers == {}
        await produce(other, b"x", index=1)
        assert await session.ask() == {}
        assert list(await session.ask((1, 0))) == [1]

    run_scenario(scenario)


@pytest.mark.parametrize("epoch", [-1, 0], ids=["closed", "made anew"])
def test_a_session_ends_when_its_client_says_so(epoch: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        await produce(client, b"x")
        session = Session(client)
        await session.ask((0, 0))
        response = await client.ask(fetch((0, 0), session=(session.session_id, epoch)), 11)
        assert len(results(response)[0].records) > 0
        assert (response.session_id == 0) == (epoch == -1)
        assert response.session_id != session.session_id
        assert harness.node is not None
        assert len(harness.node.broker.fetch_sessions) == (0 if epoch == -1 else 1)
        gone = await client.ask(fetch(session=(session.session_id, 1)), 11)
        assert (gone.error_code, gone.session_id, gone.responses) == (FetchSessionIdNotFound.code, 0, [])

    run_scenario(scenario)


def test_a_session_without_partitions_is_over() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        session = Session(client)
        await session.ask((0, 0))
        response = await session.send(forgotten=(0,), max_wait_ms=30_000)
        assert (response.error_code, response.session_id, response.responses) == (0, 0, [])
        assert harness.node is not None
        assert len(harness.node.broker.fetch_sessions) == 0

    run_scenario(scenario)


def test_wrong_ids_and_epochs_are_refused_and_the_session_goes_on() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await create(client)
        session = Session(client, version=12)
        await session.ask((0, 0))
        wrong = [
            (fetch(session=(session.session_id + 1, 1)), 12, FetchSessionIdNotFound),
            (fetch(session=(session.session_id, 2)), 12, InvalidFetchSessionEpoch),
            (fetch((0, 0), topic_id=topic_id, session=(session.session_id, 1)), 13, FetchSessionTopicIdError),
        ]
        for request, version, error in wrong:
            response = await client.ask(request, version)
            assert (response.error_code, response.session_id, response.responses) == (error.code, 0, [])
        assert await session.ask() == {}

    run_scenario(scenario)


def test_the_log_start_is_news() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        other = await harness.connect(environment)
        await produce(client, b"a", b"b")
        session = Session(client)
        await session.ask((0, 2))
        request = DeleteRecordsRequest(
            topics=[DeleteRecordsTopic("t", [DeleteRecordsPartition(0, 1)])], timeout_ms=1000
        )
        assert (await other.ask(request, 2)).topics[0].partitions[0].error_code == 0
        assert (await session.ask(max_wait_ms=100))[0].log_start_offset == 1
        reply = session.send(max_wait_ms=1000)
        await asyncio.sleep(0.5)
        request.topics[0].partitions[0].offset = 2
        await other.ask(request, 2)
        assert results(await reply)[0].log_start_offset == 2
        assert await session.ask() == {}

    run_scenario(scenario)


def test_an_error_is_told_with_every_fetch_until_it_is_gone() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, partitions=1)
        session = Session(client)
        await session.ask((0, 0), (5, 0))
        for _ in range(2):
            assert {index: result.error_code for index, result in (await session.ask()).items()} == {
                5: UnknownTopicOrPartition.code
            }
        assert await session.ask(forgotten=(5,)) == {}

    run_scenario(scenario)


@pytest.mark.parametrize("version", [12, 13])
def test_a_topic_deleted_and_made_again_is_followed_by_name_and_not_by_id(version: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await create(client)
        other = await harness.connect(environment)
        await produce(other, b"old", b"old")
        session = Session(client, version, topic_id)
        await session.ask((0, 2))
        reply = session.send(max_wait_ms=30_000)
        await asyncio.sleep(1)
        await delete(other)
        error = UnknownTopicOrPartition if version < 13 else UnknownTopicId
        assert results(await asyncio.wait_for(reply, 1))[0].error_code == error.code
        assert await create(other) != topic_id
        answer = await session.ask((0, 0))
        if version >= 13:
            assert answer[0].error_code == UnknownTopicId.code
            return
        assert answer[0].error_code == 0
        reply = session.send(max_wait_ms=30_000)
        await asyncio.sleep(1)
        await produce(other, b"new")
        assert b"new" in results(await asyncio.wait_for(reply, 1))[0].records

    run_scenario(scenario)


def test_partitions_take_turns_when_not_all_fit() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, partitions=3)
        for index in range(3):
            for _ in range(5):
                await produce(client, b"x" * 100, index=index)
        session = Session(client)
        offsets = {0: 0, 1: 0, 2: 0}
        served: list[int] = []
        news = list(offsets.items())
        for _ in range(6):
            answer = await session.ask(*news, max_bytes=BATCH)
            news = []
            for index, result in answer.items():
                if result.records:
                    served.append(index)
                    offsets[index] += 1
                    news.append((index, offsets[index]))
        assert served == [0, 1, 2, 0, 1, 2]

    run_scenario(scenario)


def test_what_a_limit_kept_out_comes_next_although_a_transaction_is_open() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, partitions=2)
        for index in (0, 1):
            append_straight(partition_of(harness, index=index), in_transaction(b"x" * 100, producer_id=7))
            await produce(client, b"x" * 100, index=index)
        session = Session(client)
        first = await session.ask((0, 1), (1, 1), max_bytes=BATCH)
        assert {index: len(result.records) for index, result in first.items()} == {0: BATCH, 1: 0}
        second = await session.ask((0, 2), max_bytes=BATCH, max_wait_ms=30_000)
        assert {index: len(result.records) for index, result in second.items()} == {1: BATCH}

    run_scenario(scenario)


def test_what_a_partitions_limit_keeps_out_is_not_forgotten_during_the_wait() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, partitions=2)
        other = await harness.connect(environment)
        session = Session(client)
        await session.ask((0, 0), (1, 0), partition_max_bytes=BATCH)
        await produce(other, b"x" * 100, index=0)
        await produce(other, b"x" * 5000, index=1)
        answer = await session.ask(max_wait_ms=1000, min_bytes=100_000)
        assert {index: len(result.records) for index, result in answer.items()} == {0: BATCH, 1: 0}
        answer = await session.ask((0, 1), max_wait_ms=1000, min_bytes=1)
        assert len(answer[1].records) > 5000

    run_scenario(scenario)


def test_what_is_kept_out_a_second_time_is_not_forgotten_either() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, partitions=3)
        for index in range(3):
            await produce(client, b"x" * 5000, index=index)
        session = Session(client)
        first = await session.ask((0, 0), (1, 0), (2, 0), partition_max_bytes=BATCH)
        assert [index for index, result in first.items() if result.records] == [0]
        second = await session.ask((0, 1), max_wait_ms=1000, min_bytes=100_000)
        assert [index for index, result in second.items() if result.records] == [1]
        third = await session.ask((1, 1), max_wait_ms=1000, min_bytes=1)
        assert [index for index, result in third.items() if result.records] == [2]

    run_scenario(scenario)


def test_without_room_for_a_session_the_client_goes_on_with_full_fetches() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        await Session(client).ask((0, 0))
        other = await harness.connect(environment)
        response = await other.ask(fetch((0, 0), session=(0, 0)), 11)
        assert (response.session_id, list(results(response))) == (0, [0])

    run_scenario(scenario, max_incremental_fetch_session_cache_slots="1")


def test_a_session_outlives_its_connection() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        session = Session(client)
        await session.ask((0, 0))
        client.close()
        session.client = await harness.connect(environment)
        await produce(session.client, b"x")
        assert list(await session.ask()) == [0]

    run_scenario(scenario)


def test_an_error_for_the_whole_has_a_place_from_version_seven_on() -> None:
    error = UnknownServerError()
    assert error_reply(None, 6, error) is None
    answer = error_reply(None, 7, error)
    assert answer is not None
    assert answer.error_code == error.code
