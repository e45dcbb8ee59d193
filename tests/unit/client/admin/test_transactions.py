"""Transactions as an administrator sees them, on a whole node in the simulator."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from millbeck.cli.commands.txn import hanging_rows
from millbeck.client.admin import Admin
from millbeck.client.admin.transactions import abort_transaction, describe_transactions, list_transactions
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import InvalidTxnState, TransactionalIdNotFound

_SPEC = spec_from_file_location("transactional_world", Path(__file__).parents[1] / "producer" / "test_transactions.py")
assert _SPEC is not None
assert _SPEC.loader is not None
WORLD: Any = module_from_spec(_SPEC)
_SPEC.loader.exec_module(WORLD)


def test_transactions_are_listed_described_and_aborted_by_hand() -> None:
    async def scenario(environment: Environment) -> None:
        async with WORLD.producer(environment) as one, Admin(WORLD.HERE, environment=environment) as admin:
            await one.init_transactions()
            one.begin_transaction()
            await one.send("t", b"x", partition=0)
            (listed,) = await list_transactions(admin.cluster)
            assert (listed.transactional_id, listed.state) == ("tx", "Ongoing")
            assert await list_transactions(admin.cluster, states=["Empty"]) == []
            assert await list_transactions(admin.cluster, pattern="no.*") == []
            found = await describe_transactions(admin.cluster, ["tx", "nobody"])
            assert found["tx"].partitions == (WORLD.PLACE,)
            assert isinstance(found.failed["nobody"], TransactionalIdNotFound)
            # It is old, and its coordinator knows it: it does not hang.
            assert await hanging_rows(admin, None, 0, "t", None) == []
            await abort_transaction(
                admin.cluster,
                WORLD.PLACE,
                producer_id=listed.producer_id,
                producer_epoch=found["tx"].producer_epoch,
                coordinator_epoch=found["tx"].coordinator_id,
            )
            assert await WORLD.read(environment) == []
            with pytest.raises(InvalidTxnState):
                one.begin_transaction()
            await one.abort_transaction()

    WORLD.in_world(scenario)
