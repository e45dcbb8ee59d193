from __future__ import annotations

from typing import Any

from millbeck.coordinator.runtime.shard import NO_PRODUCER_ID, Shard


def test_a_group_shard_is_a_shard(world: Any) -> None:
    shard: Shard[Any] = world.shard
    names = [name for name in vars(Shard) if not name.startswith("_")]
    assert names == ["encode", "decode", "replay", "replay_end_transaction", "on_loaded", "on_unloaded"]
    assert all(callable(getattr(shard, name)) for name in names)
    assert NO_PRODUCER_ID == -1
