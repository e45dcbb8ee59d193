"""ShareFetch and ShareAcknowledge on a whole node, from bytes to bytes."""

from __future__ import annotations

import asyncio

import pytest

from millbeck.kernel import errors
from millbeck.kernel.environment import Environment
from millbeck.security.authorizer import AllowAll, Operation, ResourceType
from millbeck.wire.messages.nodes import FeatureUpdateKey, UpdateFeaturesRequest
from millbeck.wire.messages.topics import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.share_member import (
    ACCEPT,
    REJECT,
    RELEASE,
    RENEW,
    ShareMember,
    abort_a_transaction,
    acquired,
    begin,
    configure,
    create,
    produce,
    settled,
    share_harness,
    values,
)


def test_what_is_accepted_is_over_and_what_is_released_comes_back() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        member, topic_id = await begin(harness, client, environment)
        answer = await settled(member, topic_id)
        assert acquired(answer) == [(0, 9, 1)]
        assert values(answer) == [b"%d" % each for each in range(10)]
        assert answer.acquisition_lock_timeout_ms == 2000
        said = await member.acknowledge(topic_id, (0, 4, [ACCEPT]), (5, 7, [RELEASE, REJECT, ACCEPT]))
        assert [each.error_code for each in said.responses[0].partitions] == [0]
        again = await member.fetch(topic_id)
        assert acquired(again) == [(5, 5, 2)]
        assert values(again) == [b"5"]

    share_harness().run(scenario)


def test_the_oldest_versions_are_served_too() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        member, topic_id = await begin(harness, client, environment)
        assert acquired(await member.fetch(topic_id, version=1, max_wait_ms=500)) == [(0, 9, 1)]
        said = await member.acknowledge(topic_id, (0, 9, [ACCEPT]), version=1)
        assert said.responses[0].partitions[0].error_code == 0

    share_harness().run(scenario)


def test_a_fetch_carries_acknowledgements() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        member, topic_id = await begin(harness, client, environment)
        await settled(member, topic_id)
        answer = await member.fetch(topic_id, said={0: [(0, 9, [RELEASE])]}, max_wait_ms=500)
        assert answer.responses[0].partitions[0].acknowledge_error_code == 0
        assert acquired(answer) == [(0, 9, 2)]
        wrong = await member.fetch(topic_id, said={0: [(0, 10, [ACCEPT])]})
        assert wrong.responses[0].partitions[0].acknowledge_error_code == errors.InvalidRequest.code

    share_harness().run(scenario)


def test_a_fetch_waits_for_records() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        member, topic_id = await begin(harness, client, environment, count=0)
        await member.fetch(topic_id)
        waiting = asyncio.ensure_future(member.fetch(topic_id, max_wait_ms=60_000))
        await asyncio.sleep(1)
        assert not waiting.done()
        await produce(await harness.connect(environment), b"now")
        assert values(await waiting) == [b"now"]
        started = environment.clock.monotonic()
        assert acquired(await member.fetch(topic_id, max_wait_ms=700)) == []
        assert 0.7 <= environment.clock.monotonic() - started < 0.8

    share_harness().run(scenario)


def test_a_fetch_waits_for_as_many_bytes_as_it_wants_and_no_longer_than_it_says() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        member, topic_id = await begin(harness, client, environment, count=0)
        await member.fetch(topic_id)
        waiting = asyncio.ensure_future(member.fetch(topic_id, max_wait_ms=60_000, min_bytes=1000))
        other = await harness.connect(environment)
        await produce(other, b"small")
        await asyncio.sleep(1)
        assert not waiting.done(), "one small record is not enough"
        await produce(other, bytes(1000))
        assert len(values(await waiting)) == 2
        await produce(other, b"late")
        started = environment.clock.monotonic()
        assert values(await member.fetch(topic_id, max_wait_ms=700, min_bytes=1 << 19)) == [b"late"]
        assert 0.7 <= environment.clock.monotonic() - started < 0.8

    share_harness().run(scenario)


def test_a_fetch_of_no_bytes_gets_no_records() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        member, topic_id = await begin(harness, client, environment)
        started = environment.clock.monotonic()
        reply = await member.fetch(topic_id, max_bytes=0, max_wait_ms=500)
        assert (values(reply), acquired(reply)) == ([], [])
        assert 0.5 <= environment.clock.monotonic() - started < 0.6
        assert len(values(await member.fetch(topic_id, max_bytes=1))) > 0, "at least one batch"

    share_harness().run(scenario)


