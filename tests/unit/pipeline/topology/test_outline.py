"""What a topology costs, as it is told."""

from __future__ import annotations

from millbeck.pipeline.topology.outline import TopologyDescription


def test_stores_without_a_name_are_numbered_by_kind() -> None:
    outline = TopologyDescription()
    names = [outline.store(None, "count", "x"), outline.store("mine", "count", "x"), outline.store(None, "count", "x")]
    assert names == ["count-1", "mine", "count-2"]


def test_everything_is_told_in_one_place() -> None:
    outline = TopologyDescription(sources=["orders"], outputs=["totals"])
    outline.shuffled("count, by key")
    outline.store("totals", "count", "the count of each key")
    assert outline.lines() == [
        "reads    orders",
        "shuffle  count, by key",
        "store    totals: the count of each key",
        "writes   totals",
    ]


def test_two_stores_of_one_name_are_told_apart() -> None:
    outline = TopologyDescription()
    assert [outline.store("mine", "table", "x") for _ in range(3)] == ["mine", "mine-2", "mine-3"]
