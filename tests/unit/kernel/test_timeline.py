"""Timelines against plain copies of every state that was snapshotted."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from millbeck.kernel.timeline import SnapshotRegistry, TimelineDict, TimelineValue


@pytest.fixture
def registry() -> SnapshotRegistry:
    return SnapshotRegistry()


def test_without_a_snapshot_it_is_a_dict(registry: SnapshotRegistry) -> None:
    timeline: TimelineDict[str, int] = TimelineDict(registry)
    timeline["a"] = 1
    timeline.update({"b": 2, "c": 3})
    del timeline["b"]
    assert timeline.pop("c") == 3
    assert timeline.setdefault("d", 4) == 4
    assert (dict(timeline), len(timeline), list(timeline.items())) == ({"a": 1, "d": 4}, 2, [("a", 1), ("d", 4)])
    assert ("a" in timeline, "b" in timeline, timeline.get("b"), timeline.get("b", 7)) == (True, False, None, 7)
    with pytest.raises(KeyError):
        del timeline["b"]
    with pytest.raises(KeyError):
        timeline["b"]


def test_revert_puts_back_what_was_changed_added_and_deleted(registry: SnapshotRegistry) -> None:
    timeline: TimelineDict[str, int] = TimelineDict(registry)
    value = TimelineValue(registry, "old")
    timeline.update({"changed": 1, "deleted": 2, "kept": 3})
    registry.snapshot(10)
    timeline["changed"] = 100
    timeline["changed"] = 101
    timeline["added"] = 4
    del timeline["deleted"]
    value.value = "new"
    registry.snapshot(20)
    timeline["changed"] = 102
    timeline["deleted"] = 5
    value.value = "newer"
    registry.revert_to(10)
    assert dict(timeline) == {"changed": 1, "deleted": 2, "kept": 3}
    assert value.value == "old"
    assert registry.offsets == [10]


def test_after_a_revert_the_same_snapshot_can_be_reverted_to_again(registry: SnapshotRegistry) -> None:
    timeline: TimelineDict[str, int] = TimelineDict(registry)
    registry.snapshot(1)
    for number in range(3):
        timeline["a"] = number
        registry.revert_to(1)
        assert dict(timeline) == {}


def test_reading_the_past(registry: SnapshotRegistry) -> None:
    timeline: TimelineDict[str, int] = TimelineDict(registry)
    value = TimelineValue(registry, 0)
    registry.snapshot(0)
    for offset in (10, 20, 30):
        timeline["a"] = value.value = offset
        registry.snapshot(offset)
    timeline["a"] = value.value = 99
    assert [timeline.get_at("a", offset) for offset in (0, 9, 10, 19, 20, 30, 1000)] == [None, None, 10, 10, 20, 30, 30]
    assert [value.value_at(offset) for offset in (0, 9, 10, 20, 30)] == [0, 0, 10, 20, 30]
    assert timeline.get_at("a", 0, "nothing") == "nothing"
    assert timeline.copy_at(20) == {"a": 20}
    assert (timeline["a"], value.value) == (99, 99)


def test_forgetting_keeps_what_reading_at_the_offset_needs(registry: SnapshotRegistry) -> None:
    value = TimelineValue(registry, "zero")
    for offset in (10, 20, 30):
        value.value = str(offset)
        registry.snapshot(offset)
    value.value = "now"
    registry.delete_snapshots_below(25)
    assert registry.offsets == [20, 30]
    assert value.value_at(25) == "20"
    registry.delete_snapshots_below(30)
    assert registry.offsets == [30]
    with pytest.raises(LookupError):
        value.value_at(29)
    registry.delete_snapshots_below(5)
    assert registry.offsets == [30]


def test_a_second_snapshot_at_an_offset_is_the_first(registry: SnapshotRegistry) -> None:
    value = TimelineValue(registry, 1)
    registry.snapshot(5)
    value.value = 2
    registry.snapshot(5)
    registry.revert_to(5)
    assert (value.value, registry.offsets) == (1, [5])


def test_misuse_is_refused(registry: SnapshotRegistry) -> None:
    registry.snapshot(5)
    with pytest.raises(AssertionError, match="older"):
        registry.snapshot(4)
    for offset in (4, 6):
        with pytest.raises(AssertionError, match="no snapshot"):
            registry.revert_to(offset)


def test_a_dict_equals_only_itself_because_it_has_a_past(registry: SnapshotRegistry) -> None:
    one: TimelineDict[str, int] = TimelineDict(registry)
    other: TimelineDict[str, int] = TimelineDict(registry)
    assert one != other
    assert {one: 1, other: 2}[one] == 1


def test_repr_shows_the_present(registry: SnapshotRegistry) -> None:
    timeline: TimelineDict[str, int] = TimelineDict(registry)
    timeline["a"] = 1
    assert repr(timeline) == "TimelineDict({'a': 1})"
    assert repr(TimelineValue(registry, "x")) == "TimelineValue('x')"


class TimelineMachine(RuleBasedStateMachine):
    """Two dicts and a value under one registry; the model is a full copy per snapshot."""

    def __init__(self) -> None:
        super().__init__()
        self.registry = SnapshotRegistry()
        self.timelines: list[TimelineDict[int, int]] = [TimelineDict(self.registry), TimelineDict(self.registry)]
        self.value = TimelineValue(self.registry, 0)
        self.present: tuple[dict[int, int], dict[int, int], int] = ({}, {}, 0)
        self.copies: dict[int, tuple[dict[int, int], dict[int, int], int]] = {}
        self.offset = 0

    def copy(self) -> tuple[dict[int, int], dict[int, int], int]:
        first, second, value = self.present
        return dict(first), dict(second), value

    @rule(which=st.integers(0, 1), key=st.integers(0, 5), value=st.integers(0, 99))
    def put(self, which: int, key: int, value: int) -> None:
        self.timelines[which][key] = value
        (self.present[0], self.present[1])[which][key] = value

    @rule(which=st.integers(0, 1), key=st.integers(0, 5))
    def pop(self, which: int, key: int) -> None:
        assert self.timelines[which].pop(key, None) == (self.present[0], self.present[1])[which].pop(key, None)

    @rule(value=st.integers(0, 99))
    def set_value(self, value: int) -> None:
        self.value.value = value
        self.present = (self.present[0], self.present[1], value)

    @rule(step=st.integers(1, 3))
    def snapshot(self, step: int) -> None:
        self.offset += step
        self.registry.snapshot(self.offset)
        self.copies[self.offset] = self.copy()

    @precondition(lambda self: self.copies)
    @rule(pick=st.integers(0))
    def revert(self, pick: int) -> None:
        offset = list(self.copies)[pick % len(self.copies)]
        self.registry.revert_to(offset)
        self.present = self.copies[offset]
        self.present = self.copy()
        self.copies = {key: copy for key, copy in self.copies.items() if key <= offset}
        self.offset = offset

    @precondition(lambda self: self.copies)
    @rule(pick=st.integers(0))
    def forget(self, pick: int) -> None:
        offset = list(self.copies)[pick % len(self.copies)]
        self.registry.delete_snapshots_below(offset)
        self.copies = {key: copy for key, copy in self.copies.items() if key >= offset}

    @invariant()
    def every_remembered_state_equals_its_copy(self) -> None:
        assert (dict(self.timelines[0]), dict(self.timelines[1]), self.value.value) == self.present
        assert self.registry.offsets == list(self.copies)
        for offset, copy in self.copies.items():
            assert (self.timelines[0].copy_at(offset), self.timelines[1].copy_at(offset)) == copy[:2]
            assert self.value.value_at(offset) == copy[2]
            assert [self.timelines[0].get_at(key, offset) for key in range(6)] == [copy[0].get(k) for k in range(6)]


TimelineMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=40)
TestTimelineMachine = TimelineMachine.TestCase
