"""Nodes broken on purpose, as processes: `python -m nemesis.mutants NAME server --config FILE`.

A judgement that has only ever passed proves nothing. With `python -m nemesis partition --mutant NAME` every node of the
cluster has the defect, and the run passes when the judgement finds it.
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
    from millbeck.replication.in_sync import InSync

    _replace(InSync, "watermark", lambda self, own_offset, leader_end_offset: own_offset)


def followers_keep_their_own() -> None:
    """No follower hears that its log is not its leader's, so none is cut."""
    from millbeck.server.handlers.fetch import fetching

    _replace(fetching, "divergence", lambda *_, **__: None)


def retries_are_appended() -> None:
    """A leader looks at no sequence number: a batch that comes again is appended again."""
    from millbeck.storage.producer_state import BatchTrace, Origin, ProducerState

    original: Callable[..., BatchTrace | None] = ProducerState.stage_data

    def stage_data(self: ProducerState, *arguments: Any) -> BatchTrace | None:
        return original(self, *arguments[:-1], Origin.REPLICATION)

    _replace(ProducerState, "stage_data", stage_data)


MUTANTS: dict[str, Callable[[], None]] = {
    function.__name__.replace("_", "-"): function
    for function in (leader_acknowledges_alone, followers_keep_their_own, retries_are_appended)
}


def main() -> None:
    # A compiled class keeps its methods.
    compiled.use_sources()
    MUTANTS[sys.argv.pop(1)]()
    from millbeck.cli.main import main as run_millbeck

    run_millbeck()


if __name__ == "__main__":
    main()
