from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import pytest

from millbeck.coordinator.group.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    GroupRecord,
    encode,
    group_tombstone,
    offset_commit,
)
from millbeck.coordinator.runtime import loader as loader_module
from millbeck.coordinator.runtime.loader import RECORDS_PER_STEP, Loader
from millbeck.kernel.errors import CorruptMessage
from millbeck.records import batch, control
from millbeck.records.compression import Codec
from millbeck.records.native.compaction import NEEDLESS
from millbeck.records.record import UNASSIGNED, Record
from millbeck.wire.errors import DecodeError


def commit_of(partition: int, offset: int, group: str = "g") -> tuple[bytes, bytes | None]:
    return encode(
        offset_commit(
            group_id=group,
            topic="t",
            partition=partition,
            offset=offset,
            leader_epoch=1,
            metadata="",
            commit_timestamp=5,
        )
    )


def built(entries: Sequence[tuple[bytes | None, bytes | None]], base_offset: int, **details: Any) -> bytes:
    records = [Record(UNASSIGNED, 5, key, value) for key, value in entries]
    return batch.build(records, base_offset=base_offset, **details)


def load(world: Any, *batches: bytes) -> Loader:
    loader = Loader(world.shard, iter(batches))
    while not loader.advance():
        pass
    return loader


def marker(producer_id: int, *, committed: bool, base_offset: int) -> bytes:
    key, value = control.encode(control.EndTransaction(committed=committed, coordinator_epoch=0))
    return built(
        [(key, value)], base_offset, producer_id=producer_id, producer_epoch=0, is_transactional=True, is_control=True
    )


def offset_of(world: Any, partition: int) -> int | None:
    committed = world.shard._offsets.get("g", "t", partition)
    return None if committed is None else int(committed.offset)


def test_a_step_replays_a_bounded_number_of_records(world: Any) -> None:
    entries = [commit_of(index, index) for index in range(RECORDS_PER_STEP * 2 + 10)]
    loader = Loader(world.shard, iter([built(entries, 0)]))
    assert not loader.advance()
    assert loader.record_count == RECORDS_PER_STEP
    assert not loader.advance()
    assert not loader.advance()
    assert loader.advance()
    assert loader.record_count == len(entries)
    assert loader.next_offset == len(entries)
    assert offset_of(world, len(entries) - 1) == len(entries) - 1


def test_unknown_types_and_keyless_records_are_skipped(world: Any) -> None:
    loader = load(world, built([(b"\x00\x63later", b"x"), (None, b"y"), commit_of(0, 9)], 0))
    assert loader.skipped_count == 2
    assert offset_of(world, 0) == 9


def test_bytes_that_are_wrong_end_the_load(world: Any) -> None:
    with pytest.raises(DecodeError):
        load(world, built([(b"\x00\x02\x00\x09g", b"x")], 0))


def test_transactional_commits_count_from_their_marker_on(world: Any) -> None:
    load(
        world,
        built(
            [commit_of(0, 1), commit_of(1, 1)],
            0,
            producer_id=7,
            producer_epoch=0,
            base_sequence=0,
            is_transactional=True,
        ),
        built([commit_of(2, 1)], 2, producer_id=8, producer_epoch=0, base_sequence=0, is_transactional=True),
        built([commit_of(3, 1)], 3, producer_id=9, producer_epoch=0, base_sequence=0, is_transactional=True),
        marker(7, committed=True, base_offset=4),
        marker(8, committed=False, base_offset=5),
        marker(99, committed=True, base_offset=6),
    )
    assert [offset_of(world, partition) for partition in range(4)] == [1, 1, None, None]
    assert world.shard._offsets.is_pending("g", "t", 3)
    assert not world.shard._offsets.is_pending("g", "t", 2)


def test_an_idempotent_batch_outside_a_transaction_counts_at_once(world: Any) -> None:
    load(world, built([commit_of(0, 4)], 0, producer_id=7, producer_epoch=0, base_sequence=0))
    assert offset_of(world, 0) == 4


