"""Batches and their prefixes as places in a tree."""

from __future__ import annotations

from millbeck.simulation.observer.lineage import ROOT, UNKNOWN_PREFIX, BatchTree, ReplicaBatch


def entry(lineage: BatchTree, before: int, base_offset: int, epoch: int, checksum: int) -> ReplicaBatch:
    place = lineage.place(before, base_offset, base_offset + 1, epoch, checksum)
    return ReplicaBatch(base_offset, base_offset + 1, epoch, checksum, place)


def test_the_same_batch_after_the_same_prefix_has_the_same_place() -> None:
    lineage = BatchTree("t-0")
    one, two = entry(lineage, ROOT, 0, 0, 11), entry(lineage, ROOT, 0, 0, 11)
    assert one == two
    assert lineage.contradiction(one) is None
    assert lineage.contradiction(two) is None


def test_other_bytes_in_the_same_epoch_are_a_contradiction_and_so_is_another_prefix() -> None:
    lineage = BatchTree("t-0")
    one, two = entry(lineage, ROOT, 0, 0, 11), entry(lineage, ROOT, 0, 0, 12)
    assert lineage.contradiction(one) is None
    assert lineage.contradiction(two) == one
    after_one, after_two = entry(lineage, one.place, 1, 3, 9), entry(lineage, two.place, 1, 3, 9)
    assert lineage.contradiction(after_one) is None
    assert lineage.contradiction(after_two) == after_one


def test_an_unknown_prefix_takes_the_place_of_its_equal_or_none() -> None:
    lineage = BatchTree("t-0")
    one = entry(lineage, ROOT, 0, 0, 11)
    lineage.contradiction(one)
    assert entry(lineage, UNKNOWN_PREFIX, 0, 0, 11).place == one.place
    unknown = entry(lineage, UNKNOWN_PREFIX, 0, 0, 99)
    assert unknown.place == UNKNOWN_PREFIX
    assert lineage.contradiction(unknown) is None


def test_what_is_committed_once_is_compared_with_whatever_is_committed_there_later() -> None:
    lineage = BatchTree("t-0")
    one, other = entry(lineage, ROOT, 0, 0, 11), entry(lineage, ROOT, 0, 1, 12)
    assert lineage.commit(one) is None
    assert lineage.committed_end == 1
    assert lineage.commit(one) is None
    assert lineage.commit(other) == one.place
    assert lineage.committed_at(1) == one.place
    assert lineage.committed_at(2) == UNKNOWN_PREFIX
