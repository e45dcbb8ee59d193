from __future__ import annotations

from typing import Any

from millbeck.coordinator.group.consumer import writing
from millbeck.coordinator.group.consumer.group import ResolvedRegex
from millbeck.coordinator.group.consumer.member import ConsumerMember

T = b"t" * 16


def test_tombstones_take_back_everything_that_was_written(world: Any) -> None:
    member = ConsumerMember(
        member_id="m", topic_names=("t",), epoch=2, assigned={T: (1,)}, assignment_epochs={(T, 1): 2}
    )
    records = [
        writing.member_record("g", member),
        writing.group_record("g", epoch=2, metadata_hash=3),
        writing.target_record("g", "m", {T: (1,)}),
        writing.target_epoch_record("g", 2),
        writing.current_record("g", member),
        writing.regex_record("g", "x", ResolvedRegex(("t",), 1, 1)),
    ]
    for record in records:
        world.shard.replay(record, offset=0, producer_id=-1)
    group = world.group()
    assert (group.epoch, group.metadata_hash, group.assignment_epoch, dict(group.targets)) == (
        2,
        3,
        2,
        {"m": {T: (1,)}},
    )
    assert group.members["m"] == member
    tombstones = writing.group_tombstones(group)
    assert {world.shard.encode(record)[0] for record in tombstones} == {
        world.shard.encode(record)[0] for record in records
    }
    for record in tombstones:
        world.shard.replay(record, offset=0, producer_id=-1)
    assert world.group() is None
