"""The states of a transactional id and their valid transitions."""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class TransactionState(IntEnum):
    """The state of a transactional id, numbered as in the log; `shown` is the name that tools show."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def shown(self) -> str:
        return "".join(part.capitalize() for part in self.name.split("_"))

    @property
    def is_prepared(self) -> bool:
        """Whether the outcome is decided but not all markers are written."""
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)

    @property
    def is_idle(self) -> bool:
        """Whether no transaction is in progress."""
        return self in (TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)


BY_NAME: Final = {status.shown: status for status in TransactionState}

FOLLOWS: Final[dict[TransactionState, tuple[TransactionState, ...]]] = {
    TransactionState.EMPTY: (TransactionState.EMPTY, TransactionState.ONGOING, TransactionState.PREPARE_ABORT),
    TransactionState.ONGOING: (
        TransactionState.ONGOING,
        TransactionState.PREPARE_COMMIT,
        TransactionState.PREPARE_ABORT,
    ),
    TransactionState.PREPARE_COMMIT: (TransactionState.COMPLETE_COMMIT,),
    TransactionState.PREPARE_ABORT: (TransactionState.COMPLETE_ABORT,),
    TransactionState.COMPLETE_COMMIT: (
        TransactionState.EMPTY,
        TransactionState.ONGOING,
        TransactionState.PREPARE_ABORT,
    ),
    TransactionState.COMPLETE_ABORT: (TransactionState.EMPTY, TransactionState.ONGOING, TransactionState.PREPARE_ABORT),
}
"""The valid transitions. A decided outcome is never reversed: a prepared state has a single successor. A transaction
may be aborted before anything was written (transaction version 2)."""


def is_valid_transition(before: TransactionState, after: TransactionState) -> bool:
    return after in FOLLOWS.get(before, ())
