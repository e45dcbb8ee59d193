"""The built-in policy for new topics, ``TopicBounds``: a pattern for names, a minimum replication factor, and limits on
the number of partitions.

Internal topics are exempt, because the cluster needs them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from millbeck.controller.policies import TopicRequest
from millbeck.kernel.errors import PolicyViolation
from millbeck.kernel.names import is_internal_topic

NAME: Final = "TopicBounds"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicBounds:
    name_pattern: str = ""
    """A regular expression for the whole name; empty: any name."""
    replication_factor_min: int = 1
    partitions_min: int = 1
    partitions_max: int = 0
    """0: any number."""

    def validate(self, topic: TopicRequest) -> None:
        if is_internal_topic(topic.name):
            return
        if self.name_pattern and re.fullmatch(self.name_pattern, topic.name) is None:
            raise PolicyViolation(f"the name {topic.name} does not match the pattern {self.name_pattern}")
        if topic.replicas < self.replication_factor_min:
            raise PolicyViolation(
                f"{topic.name} would have {topic.replicas} replicas, and needs {self.replication_factor_min}"
            )
        if topic.partitions < self.partitions_min or (self.partitions_max and topic.partitions > self.partitions_max):
            most = f" to {self.partitions_max}" if self.partitions_max else " or more"
            raise PolicyViolation(
                f"{topic.name} would have {topic.partitions} partitions, and may have {self.partitions_min}{most}"
            )
