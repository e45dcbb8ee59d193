"""Names on the platter: what a power loss may and may not leave."""

from __future__ import annotations

import random
from collections.abc import Callable

from millbeck.simulation.environment.directory import Directory, change_entries, lose_power
from millbeck.simulation.environment.inode import Inode


def _names(root: Directory, prefix: str = "") -> dict[str, Inode]:
    found: dict[str, Inode] = {}
    for name, entry in root.entries.items():
        if isinstance(entry, Directory):
            found.update(_names(entry, f"{prefix}{name}/"))
        else:
            found[prefix + name] = entry
    return found


def _outcomes(build: Callable[..., object], seeds: int = 200) -> set[tuple[str, ...]]:
    outcomes = set()
    for seed in range(seeds):
        root = Directory(0)
        build(root)
        lose_power(root, random.Random(seed), 0.5)
        outcomes.add(tuple(sorted(_names(root))))
    return outcomes


def test_an_unsynced_create_may_be_lost_and_a_synced_one_is_not() -> None:
    def build(root: Directory) -> None:
        change_entries([(root, "synced", Inode(0))])
        root.sync()
        change_entries([(root, "new", Inode(0))])

    assert _outcomes(build) == {("synced",), ("new", "synced")}


def test_an_unsynced_unlink_may_come_back() -> None:
    def build(root: Directory) -> None:
        change_entries([(root, "a", Inode(0))])
        root.sync()
        change_entries([(root, "a", None)])

    assert _outcomes(build) == {("a",), ()}


def test_a_rename_is_atomic_and_replaces_all_or_nothing() -> None:
    kept = set()
    for seed in range(100):
        root, old, new = Directory(0), Inode(0), Inode(0)
        change_entries([(root, "checkpoint", old)])
        change_entries([(root, "checkpoint.tmp", new)])
        root.sync()
        change_entries([(root, "checkpoint.tmp", None), (root, "checkpoint", new)])
        lose_power(root, random.Random(seed), 0.5)
        names = _names(root)
        kept.add((tuple(sorted(names)), names["checkpoint"] is new))
    assert kept == {(("checkpoint",), True), (("checkpoint", "checkpoint.tmp"), False)}


def test_a_lost_create_takes_its_rename_along() -> None:
    def build(root: Directory) -> None:
        new = Inode(0)
        change_entries([(root, "b", Inode(0))])
        root.sync()
        change_entries([(root, "a", new)])
        change_entries([(root, "a", None), (root, "b", new)])
        change_entries([(root, "b", None), (root, "c", new)])

    # Never both names of one file, never a rename without its create.
    assert _outcomes(build) == {("b",), ("a", "b"), ("c",)}


def test_without_order_between_them_any_subset_may_survive() -> None:
    def build(root: Directory) -> None:
        change_entries([(root, "a", Inode(0))])
        change_entries([(root, "b", Inode(0))])

    assert _outcomes(build) == {(), ("a",), ("b",), ("a", "b")}


def test_a_move_between_directories_is_atomic_and_either_sync_settles_it() -> None:
    def build(root: Directory) -> None:
        source, target, moved = Directory(0), Directory(0), Inode(0)
        change_entries([(root, "source", source)])
        change_entries([(root, "target", target)])
        root.sync()
        change_entries([(source, "a", moved)])
        source.sync()
        change_entries([(source, "a", None), (target, "a", moved)])

    def build_synced(root: Directory) -> None:
        build(root)
        root.entries["target"].sync()

    assert _outcomes(build) == {("source/a",), ("target/a",)}
    assert _outcomes(build_synced) == {("target/a",)}


def test_a_lost_directory_takes_everything_below_it() -> None:
    def build(root: Directory) -> None:
        below = Directory(0)
        change_entries([(root, "d", below)])
        change_entries([(below, "a", Inode(0))])
        below.sync()

    assert _outcomes(build) == {(), ("d/a",)}


def test_nothing_is_pending_after_a_loss() -> None:
    root, below = Directory(0), Directory(0)
    change_entries([(root, "d", below)])
    root.sync()
    change_entries([(below, "a", Inode(0))])
    lose_power(root, random.Random(1), 0.0)
    assert not root.pending
    assert not below.pending
    assert _names(root) == {}
