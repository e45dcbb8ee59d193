"""InitProducerId: ids that nobody else has, and transactional ids that one producer has at a time."""

from __future__ import annotations

from typing import Any

import pytest
from asking import Denies, in_house
from house import Client, House
from transacting import Transacting, transaction_house

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import (
    ClusterAuthorizationFailed,
    InvalidProducerEpoch,
    InvalidRequest,
    InvalidTransactionTimeout,
    ProducerFenced,
    TransactionalIdAuthorizationFailed,
)
from millbeck.security.authorizer import Operation, ResourceType
from millbeck.wire.messages.init_producer_id import InitProducerIdRequest


@pytest.mark.parametrize("version", range(6))
def test_every_version_gives_a_new_id_with_epoch_zero(version: int) -> None:
    async def scenario(house: House, client: Client, environment: Environment) -> None:
        answers = [await client.ask(InitProducerIdRequest(transactional_id=None), version) for _ in range(3)]
        assert [(each.error_code, each.producer_epoch) for each in answers] == [(0, 0)] * 3
        assert len({each.producer_id for each in answers}) == 3

    in_house(scenario)


def test_ids_are_never_given_twice_not_even_after_a_crash() -> None:
    async def scenario(house: House, client: Client, environment: Environment) -> None:
        request = InitProducerIdRequest(transactional_id=None)
        given = [(await client.ask(request, 4)).producer_id for _ in range(1500)]
        house.machine.power_loss()
        await house.start()
        client = await house.connect(environment)
        given += [(await client.ask(request, 4)).producer_id for _ in range(10)]
        assert len(set(given)) == len(given)

    in_house(scenario)


def test_a_producer_that_names_what_it_has_gets_another_id() -> None:
    async def scenario(house: House, client: Client, environment: Environment) -> None:
        first = await client.ask(InitProducerIdRequest(transactional_id=None), 4)
        again = InitProducerIdRequest(transactional_id=None, producer_id=first.producer_id, producer_epoch=0)
        second = await client.ask(again, 4)
        assert (second.error_code, second.producer_epoch) == (0, 0)
        assert second.producer_id != first.producer_id
        for halves in ({"producer_id": 5}, {"producer_epoch": 5}):
            half: Any = InitProducerIdRequest(transactional_id=None, **halves)
            assert (await client.ask(half, 4)).error_code == InvalidRequest.code

    in_house(scenario)


def test_a_transactional_id_belongs_to_whoever_asked_last() -> None:
    async def scenario(house: House, client: Client, environment: Environment) -> None:
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

    transaction_house().run(scenario)


def test_a_transactional_id_needs_a_name_and_a_timeout_within_bounds() -> None:
    async def scenario(house: House, client: Client, environment: Environment) -> None:
        await Transacting(client).prepare()
        for name, timeout_ms, error in [
            ("", 1000, InvalidRequest),
            ("tx", 900_001, InvalidTransactionTimeout),
            ("tx", 0, InvalidTransactionTimeout),
        ]:
            answer = await client.ask(InitProducerIdRequest(name, timeout_ms), 4)
            assert answer.error_code == error.code

    transaction_house().run(scenario)


def test_who_may_write_nowhere_gets_no_id() -> None:
    async def scenario(house: House, client: Client, environment: Environment) -> None:
        assert house.node is not None
        broker = house.node.broker

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

    in_house(scenario)
