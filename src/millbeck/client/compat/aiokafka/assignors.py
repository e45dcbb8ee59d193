"""The assignor classes of ``aiokafka.coordinator.assignors``. Each only names one of millbeck's own assignors."""

from __future__ import annotations


class AbstractPartitionAssignor:
    """The base class; assignors of one's own are not supported."""

    name: str


class RoundRobinPartitionAssignor(AbstractPartitionAssignor):
    name = "roundrobin"


class RangePartitionAssignor(AbstractPartitionAssignor):
    name = "range"


class StickyPartitionAssignor(AbstractPartitionAssignor):
    name = "sticky"
