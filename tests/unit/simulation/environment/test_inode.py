"""One file's page cache, platter and what lies between."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millbeck.simulation.environment import inode as inode_module
from millbeck.simulation.environment.inode import Inode


def _after_power_loss(inode: Inode, seed: int = 1, survival: float = 0.5) -> bytes:
    inode.lose_power(random.Random(seed), survival)
    return bytes(inode.content)


def test_what_was_synced_survives_and_what_was_not_is_gone() -> None:
    inode = Inode(0)
    inode.write(b"synced", 0)
    inode.sync()
    inode.write(b"LOST", 2)
    inode.resize(3)
    assert inode.content == b"syL"
    assert _after_power_loss(inode, survival=0.0)[:6] == b"synced"


def test_everything_survives_when_all_of_it_reached_the_platter() -> None:
    inode = Inode(0)
    inode.write(b"0123456789", 0)
    inode.resize(4)
    inode.sync()
    assert _after_power_loss(inode) == b"0123"


def test_a_failed_sync_keeps_pages_readable_and_never_writes_them() -> None:
    inode = Inode(0)
    inode.write(b"dropped", 0)
    inode.fail_sync()
    inode.sync()
    assert inode.content == b"dropped"
    assert _after_power_loss(inode, survival=1.0) == b""


def test_a_lost_truncation_leaves_the_old_tail() -> None:
    inode = Inode(0)
    inode.write(b"0123456789", 0)
    inode.sync()
    inode.resize(2)
    assert _after_power_loss(inode, survival=0.0) == b"0123456789"


def test_over_many_losses_writes_are_kept_torn_lost_and_zeroed() -> None:
    outcomes = set()
    for seed in range(200):
        inode = Inode(0)
        inode.write(b"aaaa", 0)
        inode.write(b"bbbb", 4)
        outcomes.add(_after_power_loss(inode, seed))
    assert b"aaaabbbb" in outcomes
    assert b"" in outcomes
    assert b"aaaa" in outcomes
    assert b"\0\0\0\0bbbb" in outcomes
    assert b"aaaab" in outcomes
    assert b"aaaa\0\0\0\0" in outcomes


@settings(max_examples=100, deadline=None)
@given(
    before=st.lists(st.tuples(st.binary(min_size=1, max_size=20), st.integers(0, 40)), max_size=8),
    after=st.lists(st.tuples(st.binary(min_size=1, max_size=20), st.integers(0, 40)), max_size=8),
    seed=st.integers(0, 1000),
    survival=st.sampled_from([0.0, 0.3, 1.0]),
)
def test_a_byte_after_a_loss_is_synced_or_was_written_later_or_is_zero(
    before: list[tuple[bytes, int]], after: list[tuple[bytes, int]], seed: int, survival: float
) -> None:
    inode = Inode(0)
    for data, position in before:
        inode.write(data, position)
    inode.sync()
    synced = bytes(inode.content)
    allowed: dict[int, set[int]] = {}
    for data, position in after:
        inode.write(data, position)
        for index, byte in enumerate(data):
            allowed.setdefault(position + index, set()).add(byte)
    seen = bytes(inode.content)
    survived = _after_power_loss(inode, seed, survival)
    assert len(synced) <= len(survived) <= len(seen)
    for index, byte in enumerate(survived):
        original = synced[index] if index < len(synced) else 0
        assert byte == original or byte in allowed.get(index, set())


def test_old_changes_reach_the_platter_by_themselves_so_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inode_module, "_PENDING_COUNT_MAX", 8)
    inode = Inode(0)
    for number in range(100):
        inode.write(b"%02d" % number, number * 2)
    assert len(inode.pending) <= 8
    survived = _after_power_loss(inode, survival=0.0)
    assert survived[:180] == b"".join(b"%02d" % number for number in range(90))


def test_rot_is_there_before_and_after_a_loss() -> None:
    inode = Inode(0)
    inode.write(b"\0\0", 0)
    inode.sync()
    inode.write(b"\0\0", 2)
    inode.rot(8 * 1 + 3)
    inode.rot(8 * 3 + 0)
    assert inode.content == b"\0\x08\0\x01"
    inode.sync()
    assert _after_power_loss(inode) == b"\0\x08\0\x01"
