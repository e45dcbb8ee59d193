"""Leftovers of interrupted work."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.records import batch as batches
from millbeck.storage.interrupted import complete_or_undo, offset_of


@pytest.mark.parametrize(
    ("name", "offset"),
    [
        ("00000000000000000042.log", 42),
        ("00000000000000000042.log.swap", 42),
        ("42.log", -1),
        ("leader-epoch-checkpoint", -1),
        ("0000000000000000004x.log", -1),
        ("00000000000000000042", -1),
    ],
)
def test_the_offset_in_a_name(name: str, offset: int) -> None:
    assert offset_of(name) == offset


def settled(world: Any) -> list[str]:
    left: list[str] = complete_or_undo(world.files, world.path, world.files.names(world.path))
    assert left == world.files.names(world.path)
    return [name for name in left if name != "partition.metadata"]


def prepared(world: Any, *names: str) -> list[str]:
    assert world.log.end_offset == 0
    for name in names:
        world.write_file(name, b"")
    return settled(world)


def test_deleted_and_temporary_files_go(world: Any) -> None:
    left = prepared(
        world,
        "00000000000000000000.index.deleted",
        "leader-epoch-checkpoint.tmp",
        "00000000000000000009-0000000001.checkpoint.deleted",
    )
    assert left == ["00000000000000000000.log", "00000000000000000009-0000000001.checkpoint.deleted"]


def test_an_index_without_its_log_goes(world: Any) -> None:
    left = prepared(world, "00000000000000000007.index", "00000000000000000007.txnindex", "00000000000000000000.index")
    assert left == ["00000000000000000000.index", "00000000000000000000.log"]


def test_cleaned_files_and_swaps_at_or_after_them_go(world: Any) -> None:
    left = prepared(
        world,
        "00000000000000000005.log",
        "00000000000000000005.log.swap",
        "00000000000000000005.index.cleaned",
        "00000000000000000008.log",
        "00000000000000000008.index.swap",
    )
    assert left == ["00000000000000000000.log", "00000000000000000005.log", "00000000000000000008.log"]


def test_a_swap_whose_old_segment_is_gone_is_finished_whatever_was_begun_later(world: Any) -> None:
    left = prepared(
        world,
        "00000000000000000005.log.swap",
        "00000000000000000005.index.swap",
        "00000000000000000000.txnindex.cleaned",
    )
    assert left == ["00000000000000000000.log", "00000000000000000005.index", "00000000000000000005.log"]


def test_a_finished_swap_replaces_what_it_covers(world: Any) -> None:
    world.append_many(2)
    for base in (2, 4):
        world.write_file(f"{base:020d}.log", b"replaced")
        world.write_file(f"{base:020d}.index", b"")
    world.write_file("00000000000000000006.log", b"kept")
    swapped = batches.build([], base_offset=2, last_offset=5)
    world.write_file("00000000000000000002.log.swap", swapped)
    world.write_file("00000000000000000002.timeindex.swap", b"")
    assert settled(world) == [
        "00000000000000000000.log",
        "00000000000000000002.log",
        "00000000000000000002.timeindex",
        "00000000000000000006.log",
    ]
    assert world.read_file("00000000000000000002.log") == swapped


def test_a_swap_whose_log_was_renamed_already_is_finished(world: Any) -> None:
    assert prepared(world, "00000000000000000000.index.swap") == [
        "00000000000000000000.index",
        "00000000000000000000.log",
    ]
