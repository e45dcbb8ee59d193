from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from millbeck.coordinator.group.share.assignor import assign

A, B = b"a" * 16, b"b" * 16


def _counts(result: dict[str, dict[bytes, tuple[int, ...]]]) -> tuple[dict[str, int], dict[tuple[bytes, int], int]]:
    by_member = {member: sum(map(len, found.values())) for member, found in result.items()}
    by_place: dict[tuple[bytes, int], int] = {}
    for found in result.values():
        for topic, indexes in found.items():
            for index in indexes:
                by_place[topic, index] = by_place.get((topic, index), 0) + 1
    return by_member, by_place


@given(st.integers(1, 12), st.integers(1, 8), st.integers(0, 12))
def test_everybody_has_something_and_nothing_is_left(members: int, partitions: int, before: int) -> None:
    there = {A: tuple(range(partitions))}
    current = assign({f"m{each}": [A] for each in range(before)}, there, {})
    result = assign({f"m{each}": [A] for each in range(members)}, there, current)
    by_member, by_place = _counts(result)  # type: ignore[arg-type]
    assert set(by_place) == {(A, each) for each in range(partitions)}
    assert min(by_member.values()) >= 1
    assert max(by_member.values()) - min(by_member.values()) <= 1 or members > partitions


@given(st.integers(1, 8), st.integers(1, 8))
def test_nothing_moves_when_nothing_has_changed(members: int, partitions: int) -> None:
    subscriptions = {f"m{each}": [A] for each in range(members)}
    there = {A: tuple(range(partitions))}
    result = assign(subscriptions, there, {})
    assert assign(subscriptions, there, result) == result


def test_members_get_only_what_they_subscribe_to() -> None:
    there = {A: (0, 1), B: (0,)}
    result = assign({"x": [A], "y": [B], "z": [A, B], "idle": []}, there, {})
    assert set(result["x"]) == {A}
    assert result["y"] == {B: (0,)}
    assert result["idle"] == {}
    assert _counts(result)[1].keys() == {(A, 0), (A, 1), (B, 0)}  # type: ignore[arg-type]


def test_a_leaver_changes_nothing_for_those_who_have_enough() -> None:
    there = {A: tuple(range(4))}
    before = assign({"a": [A], "b": [A], "c": [A], "d": [A]}, there, {})
    after = assign({"a": [A], "b": [A], "c": [A]}, there, before)
    for member in ("a", "b", "c"):
        assert set(before[member][A]) <= set(after[member][A])
