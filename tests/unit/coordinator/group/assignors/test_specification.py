from __future__ import annotations

from millbeck.coordinator.group.assignors.specification import TopicSpecification


def test_racks_that_are_not_known_are_none() -> None:
    assert TopicSpecification(2).racks_of(1) == ()
    assert TopicSpecification(2, (("a",), ("b", "c"))).racks_of(1) == ("b", "c")
