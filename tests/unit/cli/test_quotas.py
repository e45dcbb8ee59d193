"""Quotas on the command line, and the admin calls behind them."""

from __future__ import annotations

import asyncio

import click
import pytest

from millbeck.cli.quotas import entity_of, entity_text, quota_name, quota_rows, read_quota
from millbeck.client import Admin
from millbeck.client.admin.quotas import QuotaEntity
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import InvalidRequest
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import run_scenario

ALICE: QuotaEntity = (("user", "alice"),)
ANY_CLIENT: QuotaEntity = (("client-id", None), ("user", "alice"))


@pytest.mark.parametrize(
    ("text", "quota"),
    [
        ("produce=5000", ("producer_byte_rate", 5000.0)),
        ("consume=10M", ("consumer_byte_rate", 10.0 * 2**20)),
        ("consumer_byte_rate=1k", ("consumer_byte_rate", 1024.0)),
        ("request=12.5", ("request_percentage", 12.5)),
        ("mutations=2", ("controller_mutation_rate", 2.0)),
        ("connections=1", ("connection_creation_rate", 1.0)),
    ],
)
def test_quotas_are_read(text: str, quota: tuple[str, float]) -> None:
    assert read_quota(text) == quota


@pytest.mark.parametrize("text", ["produce", "produce=", "produce=x", "produce=0", "produce=-1", "produce=inf", "y=1"])
def test_what_is_no_quota_is_refused(text: str) -> None:
    with pytest.raises(click.UsageError):
        read_quota(text)


def test_names() -> None:
    assert quota_name("produce") == quota_name("producer_byte_rate") == "producer_byte_rate"
    with pytest.raises(click.UsageError, match="use produce, consume"):
        quota_name("bytes")


def test_whose_they_are() -> None:
    assert entity_of({"user": "alice", "client_id": None, "ip": None}) == ALICE
    entity = entity_of({"user": "alice", "client_id": "default", "ip": None})
    assert entity == ANY_CLIENT
    assert entity_text(entity) == "user alice, client-id (default)"
    with pytest.raises(click.UsageError, match="give --user"):
        entity_of({"user": None, "client_id": None, "ip": None})
    with pytest.raises(click.UsageError, match="--ip cannot"):
        entity_of({"user": "alice", "client_id": None, "ip": "10.0.0.1"})


def test_they_are_set_shown_and_removed() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        async with Admin({"bootstrap.servers": "n1:9092"}, environment=environment) as admin:
            changes: dict[QuotaEntity, dict[str, float | None]] = {
                ALICE: {"producer_byte_rate": 1000.0},
                ANY_CLIENT: {"request_percentage": 12.5},
            }
            (await admin.alter_client_quotas(changes)).all()
            await asyncio.sleep(0.1)
            found = await admin.describe_client_quotas()
            assert found == changes
            assert [tuple(row.values()) for row in quota_rows(found)] == [
                ("alice", "(default)", "", "request_percentage", 12.5),
                ("alice", "", "", "producer_byte_rate", 1000),
            ]
            assert await admin.describe_client_quotas("client-id") == {ANY_CLIENT: {"request_percentage": 12.5}}
            (await admin.alter_client_quotas({ALICE: {"producer_byte_rate": None}})).all()
            await asyncio.sleep(0.1)
            assert list(await admin.describe_client_quotas()) == [ANY_CLIENT]
            refused = await admin.alter_client_quotas({ALICE: {"nonsense": 1.0}})
            assert isinstance(refused.failed[ALICE], InvalidRequest)

    run_scenario(scenario)
