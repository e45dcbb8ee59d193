"""Assignors of the broker: pure functions from members and topics to everybody's partitions."""

from __future__ import annotations

from collections.abc import Mapping

from millbeck.coordinator.group.assignors.range import assign_ranges
from millbeck.coordinator.group.assignors.specification import Assignor
from millbeck.coordinator.group.assignors.uniform import assign_uniformly

ASSIGNORS: Mapping[str, Assignor] = {"uniform": assign_uniformly, "range": assign_ranges}
"""By the names that members and ``group.consumer.assignors`` use."""

__all__ = ["ASSIGNORS", "Assignor", "assign_ranges", "assign_uniformly"]