def test_two_members_never_hold_the_same_record() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        member, topic_id = await begin(harness, client, environment)
        other = ShareMember(await harness.connect(environment), "m2")
        await other.join("t")
        assert acquired(await member.fetch(topic_id, max_records=4, is_strict=True, max_wait_ms=500)) == [(0, 3, 1)]
        theirs = await other.fetch(topic_id)
        assert acquired(theirs) == [(4, 9, 1)]
        refused = await other.acknowledge(topic_id, (0, 0, [ACCEPT]))
        assert refused.responses[0].partitions[0].error_code == errors.InvalidRecordState.code

    share_harness().run(scenario)


def test_a_lock_runs_out_and_the_record_is_given_to_another() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        member, topic_id = await begin(harness, client, environment)
        await settled(member, topic_id)
        started = environment.clock.monotonic()
        other = ShareMember(await harness.connect(environment), "m2")
        await other.join("t")
        assert acquired(await other.fetch(topic_id, max_wait_ms=30_000)) == [(0, 9, 2)]
        assert environment.clock.monotonic() - started == pytest.approx(2, abs=0.1)
        late = await member.acknowledge(topic_id, (0, 0, [ACCEPT]))
        assert late.responses[0].partitions[0].error_code == errors.InvalidRecordState.code

    share_harness().run(scenario)


def test_a_lock_can_be_renewed() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        member, topic_id = await begin(harness, client, environment)
        await settled(member, topic_id)
        for _ in range(4):
            await asyncio.sleep(1.5)
            answer = await member.acknowledge(topic_id, (0, 9, [RENEW]), is_renewing=True)
            assert answer.responses[0].partitions[0].error_code == 0
            assert answer.acquisition_lock_timeout_ms == 2000
        fetched = await member.fetch(topic_id, said={0: [(0, 9, [RENEW])]}, is_renewing=True)
        assert fetched.responses[0].partitions[0].acknowledge_error_code == 0
        assert (await member.acknowledge(topic_id, (0, 9, [ACCEPT]))).responses[0].partitions[0].error_code == 0
        unannounced = await member.acknowledge(topic_id, (0, 9, [RENEW]))
        assert unannounced.responses[0].partitions[0].error_code == errors.InvalidRequest.code

    share_harness().run(scenario)


def test_the_records_of_a_lost_connection_come_back_at_once() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        member, topic_id = await begin(harness, client, environment)
        doomed = ShareMember(await harness.connect(environment), "m2")
        await doomed.join("t")
        await settled(doomed, topic_id)
        await member.fetch(topic_id)
        waiting = asyncio.ensure_future(member.fetch(topic_id, max_wait_ms=1500))
        await asyncio.sleep(0.1)
        doomed.client.close()
        assert acquired(await waiting) == [(0, 9, 2)]

    share_harness().run(scenario)


def test_a_session_has_epochs() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        member, topic_id = await begin(harness, client, environment)
        assert (await member.fetch(topic_id, epoch=1)).error_code == errors.ShareSessionNotFound.code
        assert (await member.acknowledge(topic_id, epoch=0)).error_code == errors.InvalidShareSessionEpoch.code
        begun = await member.fetch(topic_id, said={0: [(0, 0, [ACCEPT])]})
        assert begun.error_code == errors.InvalidRequest.code
        await settled(member, topic_id)
        assert (await member.fetch(topic_id, epoch=7)).error_code == errors.InvalidShareSessionEpoch.code
        last = await member.fetch(topic_id, said={0: [(0, 0, [ACCEPT])]}, epoch=-1)
        assert last.responses[0].partitions[0].acknowledge_error_code == 0
        assert acquired(last) == []
        assert (await member.fetch(topic_id, epoch=-1)).error_code == errors.ShareSessionNotFound.code
        member.session_epoch = 0
        answer = await settled(member, topic_id)
        assert acquired(answer) == [(1, 9, 2)], "what it had not settled was released"

    share_harness().run(scenario)


