"""Server-side assignors: pure functions from members and topics to the target assignment of each member."""

from __future__ import annotations

from collections.abc import Mapping

from millbeck.coordinator.group.assignors.range import assign_ranges
from millbeck.coordinator.group.assignors.specification import Assignor
from millbeck.coordinator.group.assignors.uniform import assign_uniformly

ASSIGNORS: Mapping[str, Assignor] = {"uniform": assign_uniformly, "range": assign_ranges}
"""Assignors by name; ``group.consumer.assignors`` accepts these names and the class names they have in Kafka."""

__all__ = ["ASSIGNORS", "Assignor", "assign_ranges", "assign_uniformly"]
