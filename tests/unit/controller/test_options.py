from __future__ import annotations

from millbeck.controller import ControllerOptions


def test_defaults_are_kafkas() -> None:
    options = ControllerOptions()
    assert (options.partition_count_default, options.replication_factor_default, options.delete_topics) == (1, 1, True)
