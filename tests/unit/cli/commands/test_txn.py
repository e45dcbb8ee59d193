"""What the command makes of the brokers' answers; the command itself runs against a node in the end-to-end tests."""

from __future__ import annotations

from collections.abc import Callable

import click
import pytest

from millbeck.cli.commands.txn import description_row, listing_rows, owner_of, producer_row
from millbeck.client.admin.results import ProducerDescription
from millbeck.client.admin.transactions import TransactionDescription, TransactionListing
from millbeck.kernel.ids import TopicPartition

PLACE = TopicPartition("t", 1)


def producer(offset: int) -> ProducerDescription:
    return ProducerDescription(
        producer_id=7,
        producer_epoch=3,
        last_sequence=9,
        last_timestamp=100,
        coordinator_epoch=2,
        transaction_start_offset=offset,
    )


def test_rows_of_a_listing() -> None:
    found = [TransactionListing(transactional_id="x", coordinator_id=1, producer_id=7, state="Ongoing")]
    assert listing_rows(found) == [{"transactional_id": "x", "coordinator": 1, "producer_id": 7, "state": "Ongoing"}]


@pytest.mark.parametrize(("state", "duration"), [("Ongoing", 400), ("CompleteCommit", None)])
def test_only_what_is_open_has_a_duration(state: str, duration: int | None) -> None:
    described = TransactionDescription(
        transactional_id="x",
        coordinator_id=1,
        producer_id=7,
        producer_epoch=3,
        state=state,
        timeout_ms=60_000,
        start_ms=100,
        partitions=(PLACE,),
    )
    row = description_row(described, 500)
    assert (row["duration_ms"], row["partitions"]) == (duration, ["t-1"])


def test_the_owner_of_a_transaction_is_found_by_where_it_begins() -> None:
    assert owner_of((producer(-1), producer(42)), PLACE, 42) == (7, 3, 2)
    with pytest.raises(click.ClickException, match="starts at offset 41"):
        owner_of((producer(42),), PLACE, 41)
    assert producer_row(producer(-1))["transaction_start_offset"] is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("txn", "describe"), "no transactional id given"),
        (("txn", "terminate"), "no transactional id given"),
        (("txn", "terminate", "a", "--transactional-id", "b"), "exactly one transactional id is needed"),
        (("txn", "terminate", "a", "-b", "127.0.0.1:1"), "no broker reached"),
        (("txn", "abort", "--topic", "t", "--partition", "0"), "--start-offset"),
        (("txn", "find-hanging"), "--topic"),
    ],
)
def test_what_is_missing_is_asked_for(fails: Callable[..., str], arguments: tuple[str, ...], said: str) -> None:
    assert said in fails(*arguments)
