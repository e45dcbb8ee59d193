from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millbeck.controller.reassignment import Reassignment
from millbeck.metadata.image import PartitionRegistration

REPLICAS = st.lists(st.integers(1, 6), min_size=1, max_size=4, unique=True)


def test_a_move_adds_before_it_removes() -> None:
    move = Reassignment.between((1, 2, 3), (4, 2))
    assert (move.replicas, move.removing, move.adding) == ((4, 2, 1, 3), (1, 3), (4,))
    assert (move.target, move.origin) == ((4, 2), (2, 1, 3))


@pytest.mark.parametrize(
    ("isr", "completed"),
    [
        ((1, 2, 3), None),
        ((4, 1, 3), None),
        ((1, 2, 3, 4), ((4, 2), (2, 4))),
        ((4, 2), ((4, 2), (4, 2))),
        ((), None),
    ],
)
def test_it_is_complete_when_all_it_goes_to_are_in_sync(
    isr: tuple[int, ...], completed: tuple[tuple[int, ...], tuple[int, ...]] | None
) -> None:
    assert Reassignment.between((1, 2, 3), (4, 2)).completed(isr) == completed


def test_what_does_not_move_is_never_complete() -> None:
    assert Reassignment(replicas=(1, 2)).completed((1, 2)) is None
    assert Reassignment.between((1, 2), (2, 1)).completed((1, 2)) is None


@settings(max_examples=60, deadline=None)
@given(REPLICAS, REPLICAS)
def test_a_move_knows_both_its_ends(current: list[int], target: list[int]) -> None:
    move = Reassignment.between(current, target)
    assert move.target == tuple(target)
    assert set(move.origin) == set(current)
    assert len(set(move.replicas)) == len(move.replicas)
    partition = PartitionRegistration(
        replicas=move.replicas,
        directories=(bytes(16),) * len(move.replicas),
        isr=tuple(current),
        leader=current[0],
        leader_epoch=0,
        partition_epoch=0,
        removing_replicas=move.removing,
        adding_replicas=move.adding,
    )
    assert Reassignment.of(partition) == move