def test_later_records_win_and_tombstones_remove(worlds: ModuleType) -> None:
    world = worlds.World()
    group = encode(GroupRecord(GroupMetadataKey("g"), GroupMetadataValue("consumer", 4, None, None, 5, [])))
    load(world, built([group, commit_of(0, 1), commit_of(0, 2)], 0))
    assert (world.group().generation_id, offset_of(world, 0)) == (4, 2)
    load(world, built([(commit_of(0, 0)[0], None), encode(group_tombstone("g"))], 3))
    assert (world.group(), offset_of(world, 0)) == (None, None)


def test_readers_see_the_committed_part_of_what_was_loaded(worlds: ModuleType) -> None:
    log = worlds.Log()
    log.append([commit_of(0, 1), commit_of(1, 1)], 5)
    log.high_watermark, log.holds_commits = 2, True
    log.append([commit_of(0, 2)], 5)
    log.append([commit_of(1, 2), commit_of(2, 2)], 5)
    world = worlds.World(log=log)
    assert world.fetched(None) == {("t", 0): 1, ("t", 1): 1}
    stable = world.fetch(None, stable=True)
    assert not stable.is_done
    world.commit_log()
    assert world.fetched(None) == {("t", 0): 2, ("t", 1): 2, ("t", 2): 2}
    assert stable.is_done


# Records that later ones replace.


class Replayed:
    """A shard that notes which offsets it was given."""

    def __init__(self) -> None:
        self.offsets: list[int] = []

    def decode(self, key: bytes, value: bytes | None) -> object:
        return (key, value)

    def replay(self, record: object, *, offset: int, producer_id: int) -> None:
        self.offsets.append(offset)

    def replay_end_transaction(self, *, producer_id: int, is_committed: bool) -> None:
        self.offsets.append(-producer_id)


def replayed(*batches: bytes, committed_offset: int) -> tuple[list[int], Loader]:
    shard: Any = Replayed()
    loader = Loader(shard, iter(batches), committed_offset=committed_offset)
    while not loader.advance():
        pass
    return shard.offsets, loader


def plain(keys: str, base_offset: int, **details: Any) -> bytes:
    return built([(key.encode(), b"v") for key in keys], base_offset, **details)


def test_only_the_latest_record_of_a_key_is_replayed_below_what_is_committed() -> None:
    batches = (plain("abca", 0), plain("bb", 4), plain("cd", 6))
    assert replayed(*batches, committed_offset=8)[0] == [3, 5, 6, 7]
    assert replayed(*batches, committed_offset=7)[0] == [2, 3, 5, 6, 7]
    assert replayed(*batches, committed_offset=0)[0] == list(range(8))
    _, loader = replayed(*batches, committed_offset=8)
    assert (loader.record_count, loader.next_offset, loader.skipped_count) == (8, 8, 0)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_compressed_or_not(codec: Codec) -> None:
    assert replayed(plain("aab", 0, codec=codec), plain("b", 3, codec=codec), committed_offset=4)[0] == [1, 3]


def test_records_of_transactions_are_all_replayed_and_replace_nothing() -> None:
    details = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
    batches = (plain("a", 0), plain("aa", 1, **details), marker(7, committed=True, base_offset=3), plain("b", 4))
    assert replayed(*batches, committed_offset=9)[0] == [0, 1, 2, -7, 4]


def test_looking_ahead_comes_to_the_same_state(world: Any) -> None:
    entries = [commit_of(index % 7, index) for index in range(100)]
    batches = [built(entries[begin : begin + 10], begin) for begin in range(0, 100, 10)]
    loader = Loader(world.shard, iter(batches), committed_offset=100)
    while not loader.advance():
        pass
    assert {index: offset_of(world, index) for index in range(7)} == {
        index: max(number for number in range(100) if number % 7 == index) for index in range(7)
    }


def test_damage_ends_the_load_when_looking_ahead_too(world: Any) -> None:
    damaged = bytearray(plain("ab", 0))
    damaged[-1] ^= 1
    loader = Loader(world.shard, iter([bytes(damaged)]), committed_offset=2)
    with pytest.raises(CorruptMessage):
        loader.advance()


def test_the_marks_are_those_of_the_kernel() -> None:
    assert loader_module._NEEDLESS == NEEDLESS
