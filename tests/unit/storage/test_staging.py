from __future__ import annotations

from typing import Any


def test_a_staged_batch_tells_the_producer_what_it_will_get(world: Any) -> None:
    staged = world.stage(world.batch(3))
    assert (staged.first_offset, staged.last_offset, staged.append_time_ms) == (0, 2, -1)
    assert not staged.is_duplicate
    assert staged.size_bytes == sum(len(part) for part in staged.buffers)


def test_a_batch_stamped_by_the_broker_tells_the_time(world: Any) -> None:
    assert world.stage(world.batch(2, append_timestamp=777)).append_time_ms == 777


def test_a_duplicate_has_nothing_to_write(world: Any) -> None:
    batch = world.batch(2, producer_id=1, timestamp=500)
    world.append(batch)
    world.append(world.batch(producer_id=1, sequence=2))
    staged = world.stage(batch)
    assert staged.is_duplicate
    assert (staged.first_offset, staged.last_offset, staged.append_time_ms) == (0, 1, 501)
    assert staged.buffers == ()
