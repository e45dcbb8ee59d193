from __future__ import annotations

import pytest

from millbeck.metadata.image import EMPTY
from millbeck.simulation.runs.quorum_run import QuorumRun


def test_a_quiet_run_decides_and_everybody_has_it() -> None:
    run = QuorumRun(3, faults=("heal",))
    run.run()
    assert len(run.answered) > 20
    assert len(run.gained_epochs) == 1
    assert run.published_count > 60
    assert sorted(run.answered.values()) == list(dict.fromkeys(sorted(run.answered.values())))


def test_images_of_one_offset_that_differ_are_noticed() -> None:
    run = QuorumRun(2)
    run._images[EMPTY.offset] = (b"something",)
    with pytest.raises(AssertionError, match="R6"):
        run._compare(1, EMPTY)
    run.world.close()
