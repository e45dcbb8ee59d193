"""The lines of a checkpoint for the places of a query that read its sources."""

from __future__ import annotations

from millbeck.pipeline.topology.checkpoints import fitted_lines

ORDERS, CUSTOMERS = frozenset({"orders"}), frozenset({"customers"})
AT_3 = '{"orders": {"0": 3}, "$topic_ids": {"orders": "4VP6zvJmTuKV-8PxZ0Ht9g"}}'
AT_4 = '{"orders": {"0": 4}, "$topic_ids": {"orders": "4VP6zvJmTuKV-8PxZ0Ht9g"}}'
OTHER = '{"customers": {"0": 9}}'


def test_a_source_that_is_read_more_often_or_less_often_keeps_its_offsets() -> None:
    assert fitted_lines([AT_3], [ORDERS, ORDERS]) == [AT_3, AT_3]
    assert fitted_lines([AT_3, OTHER, AT_3], [ORDERS, CUSTOMERS]) == [AT_3, OTHER]
    assert fitted_lines([AT_3, OTHER], [CUSTOMERS, ORDERS, CUSTOMERS]) == [OTHER, AT_3, OTHER]


def test_other_sources_and_offsets_that_differ_are_left_alone() -> None:
    assert fitted_lines([AT_3], [ORDERS, CUSTOMERS]) is None
    assert fitted_lines([AT_3, OTHER], [ORDERS]) is None
    assert fitted_lines([AT_3, AT_4], [ORDERS]) is None


def test_lines_that_are_not_of_this_source_are_left_alone() -> None:
    for line in ("-", "17", "nonsense", "[1]"):
        assert fitted_lines([line], [ORDERS]) is None


def test_a_source_of_several_topics_is_known_by_all_of_them() -> None:
    both = '{"customers": {"0": 9}, "orders": {"0": 3}}'
    assert fitted_lines([both], [ORDERS | CUSTOMERS] * 2) == [both, both]
    assert fitted_lines([both], [ORDERS]) is None