def test_sessions_are_limited() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        member, topic_id = await begin(harness, client, environment)
        await member.fetch(topic_id)
        other = ShareMember(client, "m2")
        assert (await other.fetch(topic_id)).error_code == errors.ShareSessionLimitReached.code
        member.session_epoch = 0
        assert (await member.fetch(topic_id)).error_code == 0, "it takes its own place"

    share_harness(**{"group.share.max.share.sessions": "1"}).run(scenario)


def test_a_poison_record_is_given_up_after_the_limit() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        member, topic_id = await begin(harness, client, environment, count=3)
        assert await configure(client, "g", share_delivery_count_limit="2") == 0
        deliveries = []
        answer = await settled(member, topic_id)
        for _ in range(5):
            for first, last, count in acquired(answer):
                for offset in range(first, last + 1):
                    deliveries.append((offset, count))
                    verdict = RELEASE if offset == 1 else ACCEPT
                    await member.acknowledge(topic_id, (offset, offset, [verdict]))
            answer = await member.fetch(topic_id)
        assert deliveries == [(0, 1), (1, 1), (2, 1), (1, 2)]

    share_harness().run(scenario)


def test_what_is_gone_from_the_log_is_not_waited_for() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        member, topic_id = await begin(harness, client, environment)
        await member.fetch(topic_id)
        await asyncio.sleep(0.2)
        deleting = DeleteRecordsRequest([DeleteRecordsTopic("t", [DeleteRecordsPartition(0, 10)])], 1000)
        assert (await client.ask(deleting, 2)).topics[0].partitions[0].error_code == 0
        await produce(client, b"new")
        assert values(await member.fetch(topic_id)) == [b"new"]

    share_harness().run(scenario)


def test_read_committed_leaves_out_what_was_aborted() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await create(client)
        await configure(client, "g", share_auto_offset_reset="earliest", share_isolation_level="read_committed")
        member = ShareMember(client)
        await member.join("t")
        await produce(client, b"plain")
        assert harness.node is not None
        partition = harness.node.broker.topics.led_partition("t", 0)
        abort_a_transaction(harness, partition)
        await asyncio.sleep(0.2)
        await produce(client, b"after")
        answer = await settled(member, topic_id)
        assert values(answer) == [b"plain", b"after"]

    share_harness().run(scenario)


class Denying(AllowAll):
    def __init__(self, resource_type: ResourceType) -> None:
        self._type = resource_type

    def authorize(
        self, principal: object, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> bool:
        return resource_type is not self._type


@pytest.mark.parametrize(
    ("denied", "code"),
    [
        (ResourceType.GROUP, errors.GroupAuthorizationFailed.code),
        (ResourceType.TOPIC, errors.TopicAuthorizationFailed.code),
    ],
)
def test_reading_must_be_allowed(denied: ResourceType, code: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        member, topic_id = await begin(harness, client, environment)
        assert harness.node is not None
        harness.node.broker.authorizer = Denying(denied)
        answer = await member.fetch(topic_id)
        assert code in (answer.error_code, *[each.error_code for one in answer.responses for each in one.partitions])

    share_harness().run(scenario)


def test_unknown_topics_and_partitions_are_told() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        member, topic_id = await begin(harness, client, environment)
        answer = await member.fetch(bytes(16))
        assert answer.responses[0].partitions[0].error_code == errors.UnknownTopicId.code
        member.session_epoch = 0
        answer = await member.fetch(topic_id, 5)
        assert answer.responses[0].partitions[0].error_code == errors.UnknownTopicOrPartition.code
        assert answer.responses[0].partitions[0].current_leader.leader_id == -1

    share_harness().run(scenario)


def test_with_share_version_0_nothing_is_served() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        member, topic_id = await begin(harness, client, environment)
        update = UpdateFeaturesRequest(10_000, [FeatureUpdateKey("share.version", 0, upgrade_type=2)])
        assert (await client.ask(update, 2)).error_code == 0
        await asyncio.sleep(0.1)
        assert (await member.fetch(topic_id)).error_code == errors.UnsupportedVersion.code
        assert (await member.acknowledge(topic_id, epoch=1)).error_code == errors.UnsupportedVersion.code
        assert (await member.heartbeat()).error_code == errors.UnsupportedVersion.code

    share_harness().run(scenario)
