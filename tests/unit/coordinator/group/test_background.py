from __future__ import annotations

from typing import Any

from millbeck.kernel.errors import NotEnoughReplicas


def test_a_job_s_result_is_an_operation_of_the_shard(world: Any) -> None:
    world.enter_consumer("m", regex="t")
    assert world.described().group_epoch == 1
    assert world.run_jobs() == 1
    assert world.described().group_epoch == 2


def test_a_result_that_cannot_be_written_is_asked_for_again(world: Any, worlds: Any) -> None:
    world.enter_consumer("m", regex="t")
    world.log.refusal = NotEnoughReplicas()
    assert world.run_jobs() == 1
    world.log.refusal = None
    assert world.described().group_epoch == 1
    world.beat("m", 1)
    assert world.run_jobs() == 1
    assert world.described().group_epoch == 2
