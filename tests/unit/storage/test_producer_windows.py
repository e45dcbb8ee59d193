"""After a restart a producer's last five batches are recognised, not only the one its snapshot keeps."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.kernel.errors import OutOfOrderSequenceNumber
from millbeck.storage import producer_windows


def fill(world: Any, batches: int = 12, *, producers: int = 1, size: int = 30) -> None:
    for sequence in range(batches):
        for producer_id in range(producers):
            world.append(world.batch(producer_id=producer_id, sequence=sequence, size=size))


@pytest.mark.parametrize("reopen", ["close_and_reopen", "kill_and_reopen"])
@pytest.mark.parametrize("producers", [1, 3])
def test_each_of_the_last_five_is_a_duplicate_after_a_restart(world: Any, reopen: str, producers: int) -> None:
    fill(world, producers=producers)
    before = world.log.producer_state.producers
    getattr(world, reopen)()
    assert world.log.producer_state.producers == before
    for producer_id in range(producers):
        for sequence in range(7, 12):
            staged = world.stage(world.batch(producer_id=producer_id, sequence=sequence))
            assert staged.is_duplicate
            assert staged.first_offset == sequence * producers + producer_id
        with pytest.raises(OutOfOrderSequenceNumber):
            world.stage(world.batch(producer_id=producer_id, sequence=6))


def test_the_window_reaches_over_segments(world: Any) -> None:
    fill(world, batches=6, size=600)
    assert len(world.log.segments) == 6
    world.close_and_reopen()
    assert len(world.log.producer_state.producers[0].batches) == 5


def test_batches_of_an_older_epoch_are_not_taken(world: Any) -> None:
    fill(world, batches=4)
    world.append(world.batch(producer_id=0, epoch=1, sequence=0))
    world.close_and_reopen()
    assert len(world.log.producer_state.producers[0].batches) == 1


def test_how_far_back_is_bounded(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_windows, "NEAR_BYTES", 150)
    monkeypatch.setattr(producer_windows, "FAR_BYTES", 150)
    fill(world, batches=5)
    for _ in range(30):
        world.append(world.batch())
    world.close_and_reopen()
    assert len(world.log.producer_state.producers[0].batches) == 1


def test_large_batches_are_looked_for_further_back(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_windows, "NEAR_BYTES", 150)
    fill(world, batches=5, size=600)
    world.close_and_reopen()
    assert len(world.log.producer_state.producers[0].batches) == 5
