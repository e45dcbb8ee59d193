"""Nodes broken on purpose, as processes: `python -m nemesis.mutants NAME server --config FILE`.

A judgement that has only ever passed proves nothing. With `python -m nemesis partition --mutant NAME` every node of the
cluster has the defect, and the run passes when the judgement finds it, or when the cluster does not heal any more.

Some signals tell of nothing but defects. `DEFECTS` has one for each of them, for the scenario `signals` to give to a
node and take away again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from millbeck import compiled


def _replace(owner: object, name: str, by: object) -> None:
    assert hasattr(owner, name), f"there is no {name} to replace"
    setattr(owner, name, by)


def leader_acknowledges_alone() -> None:
    """What the leader has counts as committed, whoever else has it."""
    from millbeck.replication.isr import IsrState

    _replace(IsrState, "watermark", lambda self, own_offset, leader_end_offset: own_offset)


def followers_keep_their_own() -> None:
    """No follower hears that its log is not its leader's, so none is cut."""
    from millbeck.replication import log_read

    _replace(log_read, "divergence", lambda *_, **__: None)


def retries_are_appended() -> None:
    """A leader looks at no sequence number: a batch that comes again is appended again."""
    from millbeck.storage.producer_state import AppendOrigin, BatchTrace, ProducerStateManager

    original: Callable[..., BatchTrace | None] = ProducerStateManager.stage_data

    def stage_data(self: ProducerStateManager, *arguments: Any) -> BatchTrace | None:
        return original(self, *arguments[:-1], AppendOrigin.REPLICATION)

    _replace(ProducerStateManager, "stage_data", stage_data)


def aborts_are_kept_secret() -> None:
    """Who reads only what is committed is not told what of it was aborted."""
    from millbeck.storage.log import Log

    _replace(Log, "aborted_transactions", lambda self, start_offset, upper_offset: [])


def aborted_offsets_count() -> None:
    """A group goes on behind what a transaction has read, whether it was committed or not."""
    from millbeck.coordinator.group.offsets.store import OffsetStore

    original: Callable[..., None] = OffsetStore.end_transaction

    def end_transaction(self: OffsetStore, producer_id: int, *, is_committed: bool) -> None:
        original(self, producer_id, is_committed=True)

    _replace(OffsetStore, "end_transaction", end_transaction)


def fetchers_drop_answers() -> None:
    """A fetcher takes an answer and asks no more."""
    from millbeck.server.replicas.replica_fetchers import FetcherConnection

    def answered(self: FetcherConnection, outcome: object) -> None:
        self._is_asking = False

    _replace(FetcherConnection, "_answered", answered)


def cleaners_end() -> None:
    """Looking for the dirtiest log fails in a way that nobody thought of."""
    from millbeck.server.cleaner.service import Cleaner

    async def choose(self: Cleaner) -> None:
        raise RuntimeError("a defect that was put here")

    _replace(Cleaner, "_choose", choose)


def decisions_contradict() -> None:
    """What the controller decides for new topics cannot be applied to the metadata it was decided on."""
    from millbeck.metadata.fault import MetadataFault
    from millbeck.metadata.records import TopicRecord
    from millbeck.server.metadata import quorum_driver

    original: Callable[..., Any] = vars(quorum_driver)["advance"]

    def advance(image: object, records: Any, **where: Any) -> Any:
        if any(isinstance(record, TopicRecord) for record in records):
            raise MetadataFault("a defect that was put here")
        return original(image, records, **where)

    _replace(quorum_driver, "advance", advance)


def _named(*functions: Callable[[], None]) -> dict[str, Callable[[], None]]:
    return {function.__name__.replace("_", "-"): function for function in functions}


MUTANTS = _named(
    leader_acknowledges_alone,
    followers_keep_their_own,
    retries_are_appended,
    aborts_are_kept_secret,
    aborted_offsets_count,
)
"""What the judgement has to find."""
DEFECTS = _named(fetchers_drop_answers, cleaners_end, decisions_contradict)
"""What a signal has to tell of."""


def main() -> None:
    # A compiled class keeps its methods.
    compiled.use_sources()
    (MUTANTS | DEFECTS)[sys.argv.pop(1)]()
    from millbeck.cli.main import main as run_millbeck

    run_millbeck()


if __name__ == "__main__":
    main()
