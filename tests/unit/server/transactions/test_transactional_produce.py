"""What a producer is error_for_version when its transaction's coordinator says no, or cannot be asked."""

from __future__ import annotations

import pytest

from millbeck.client.errors import Disconnected
from millbeck.kernel import errors
from millbeck.kernel.errors import ApiError
from millbeck.server.transactions.transactional_produce import error_for_version


@pytest.mark.parametrize(
    ("error", "version", "expected"),
    [
        (errors.ConcurrentTransactions(), 12, errors.ConcurrentTransactions),
        (errors.ConcurrentTransactions(), 11, errors.NotEnoughReplicas),
        (errors.CoordinatorLoadInProgress(), 12, errors.NotEnoughReplicas),
        (errors.NotCoordinator(), 9, errors.NotEnoughReplicas),
        (Disconnected("gone"), 12, errors.NotEnoughReplicas),
        (errors.TransactionAbortable(), 11, errors.TransactionAbortable),
        (errors.TransactionAbortable(), 10, errors.InvalidTxnState),
        (errors.InvalidProducerEpoch(), 9, errors.InvalidProducerEpoch),
        (errors.InvalidProducerIdMapping(), 12, errors.InvalidProducerIdMapping),
    ],
)
def test_errors_are_told_as_the_version_knows_them(error: ApiError, version: int, expected: type[ApiError]) -> None:
    assert type(error_for_version(error, version)) is expected
