"""What a fetch finds, how it waits, and what is left behind when nobody wants the answer any more."""

from __future__ import annotations

import asyncio
import errno
from typing import Any, cast

import pytest

from millbeck.kernel.environment import Environment, FileSlice
from millbeck.kernel.errors import (
    FencedLeaderEpoch,
    KafkaStorageError,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    TopicAuthorizationFailed,
    UnknownLeaderEpoch,
    UnknownServerError,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from millbeck.records import batch as batches
from millbeck.replication.log_read import LogRead
from millbeck.security.authorizer import Operation
from millbeck.server.fetch import delayed_fetch
from millbeck.server.fetch.partition_read import PartitionRead
from millbeck.server.fetch.sessions import CachedPartition
from millbeck.simulation.environment.disk_faults import DiskCall
from millbeck.storage.producer_state import AppendOrigin
from millbeck.wire.messages.fetch import AbortedTransaction, FetchPartition, FetchRequest, ReplicaState
from tests.unit.server.harness.broker_harness import BrokerHarness, Client, one_batch
from tests.unit.server.harness.client_requests import (
    append_straight,
    create,
    delete,
    deny,
    end_of_transaction,
    fetch,
    in_transaction,
    leases,
    partition_of,
    produce,
    results,
    run_scenario,
)
from tests.unit.server.harness.method_patches import needs_sources

BATCH = len(one_batch(b"x" * 100))
"""The size of the batches that the tests about sizes append."""


def values(result: Any) -> list[bytes | None]:
    return [record.value for each in batches.split(result.records) for record in batches.records_of(each.data)]


async def timed(reply: Any) -> tuple[Any, float]:
    """A reply, and how long it took in virtual seconds."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    return await reply, loop.time() - began


# What is there.


@pytest.mark.parametrize("version", range(4, 19))
def test_every_version_reads_what_was_appended(version: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await create(client)
        await produce(client, b"a", b"b")
        await produce(client, b"c")
        response = await client.ask(fetch((0, 0), topic_id=topic_id), version)
        (topic,) = response.responses
        assert (topic.topic, topic.topic_id) == (("t", bytes(16)) if version < 13 else ("", topic_id))
        (result,) = topic.partitions
        assert (result.error_code, result.high_watermark, result.last_stable_offset) == (0, 3, 3)
        assert result.aborted_transactions is None
        assert values(result) == [b"a", b"b", b"c"]
        assert result.log_start_offset == (0 if version >= 5 else -1)
        assert (response.error_code, response.session_id) == (0, 0)

    run_scenario(scenario)


def test_an_offset_inside_a_batch_gets_the_whole_batch() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        await produce(client, b"a", b"b", b"c")
        await produce(client, b"d")
        result = results(await client.ask(fetch((0, 2)), 11))[0]
        assert values(result) == [b"a", b"b", b"c", b"d"]
        assert values(results(await client.ask(fetch((0, 3)), 11))[0]) == [b"d"]

    run_scenario(scenario)


def test_the_end_is_empty_and_beyond_either_end_is_out_of_range() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        for _ in range(3):
            await produce(client, b"x")
        partition = partition_of(harness)
        partition.log.delete_records(1)
        at_end = results(await client.ask(fetch((0, 3)), 11))[0]
        assert (at_end.error_code, at_end.records, at_end.high_watermark) == (0, b"", 3)
        for offset in (0, 4, -1):
            beyond = results(await client.ask(fetch((0, offset)), 11))[0]
            assert beyond.error_code == OffsetOutOfRange.code
            assert (beyond.high_watermark, beyond.log_start_offset) == (-1, -1)

    run_scenario(scenario)


def test_the_first_partition_with_data_gets_a_batch_whatever_its_size_and_the_others_only_what_fits() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, partitions=4)
        for index in (1, 2, 3):
            await produce(client, b"x" * 100, index=index)
        request = fetch((0, 0), (1, 0), (2, 0), (3, 0), max_bytes=10, partition_max_bytes=10)
        sizes = {index: len(result.records) for index, result in results(await client.ask(request, 11)).items()}
        assert sizes == {0: 0, 1: BATCH, 2: 0, 3: 0}
        request = fetch((1, 0), (2, 0), (3, 0), max_bytes=2 * BATCH)
        sizes = {index: len(result.records) for index, result in results(await client.ask(request, 11)).items()}
        assert sizes == {1: BATCH, 2: BATCH, 3: 0}

    run_scenario(scenario)


def test_a_partitions_own_limit_ends_at_a_batch() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        for _ in range(5):
            await produce(client, b"x" * 100)
        for limit, count in ((1, 1), (BATCH, 1), (2 * BATCH, 2), (3 * BATCH - 1, 2), (9 * BATCH, 5), (0, 1), (-5, 1)):
            result = results(await client.ask(fetch((0, 0), partition_max_bytes=limit), 11))[0]
            assert len(result.records) == count * BATCH, limit

    run_scenario(scenario)


def test_the_broker_limits_what_a_request_may_ask_for() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        for _ in range(20):
            await produce(client, b"x" * 100)
        result = results(await client.ask(fetch((0, 0)), 11))[0]
        assert len(result.records) == 1024 // BATCH * BATCH

    run_scenario(scenario, fetch_max_bytes="1024")


def test_unknown_topics_partitions_and_ids_have_each_their_error() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await create(client)
        cases = (
            (fetch((0, 0), topic="nowhere"), 11, UnknownTopicOrPartition),
            (fetch((7, 0)), 11, UnknownTopicOrPartition),
            (fetch((7, 0), topic_id=topic_id), 13, UnknownTopicOrPartition),
            (fetch((0, 0), topic_id=bytes(range(16))), 13, UnknownTopicId),
        )
        for request, version, error in cases:
            (result,) = results(await client.ask(request, version)).values()
            assert result.error_code == error.code

    run_scenario(scenario)


# Leader epochs.


def test_a_reader_of_another_epoch_is_fenced_and_told_who_leads() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await create(client)
        partition = partition_of(harness)
        partition.lead(5, 1)

        async def asked(epoch: int, version: int) -> Any:
            wanted = FetchPartition(0, current_leader_epoch=epoch, fetch_offset=0, partition_max_bytes=1000)
            return await client.ask(fetch(wanted, topic_id=topic_id), version)

        assert results(await asked(5, 9))[0].error_code == 0
        assert results(await asked(-1, 9))[0].error_code == 0
        assert results(await asked(6, 9))[0].error_code == UnknownLeaderEpoch.code
        assert results(await asked(4, 9))[0].error_code == FencedLeaderEpoch.code
        silent = results(await asked(4, 15))[0]
        assert (silent.current_leader.leader_id, silent.current_leader.leader_epoch) == (-1, -1)
        response = await asked(4, 16)
        hint = results(response)[0].current_leader
        assert (hint.leader_id, hint.leader_epoch) == (1, 5)
        (endpoint,) = response.node_endpoints
        assert (endpoint.node_id, endpoint.port) == (1, 9092)

    run_scenario(scenario)


def test_a_reader_with_another_history_is_told_where_it_diverges() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        partition = partition_of(harness)
        partition.lead(2, 1)
        await produce(client, b"a", b"b")
        partition.lead(5, 2)
        await produce(client, b"c")
        partition.log.delete_records(1)

        async def asked(offset: int, last_epoch: int, version: int = 12) -> Any:
            wanted = FetchPartition(0, fetch_offset=offset, last_fetched_epoch=last_epoch, partition_max_bytes=1000)
            return results(await client.ask(fetch(wanted, max_wait_ms=5000), version))[0]

        agrees = await asked(2, 2)
        assert (values(agrees), agrees.diverging_epoch.epoch) == ([b"c"], -1)
        assert values(await asked(2, 5)) == [b"c"]
        for offset, last_epoch, expected in ((3, 2, (2, 2)), (2, 3, (2, 2)), (3, 4, (2, 2))):
            diverges = await asked(offset, last_epoch)
            assert (diverges.diverging_epoch.epoch, diverges.diverging_epoch.end_offset) == expected
            assert (diverges.error_code, diverges.records) == (0, b"")
        assert (await asked(2, 9)).error_code == OffsetOutOfRange.code
        assert (await asked(0, 2)).error_code == OffsetOutOfRange.code

    run_scenario(scenario)


# Transactions.


def test_a_reader_of_committed_records_stops_at_the_first_open_transaction() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        partition = partition_of(harness)
        await produce(client, b"plain")
        append_straight(partition, in_transaction(b"open", producer_id=7))
        await produce(client, b"later")
        committed = results(await client.ask(fetch((0, 0), committed=True), 11))[0]
        assert (values(committed), committed.last_stable_offset, committed.high_watermark) == ([b"plain"], 1, 3)
        assert committed.aborted_transactions == []
        everything = results(await client.ask(fetch((0, 0)), 11))[0]
        assert values(everything) == [b"plain", b"open", b"later"]
        beyond = results(await client.ask(fetch((0, 2), committed=True), 11))[0]
        assert (beyond.error_code, beyond.records) == (0, b"")

    run_scenario(scenario)


def test_aborted_transactions_within_the_reply_are_listed() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        partition = partition_of(harness)
        append_straight(partition, in_transaction(b"no", producer_id=7))
        append_straight(partition, in_transaction(b"yes", producer_id=8))
        append_straight(partition, end_of_transaction(7, committed=False), origin=AppendOrigin.COORDINATOR)
        append_straight(partition, end_of_transaction(8, committed=True), origin=AppendOrigin.COORDINATOR)
        result = results(await client.ask(fetch((0, 0), committed=True), 11))[0]
        listed = [(each.producer_id, each.first_offset) for each in result.aborted_transactions]
        assert (listed, result.last_stable_offset) == ([(7, 0)], 4)
        after = results(await client.ask(fetch((0, 3), committed=True), 11))[0]
        assert after.aborted_transactions == []
        assert results(await client.ask(fetch((0, 0)), 11))[0].aborted_transactions is None

    run_scenario(scenario)


def test_a_committed_reader_is_woken_by_the_marker() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        partition = partition_of(harness)
        append_straight(partition, in_transaction(b"open", producer_id=7))
        reply = client.send(fetch((0, 0), committed=True, max_wait_ms=60_000), 11)
        await asyncio.sleep(1)
        assert not reply.done()
        append_straight(partition, end_of_transaction(7, committed=True), origin=AppendOrigin.COORDINATOR)
        response, seconds = await timed(reply)
        assert seconds < 1
        assert len(results(response)[0].records) > 0

    run_scenario(scenario)


# Waiting.


def test_an_append_wakes_a_parked_fetch() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        other = await harness.connect(environment)
        reply = client.send(fetch((0, 0), max_wait_ms=30_000), 11)
        await asyncio.sleep(2)
        assert not reply.done()
        await produce(other, b"at last")
        response, seconds = await timed(reply)
        assert values(results(response)[0]) == [b"at last"]
        assert seconds < 0.1

    run_scenario(scenario)


def test_min_bytes_may_come_in_several_appends() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, partitions=2)
        other = await harness.connect(environment)
        reply = client.send(fetch((0, 0), (1, 0), max_wait_ms=30_000, min_bytes=3 * BATCH), 11)
        for index in (0, 1):
            await produce(other, b"x" * 100, index=index)
            await asyncio.sleep(1)
            assert not reply.done()
        await produce(other, b"x" * 100)
        response, seconds = await timed(reply)
        sizes = {index: len(result.records) for index, result in results(response).items()}
        assert (sizes, seconds < 0.1) == ({0: 2 * BATCH, 1: BATCH}, True)
        assert leases(harness) == 0

    run_scenario(scenario)


def test_no_more_is_waited_for_than_the_reply_could_hold() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        await produce(client, b"x" * 100)
        request = fetch((0, 0), max_wait_ms=30_000, min_bytes=1_000_000, max_bytes=BATCH)
        _, seconds = await timed(client.ask(request, 11))
        assert seconds < 0.1

    run_scenario(scenario)


@pytest.mark.parametrize(("has_data", "wait_ms"), [(False, 500), (True, 500), (True, 0), (False, 0), (False, -3)])
def test_after_max_wait_the_answer_is_what_there_is(has_data: bool, wait_ms: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        if has_data:
            await produce(client, b"little")
        response, seconds = await timed(client.ask(fetch((0, 0), max_wait_ms=wait_ms, min_bytes=10_000), 11))
        assert values(results(response)[0]) == ([b"little"] if has_data else [])
        waited = max(0, wait_ms) / 1000
        assert waited <= seconds < waited + 0.05
        assert leases(harness) == 0

    run_scenario(scenario)


def test_a_fetch_of_nothing_and_one_for_zero_bytes_are_answered_at_once() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        _, seconds = await timed(client.ask(fetch(max_wait_ms=30_000), 11))
        assert seconds < 0.1
        _, seconds = await timed(client.ask(fetch((0, 0), max_wait_ms=30_000, min_bytes=0), 11))
        assert seconds < 0.1

    run_scenario(scenario)


def test_an_error_in_one_partition_ends_the_wait() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        response, seconds = await timed(client.ask(fetch((0, 0), (9, 0), max_wait_ms=30_000), 11))
        assert seconds < 0.1
        codes = {index: result.error_code for index, result in results(response).items()}
        assert codes == {0: 0, 9: UnknownTopicOrPartition.code}

    run_scenario(scenario)


def test_a_deleted_topic_ends_the_wait() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        other = await harness.connect(environment)
        reply = client.send(fetch((0, 0), max_wait_ms=30_000), 11)
        await asyncio.sleep(1)
        await delete(other)
        response, seconds = await timed(reply)
        assert seconds < 0.1
        assert results(response)[0].error_code == UnknownTopicOrPartition.code

    run_scenario(scenario)


def test_a_parked_fetch_holds_what_comes_behind_it() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        parked = client.send(fetch((0, 0), max_wait_ms=3000), 11)
        behind = asyncio.ensure_future(produce(client, b"behind"))
        response, seconds = await timed(parked)
        assert seconds >= 3
        assert results(response)[0].records == b""
        assert await behind == 0

    run_scenario(scenario)


@pytest.mark.parametrize("session", [(0, -1), (0, 0)], ids=["sessionless", "session"])
def test_a_connection_that_is_lost_while_parked_leaves_nothing_behind(session: tuple[int, int]) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, partitions=2)
        await produce(client, b"some")
        other = await harness.connect(environment)
        client.send(fetch((0, 0), (1, 0), max_wait_ms=2_000_000_000, min_bytes=1000, session=session), 11)
        await asyncio.sleep(1)
        watchers = [each for index in (0, 1) for each in partition_of(harness, index=index).watchers]
        assert len(watchers) == 2
        client.close()
        await asyncio.sleep(1)
        assert harness.node is not None
        waiting = [
            each
            for index in (0, 1)
            for each in partition_of(harness, index=index).watchers
            if isinstance(each, delayed_fetch.DelayedFetch)
        ]
        assert waiting == []
        assert [
            getattr(each, "on_ready", None) for each in watchers if not isinstance(each, delayed_fetch.DelayedFetch)
        ] in (
            [],
            [None, None],
        )
        assert leases(harness) == 0
        assert len(harness.node.deadlines) == 0
        await produce(other, b"x" * 2000)

    run_scenario(scenario)


# Who may.


def test_a_name_that_may_not_be_read_is_refused_whether_or_not_it_exists() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await create(client)
        deny(harness, Operation.READ)
        for request, version, error in (
            (fetch((0, 0)), 12, TopicAuthorizationFailed),
            (fetch((0, 0), topic="nowhere"), 12, TopicAuthorizationFailed),
            (fetch((0, 0), topic_id=topic_id), 13, TopicAuthorizationFailed),
            (fetch((0, 0), topic_id=bytes(range(16))), 13, UnknownTopicId),
        ):
            (result,) = results(await client.ask(request, version)).values()
            assert result.error_code == error.code

    run_scenario(scenario)


# Followers.


def as_follower(request: FetchRequest, version: int = 17, broker_id: int = 2, broker_epoch: int = -1) -> FetchRequest:
    request.replica_id = broker_id if version < 15 else -1
    request.replica_state = ReplicaState(broker_id, broker_epoch) if version >= 15 else ReplicaState()
    return request


async def create_replicated(
    harness: BrokerHarness, client: Client, isr: tuple[int, ...] = (1, 2), **configs: Any
) -> bytes:
    """A topic whose partition this node leads, with followers that exist only in the tests' requests."""
    topic_id = await create(client, **configs)
    partition_of(harness).lead(1, 1, (1, 2, 3), isr)
    return topic_id


@pytest.mark.parametrize("version", [11, 14, 15, 18])
def test_replicas_do_not_fetch_from_a_clients_listener(version: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await create_replicated(harness, client)
        await produce(client, b"x")
        request = as_follower(fetch((0, 0), topic_id=topic_id), version)
        (result,) = results(await client.ask(request, version)).values()
        assert (result.error_code, result.records) == (TopicAuthorizationFailed.code, b"")

    run_scenario(
        scenario,
        listeners="PLAINTEXT://:9092,INTERNAL://:9094",
        listener_security_protocol_map="PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT",
        inter_broker_listener_name="INTERNAL",
    )


def test_replicas_fetch_from_the_listeners_that_brokers_change_between() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await create_replicated(harness, client)
        await produce(client, b"x")
        (result,) = results(await client.ask(as_follower(fetch((0, 0), topic_id=topic_id)), 17)).values()
        assert (result.error_code, bool(result.records)) == (0, True)

    run_scenario(
        scenario,
        listeners="PLAINTEXT://:9092,INTERNAL://:9094",
        listener_security_protocol_map="PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT",
        inter_broker_listener_name="INTERNAL",
        millbeck_inter_broker_listeners="PLAINTEXT",
    )


def test_replicas_need_leave_to_act_for_the_cluster() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await create_replicated(harness, client)
        request = as_follower(fetch((0, 0), topic_id=topic_id))
        assert results(await client.ask(request, 17))[0].error_code == 0
        deny(harness, Operation.CLUSTER_ACTION)
        assert results(await client.ask(request, 17))[0].error_code == TopicAuthorizationFailed.code

    run_scenario(scenario)


def test_only_a_follower_gets_a_followers_session() -> None:
    """It may evict the sessions of consumers, and is checked again only when there is something new."""

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await create_replicated(harness, client)
        assert harness.node is not None
        sessions = harness.node.broker.fetch_sessions
        request = as_follower(fetch((0, 0), topic_id=topic_id, session=(0, 0)))
        await client.ask(request, 17)
        deny(harness, Operation.CLUSTER_ACTION)
        await client.ask(request, 17)
        assert [each.is_privileged for each in sessions._sessions.values()] == [True, False]

    run_scenario(scenario)


def test_a_follower_reads_beyond_the_high_watermark_and_what_it_fetches_from_is_its_progress() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await create_replicated(harness, client)
        await produce(client, b"x")
        partition = partition_of(harness)
        assert (partition.high_watermark, partition.log.end_offset) == (0, 1)
        first = results(await client.ask(as_follower(fetch((0, 0), topic_id=topic_id)), 17))[0]
        assert (first.error_code, first.high_watermark) == (0, 0)
        assert b"x" in first.records
        consumed = results(await client.ask(fetch((0, 0), topic_id=topic_id), 17))[0]
        assert (consumed.error_code, consumed.records) == (0, b"")
        second = results(await client.ask(as_follower(fetch((0, 1), topic_id=topic_id)), 17))[0]
        assert (second.error_code, second.records) == (0, b"")
        assert partition.high_watermark == 1
        assert b"x" in results(await client.ask(fetch((0, 0), topic_id=topic_id), 17))[0].records

    run_scenario(scenario)


def test_a_parked_follower_is_woken_by_an_append_and_acknowledges_it_with_its_next_fetch() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await create_replicated(harness, client, min_insync_replicas="2")
        follower = await harness.connect(environment)
        opened = await follower.ask(as_follower(fetch((0, 0), topic_id=topic_id, session=(0, 0))), 17)
        waiting = asyncio.ensure_future(
            follower.ask(as_follower(fetch(session=(opened.session_id, 1), max_wait_ms=5000)), 17)
        )
        await asyncio.sleep(1)
        assert not waiting.done()
        producing = asyncio.ensure_future(produce(client, b"x", acks=-1))
        response = await waiting
        assert b"x" in results(response)[0].records
        await asyncio.sleep(1)
        assert not producing.done()
        await follower.ask(as_follower(fetch((0, 1), topic_id=topic_id, session=(opened.session_id, 2))), 17)
        assert await producing == 0

    run_scenario(scenario)


def test_a_follower_whose_history_is_another_makes_no_progress() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await create_replicated(harness, client)
        await produce(client, b"x")
        partition = partition_of(harness)
        partition.lead(4, 2, (1, 2, 3), (1, 2))
        wanted = FetchPartition(0, fetch_offset=1, last_fetched_epoch=2, partition_max_bytes=1000)
        result = results(await client.ask(as_follower(fetch(wanted, topic_id=topic_id)), 17))[0]
        assert (result.diverging_epoch.epoch, result.diverging_epoch.end_offset) == (1, 1)
        assert partition.replicas is not None
        assert partition.replicas.followers[2].end_offset == -1

    run_scenario(scenario)


def test_who_is_no_follower_or_asks_no_leader_is_told_so() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await create_replicated(harness, client)
        partition = partition_of(harness)
        stranger = as_follower(fetch((0, 0), topic_id=topic_id), broker_id=9)
        assert results(await client.ask(stranger, 17))[0].error_code == NotLeaderOrFollower.code
        partition.follow(2, 5, 9)
        follower = as_follower(fetch((0, 0), topic_id=topic_id))
        response = await client.ask(follower, 17)
        hint = results(response)[0].current_leader
        assert results(response)[0].error_code == NotLeaderOrFollower.code
        assert (hint.leader_id, hint.leader_epoch) == (2, 5)

    run_scenario(scenario)


def test_consumers_read_from_a_follower_what_it_knows_to_be_committed() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create_replicated(harness, client)
        await produce(client, b"x", b"y")
        partition = partition_of(harness)
        partition.follow(2, 5, 9)
        assert results(await client.ask(fetch((0, 0)), 10))[0].error_code == NotLeaderOrFollower.code
        result = results(await client.ask(fetch((0, 0)), 11))[0]
        assert (result.error_code, result.high_watermark, result.records) == (0, 0, b"")
        partition.update_from_leader(2, 0)
        assert b"y" in results(await client.ask(fetch((0, 0)), 11))[0].records

    run_scenario(scenario)


# A disk that is slow, or fails.


async def fill_cold(client: Client, count: int = 40, size: int = 100_000) -> None:
    """A log of several segments, so that finding an offset needs indexes and walks."""
    await create(client, segment_bytes="1048576", index_interval_bytes="300000")
    for number in range(count):
        await produce(client, b"%05d" % number + b"x" * size)


@pytest.mark.parametrize("cold_read", [0.3, 1.0])
def test_what_is_not_in_memory_is_searched_and_read_on_a_thread(cold_read: float) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await fill_cold(client)
        harness.machine.disk.faults.cold_read = cold_read
        offset, numbers = 0, []
        while offset < 40:
            read = values(results(await client.ask(fetch((0, offset), max_wait_ms=1000), 11))[0])
            numbers += [int((value or b"")[:5]) for value in read]
            offset = numbers[-1] + 1
        assert numbers == list(range(40))
        assert leases(harness) == 0

    run_scenario(scenario)


@pytest.mark.parametrize("cold_read", [0.0, 0.5, 1.0])
def test_replies_above_a_mebibyte_stay_in_their_files(cold_read: float) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        for number in range(3):
            await produce(client, b"%d" % number + b"x" * 700_000)
        harness.machine.disk.faults.cold_read = cold_read
        result = results(await client.ask(fetch((0, 0), max_wait_ms=1000), 11))[0]
        assert [(value or b"")[:1] for value in values(result)] == [b"0", b"1", b"2"]
        assert leases(harness) == 0

    run_scenario(scenario)


@pytest.mark.parametrize("cold_read", [0.0, 1.0], ids=["warm", "cold"])
@pytest.mark.parametrize("size", [1000, 700_000], ids=["small", "large"])
def test_a_disk_that_does_not_read_is_a_storage_error_for_the_partition(cold_read: float, size: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        for _ in range(3):
            await produce(client, b"x" * size)
        disk = harness.machine.disk
        disk.faults.cold_read = cold_read
        disk.fail_next(DiskCall.READ, path_part="/t-0/")
        result = results(await client.ask(fetch((0, 0), max_wait_ms=1000), 11))[0]
        assert (result.error_code, result.records) == (KafkaStorageError.code, b"")
        assert leases(harness) == 0
        disk.faults.cold_read = 0.0
        assert len(values(results(await client.ask(fetch((0, 0)), 11))[0])) == 3

    run_scenario(scenario)


def test_a_search_that_the_disk_refuses_ends_in_a_storage_error() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await fill_cold(client)
        disk = harness.machine.disk
        disk.faults.cold_read = 1.0
        disk.fail_next(DiskCall.READ, path_part="/t-0/", error=errno.EIO, count=100)
        response, seconds = await timed(client.ask(fetch((0, 3), max_wait_ms=60_000), 11))
        assert results(response)[0].error_code == KafkaStorageError.code
        assert seconds < 1
        assert leases(harness) == 0

    run_scenario(scenario)


def test_a_topic_that_goes_away_during_a_cold_read_does_not_keep_the_reply() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        await produce(client, b"x" * 100)
        other = await harness.connect(environment)
        harness.machine.disk.faults.cold_read = 1.0
        segment = partition_of(harness).log.active
        reply = client.send(fetch((0, 0)), 11)
        deletion = asyncio.ensure_future(delete(other))
        response, seconds = await timed(asyncio.wait_for(reply, 5))
        assert seconds < 1
        await deletion
        assert results(response)[0].error_code in (0, UnknownTopicOrPartition.code)
        assert segment.handle.leases == 0

    run_scenario(scenario)


def test_a_connection_lost_during_a_cold_read_gives_the_lease_back() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        for _ in range(3):
            await produce(client, b"x" * 700_000)
        harness.machine.disk.faults.cold_read = 1.0
        client.send(fetch((0, 0)), 11)
        await asyncio.sleep(0.0011)
        client.close()
        await asyncio.sleep(80)
        assert leases(harness) == 0

    run_scenario(scenario)


@needs_sources
def test_a_connection_lost_during_a_cold_search_parks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await fill_cold(client, count=30)
        other = await harness.connect(environment)
        harness.machine.disk.faults.cold_read = 1.0
        searching = asyncio.Event()
        start_warm = delayed_fetch.DelayedFetch._start_warm

        async def after_the_loss(each: delayed_fetch.DelayedFetch, *cold: Any) -> None:
            searching.set()
            while not each.call.connection.is_lost:
                await asyncio.sleep(0.01)
            harness.machine.disk.faults.cold_read = 0.0
            await start_warm(each, *cold)

        monkeypatch.setattr(delayed_fetch.DelayedFetch, "_start_warm", after_the_loss)
        client.send(fetch((0, 12), max_wait_ms=2_000_000_000, min_bytes=50_000_000), 11)
        await searching.wait()
        client.close()
        await asyncio.sleep(1)
        assert partition_of(harness).watchers == {}
        assert harness.node is not None
        assert len(harness.node.deadlines) == 0
        assert leases(harness) == 0
        await produce(other, b"more")

    run_scenario(scenario)


def test_an_offline_log_is_a_storage_error_wherever_the_reader_stands() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        await produce(client, b"x")
        partition_of(harness).log.mark_offline("a test")
        for offset in (0, 1):
            response, seconds = await timed(client.ask(fetch((0, offset), max_wait_ms=60_000), 11))
            assert results(response)[0].error_code == KafkaStorageError.code
            assert seconds < 1

    run_scenario(scenario)


@needs_sources
@pytest.mark.parametrize("is_parked", [False, True])
def test_what_should_never_raise_is_answered_and_counted(is_parked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        other = await harness.connect(environment)
        assert harness.node is not None

        def surprise(*_: Any, **__: Any) -> None:
            raise ZeroDivisionError

        if not is_parked:
            await produce(other, b"x")
            monkeypatch.setattr(delayed_fetch.DelayedFetch, "_read", surprise)
            response = await client.ask(fetch((0, 0)), 11)
        else:
            reply = client.send(fetch((0, 0), max_wait_ms=30_000), 11)
            await asyncio.sleep(1)
            monkeypatch.setattr(delayed_fetch.DelayedFetch, "_read", surprise)
            await produce(other, b"x")
            response, seconds = await timed(reply)
            assert seconds < 1
        assert response.error_code == UnknownServerError.code
        assert partition_of(harness).watchers == {}
        assert harness.node.broker.unexpected_errors == 1
        harness.node.broker.unexpected_errors = 0

    run_scenario(scenario)


# What is counted.


def test_fetches_are_counted_by_topic() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, partitions=2)
        await produce(client, b"x" * 100)
        await client.ask(fetch((0, 0), (1, 0)), 11)
        await client.ask(fetch((0, 77)), 11)
        assert harness.node is not None
        counts = harness.node.broker.topics.by_name["t"].counts
        assert (counts.fetch_requests, counts.fetch_failed, counts.bytes_out) == (3, 1, BATCH)

    run_scenario(scenario)


def test_what_had_no_room_in_a_cold_reply_is_told_as_cut_short() -> None:
    found = []
    for index in range(2):
        info = LogRead(10, 0)
        info.end_offset = 10
        outcome = PartitionRead(CachedPartition("t", index, 0, 1000, -1, -1), None, info)
        outcome.slice = FileSlice(cast(Any, None), 0, 5, lambda: None)
        outcome.aborted_transactions = [AbortedTransaction(1, 0)]
        found.append(outcome)
    delayed_fetch.DelayedFetch._loaded(found, [(b"abcde",), ()])
    assert [outcome.records_size for outcome in found] == [5, 0]
    assert [outcome.is_size_limited for outcome in found] == [False, True]
    assert [len(outcome.aborted_transactions or []) for outcome in found] == [1, 0]
