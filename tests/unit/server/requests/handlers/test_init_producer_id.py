"""InitProducerId: ids that nobody else has, and transactional ids that one producer has at a time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import (
    ClusterAuthorizationFailed,
    CoordinatorLoadInProgress,
    InvalidProducerEpoch,
    InvalidRequest,
    InvalidTransactionTimeout,
    ProducerFenced,
    TransactionalIdAuthorizationFailed,
    UnsupportedVersion,
)
from millbeck.security.authorizer import Operation, ResourceType
from millbeck.wire.messages.metadata import ApiVersionsRequest
from millbeck.wire.messages.nodes import FeatureUpdateKey, UpdateFeaturesRequest
from millbeck.wire.messages.transactions import InitProducerIdRequest
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import Denies, run_scenario
from tests.unit.server.harness.transactional_producer import (
    Transacting,
    denying,
    settled,
    stable_offset,
    statuses,
    transaction_harness,
)


@pytest.mark.parametrize("version", range(6))
def test_every_version_gives_a_new_id_with_epoch_zero(version: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        answers = [await client.ask(InitProducerIdRequest(transactional_id=None), version) for _ in range(3)]
        assert [(each.error_code, each.producer_epoch) for each in answers] == [(0, 0)] * 3
        assert len({each.producer_id for each in answers}) == 3

    run_scenario(scenario)


def test_ids_are_never_given_twice_not_even_after_a_crash() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        request = InitProducerIdRequest(transactional_id=None)
        given = [(await client.ask(request, 4)).producer_id for _ in range(1500)]
        harness.machine.power_loss()
        await harness.start()
        client = await harness.connect(environment)
        given += [(await client.ask(request, 4)).producer_id for _ in range(10)]
        assert len(set(given)) == len(given)

    run_scenario(scenario)


def test_a_producer_that_names_what_it_has_gets_another_id() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        first = await client.ask(InitProducerIdRequest(transactional_id=None), 4)
        again = InitProducerIdRequest(transactional_id=None, producer_id=first.producer_id, producer_epoch=0)
        second = await client.ask(again, 4)
        assert (second.error_code, second.producer_epoch) == (0, 0)
        assert second.producer_id != first.producer_id
        for half in (
            InitProducerIdRequest(transactional_id=None, producer_id=5),
            InitProducerIdRequest(transactional_id=None, producer_epoch=5),
        ):
            refused = await client.ask(half, 4)
            assert (refused.error_code, refused.producer_id, refused.producer_epoch) == (InvalidRequest.code, -1, -1)

    run_scenario(scenario)


def test_a_transactional_id_belongs_to_whoever_asked_last() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        producer = await Transacting(client).prepare()
        first_id, first_epoch = producer.producer_id, producer.epoch
        assert await producer.init() == 0
        assert (producer.producer_id, producer.epoch) == (first_id, first_epoch + 1)
        again = InitProducerIdRequest("tx", 1000, producer_id=first_id, producer_epoch=first_epoch)
        for version, error in ((4, ProducerFenced), (3, InvalidProducerEpoch)):
            answer = await client.ask(again, version)
            assert (answer.error_code, answer.producer_id) == (error.code, -1)
        again.producer_epoch = producer.epoch
        answer = await client.ask(again, 4)
        assert (answer.error_code, answer.producer_epoch) == (0, producer.epoch + 1)

    transaction_harness().run(scenario)


def test_a_transactional_id_needs_a_name_and_a_timeout_within_bounds() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await Transacting(client).prepare()
        for name, timeout_ms, error in [
            ("", 1000, InvalidRequest),
            ("tx", 900_001, InvalidTransactionTimeout),
            ("tx", 0, InvalidTransactionTimeout),
        ]:
            answer = await client.ask(InitProducerIdRequest(name, timeout_ms), 4)
            assert answer.error_code == error.code

    transaction_harness().run(scenario)


def test_who_may_write_nowhere_gets_no_id() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        broker = harness.node.broker

        async def answered(transactional_id: str | None = None) -> int:
            request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=1000)
            code: int = (await client.ask(request, 4)).error_code
            return code

        broker.authorizer = Denies(lambda operation, kind, name: True)
        assert await answered() == ClusterAuthorizationFailed.code
        assert await answered("tx") == TransactionalIdAuthorizationFailed.code
        broker.authorizer = Denies(lambda operation, kind, name: kind is ResourceType.TOPIC)
        assert await answered() == 0
        broker.authorizer = Denies(lambda operation, kind, name: operation is Operation.IDEMPOTENT_WRITE)
        assert await answered() == 0

    run_scenario(scenario)


async def newest_version(client: Client) -> int:
    answer = await client.ask(ApiVersionsRequest("test", "1"), 4)
    (found,) = [each.max_version for each in answer.api_keys if each.api_key == 22]
    return int(found)


@pytest.mark.parametrize(
    ("settings", "newest"),
    [
        ({}, 5),
        ({"unstable_api_versions_enable": "true"}, 6),
        ({"unstable_feature_versions_enable": "true"}, 6),
    ],
)
def test_version_6_is_offered_where_unstable_versions_are(settings: dict[str, Any], newest: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert await newest_version(client) == newest
        update = UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey("transaction.version", 3, upgrade_type=1)])
        raised = await client.ask(update, 2)
        assert (raised.error_code == 0) == ("unstable_feature_versions_enable" in settings)

    transaction_harness(**settings).run(scenario)


def two_phase_harness(**settings: Any) -> BrokerHarness:
    enabled = {"unstable_feature_versions_enable": "true", "transaction_two_phase_commit_enable": "true"}
    return transaction_harness(**(enabled | settings))


def asked(*, enables: bool = True, keeps: bool = False, producer: tuple[int, int] = (-1, -1)) -> InitProducerIdRequest:
    return InitProducerIdRequest("tx", 1000, *producer, enables, keeps)


async def raise_to_3(client: Client) -> None:
    update = FeatureUpdateKey("transaction.version", 3, upgrade_type=1)
    assert (await client.ask(UpdateFeaturesRequest(feature_updates=[update]), 2)).error_code == 0


def test_two_phase_commit_must_be_allowed_by_the_broker_and_for_the_principal() -> None:
    async def refused(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await Transacting(client).prepare()
        answer = await client.ask(asked(), 6)
        assert answer.error_code == TransactionalIdAuthorizationFailed.code
        assert (await client.ask(asked(enables=False), 6)).error_code == 0

    two_phase_harness(transaction_two_phase_commit_enable="false").run(refused)

    async def denied(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await Transacting(client).prepare()
        assert harness.node is not None
        assert (await client.ask(asked(), 6)).error_code == 0
        harness.node.broker.authorizer = denying(Operation.TWO_PHASE_COMMIT, ResourceType.TRANSACTIONAL_ID, "tx")
        assert (await client.ask(asked(), 6)).error_code == TransactionalIdAuthorizationFailed.code
        assert (await client.ask(asked(enables=False), 6)).error_code == 0

    two_phase_harness().run(denied)


def test_prepared_transactions_are_kept_from_transaction_version_3_on() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await Transacting(client).prepare()
        assert (await client.ask(asked(keeps=True), 6)).error_code == UnsupportedVersion.code
        await raise_to_3(client)
        answer = await client.ask(asked(keeps=True), 6)
        assert (answer.error_code, answer.ongoing_txn_producer_id, answer.ongoing_txn_producer_epoch) == (0, -1, -1)
        known = (answer.producer_id, answer.producer_epoch)
        assert (await client.ask(asked(keeps=True, producer=known), 6)).error_code == InvalidRequest.code

    two_phase_harness().run(scenario)


def test_a_prepared_transaction_waits_for_its_decision_over_restarts_and_any_time() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        producer = await Transacting(client).prepare()
        await raise_to_3(client)
        producer.adopt(await client.ask(asked(), 6))
        assert await producer.produce(b"one") == 0
        written_by = (producer.producer_id, producer.epoch)
        await asyncio.sleep(30)
        harness.machine.crash()
        await harness.start()
        client = await harness.connect(environment)
        while (answer := await client.ask(asked(keeps=True), 6)).error_code == CoordinatorLoadInProgress.code:
            await asyncio.sleep(0.01)
        assert statuses(harness) == {"tx": "Ongoing"}
        assert (answer.ongoing_txn_producer_id, answer.ongoing_txn_producer_epoch) == written_by
        late, successor = producer, Transacting(client)
        late.client = client
        successor.adopt(answer)
        assert await late.end(True) == ProducerFenced.code
        assert await late.produce(b"two", partition=1) != 0
        assert await successor.produce(b"three") != 0
        assert await stable_offset(client) == 0
        assert await successor.end(True) == 0
        assert await settled(harness) == {"tx": "CompleteCommit"}
        assert await stable_offset(client) == 2
        assert await successor.produce(b"four") == 0
        assert await successor.end(False) == 0

    two_phase_harness().run(scenario)
