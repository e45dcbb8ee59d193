"""Damage to durable data is found before a reader meets it."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.kernel.errors import KafkaStorageError
from millbeck.storage import scrub
from millbeck.storage.scrub import Scrubber
from tests.log_steps import apply_retention, truncate_to


def run(world: Any) -> int:
    """A whole pass; returns how many jobs it took."""
    scrubber, count = Scrubber(world.log), 0
    while (job := scrubber.next_job()) is not None:
        job.run()
        scrubber.finish(job)
        count += 1
    assert scrubber.is_done
    return count


def test_a_healthy_log_passes(world: Any) -> None:
    world.append_many(30)
    world.log.flush()
    assert run(world) == len(world.log.segments)
    assert not world.log.is_offline
    assert all(segment.handle.leases == 0 for segment in world.log.segments)


def test_damage_takes_the_log_offline_with_file_and_position(world: Any) -> None:
    world.append_many(30)
    world.log.flush()
    size = len(world.batch())
    damaged = f"{world.log.base_offsets[1]:020d}.log"
    world.overwrite(damaged, 2 * size + 70, b"\xff")
    run(world)
    with pytest.raises(KafkaStorageError, match=rf"{damaged} is corrupt at position {2 * size}"):
        world.read(0)
    assert world.log.damaged_offset == world.log.base_offsets[1], "so that it can be mended"
    assert world.failures == []
    assert world.names(".log") == [f"{base:020d}.log" for base in world.log.base_offsets]


def test_what_is_not_durable_is_left_to_recovery(world: Any) -> None:
    world.append_many(3)
    world.log.flush()
    world.append_many(2)
    world.overwrite("00000000000000000000.log", 4 * len(world.batch()) + 70, b"\xff")
    run(world)
    assert not world.log.is_offline


def test_the_work_comes_in_steps(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scrub, "STEP_BYTES", 1)
    world.configure(internal_segment_bytes="100000")
    world.append_many(5)
    world.log.flush()
    assert run(world) == 5


def test_what_was_deleted_meanwhile_is_no_damage(world: Any) -> None:
    world.append_many(30)
    world.log.flush()
    world.overwrite("00000000000000000000.log", 70, b"\xff")
    scrubber = Scrubber(world.log)
    job = scrubber.next_job()
    assert job is not None
    world.configure(retention_bytes="0")
    apply_retention(world.log, world.clock_ms)
    job.run()
    scrubber.finish(job)
    assert job.finding is not None
    assert not world.log.is_offline


@pytest.mark.parametrize("runs_before", [True, False], ids=["the job read before", "the job reads after"])
def test_other_batches_after_a_truncation_are_no_damage(world: Any, runs_before: bool) -> None:
    """The position that a pass has reached, or reads at, lies within another batch then."""
    world.configure(internal_segment_bytes="100000")
    world.append_many(5)
    world.log.flush()
    scrubber = Scrubber(world.log)
    job = scrubber.next_job()
    assert job is not None
    if runs_before:
        job.run()
    truncate_to(world.log, 2)
    for _ in range(5):
        world.append(world.batch(size=200))
    world.log.flush()
    if not runs_before:
        job._position = 3 * len(world.batch())
        job.run()
        assert job.finding is not None
    scrubber.finish(job)
    assert not world.log.is_offline
    while (job := scrubber.next_job()) is not None:
        job.run()
        assert job.next_position == job.segment.size, "the segment is verified from its beginning"
        scrubber.finish(job)
    assert not world.log.is_offline


def test_a_lease_is_given_back_to_the_file_it_was_taken_from(world: Any) -> None:
    """A truncation makes an earlier segment the active one, with another handle."""
    world.append_many(60)
    world.log.flush()
    world.close_and_reopen()
    scrubber = Scrubber(world.log)
    job = scrubber.next_job()
    assert job is not None
    handle = job.segment.handle
    truncate_to(world.log, 1)
    assert world.log.segments[0].handle is not handle
    scrubber.finish(job)
    assert handle.leases == 0
