from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from millbeck.metadata.delta.map_changes import MapDelta

KEYS = st.integers(0, 5)


@given(st.dictionaries(KEYS, st.integers()), st.lists(st.tuples(KEYS, st.none() | st.integers())))
def test_changes_are_those_of_a_dict_that_is_written_to(
    base: dict[int, int], steps: list[tuple[int, int | None]]
) -> None:
    changes = MapDelta(base)
    before, model = dict(base), dict(base)
    for key, value in steps:
        if value is None:
            model.pop(key, None)
            changes.remove(key)
        else:
            model[key] = value
            changes.put(key, value)
        assert changes.get(key) == model.get(key)
    assert changes.apply() == model
    assert base == before


def test_without_changes_the_base_is_kept() -> None:
    base = {1: 2}
    assert MapDelta(base).apply() is base
