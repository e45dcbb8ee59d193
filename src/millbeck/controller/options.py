"""What the controller is told by the server's configuration."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerOptions:
    """Values of ``num.partitions``, ``default.replication.factor`` and ``delete.topic.enable``."""

    partition_count_default: int = 1
    replication_factor_default: int = 1
    delete_topics: bool = True
