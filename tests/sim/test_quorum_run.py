"""Real quorum drivers on simulated machines: three voters and an observer under crashes, power cuts and partitions."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from millbeck.server.metadata import metadata_files
from millbeck.server.metadata.commits import MetadataCommits
from millbeck.server.metadata.log_writer import MetadataLogWriter
from millbeck.simulation.runs.quorum_run import QuorumRun
from millbeck.storage.flush import FlushOutcome, FlushResult

MUTANT_SEEDS = 40
REGRESSIONS = [0, 2]
"""A snapshot was installed, and what stood before it was never flushed."""


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def test_what_was_decided_is_the_same_everywhere(quorum_seed: int) -> None:
    run = QuorumRun(quorum_seed)
    run.run()
    assert run.answered, run.faults


@pytest.mark.parametrize("kept", REGRESSIONS)
def test_what_failed_once_stays_fixed(kept: int) -> None:
    run = QuorumRun(kept)
    run.run()
    assert run.published_count > 0


def _answers_at_once(self: MetadataCommits, end_offset: int) -> Any:
    async def wait() -> None:
        """The reply leaves before the records are committed."""

    return wait()


def _keeps_its_image(self: MetadataCommits, error: Exception) -> None:
    """Leadership is lost, and what was not committed stays in the image."""
    self.is_deciding = False
    self._uncommitted.clear()
    self.image = self.appended_image


async def _claims_to_have_flushed(self: MetadataLogWriter) -> None:
    job = self.log.flush_job()
    if job is not None:
        for file, _ in job.small_files:
            file.close()
        self.log.finish_flush(job, FlushResult(outcome=FlushOutcome.DONE))


def _writes_no_state(*_: Any) -> None:
    """The vote is not on disk."""


MUTANTS: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "reply before the commit": (MetadataCommits, "wait", _answers_at_once),
    "uncommitted decisions stay in the image": (MetadataCommits, "on_leadership_lost", _keeps_its_image),
    "the log is not synced": (MetadataLogWriter, "_flush_once", _claims_to_have_flushed),
    "the state is not written": (metadata_files, "write_quorum_state", _writes_no_state),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_each_mutant_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, attribute, mutant = MUTANTS[name]
    monkeypatch.setattr(owner, attribute, mutant)
    monkeypatch.setattr("millbeck.simulation.runs.quorum_run.LIMIT_SECONDS", 120.0)
    faults = ("crash", "power loss", "power loss of all", "partition", "heal")
    for seed in range(MUTANT_SEEDS):
        run = QuorumRun(seed, faults=faults)
        try:
            run.run()
        except Exception:
            return
    pytest.fail(f"{name}: alive after {MUTANT_SEEDS} seeds")
