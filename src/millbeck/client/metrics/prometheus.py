"""Client metrics as Prometheus text.

    text = prometheus_text(producer, consumer)      # for the handler of /metrics in any web framework

The metric ``record-send-total`` of the group ``producer-metrics`` is ``kafka_producer_record_send_total``; its tags are
labels. Values that do not exist yet (NaN) are left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final, Protocol

from millbeck.client.metrics.registry import MetricName

_NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_]")
_ESCAPES: Final = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


class HasMetrics(Protocol):
    def metrics(self) -> Mapping[MetricName, float]:
        """The current value of each metric of a client."""


def prometheus_text(*clients: HasMetrics) -> str:
    """All metrics of these clients in Prometheus' text format, version 0.0.4."""
    families: dict[str, list[str]] = {}
    for client in clients:
        for (group, name, tags), value in client.metrics().items():
            if math.isnan(value):
                continue
            family = _NOT_IN_NAMES.sub("_", f"kafka_{group.removesuffix('-metrics')}_{name}")
            labels = ",".join(f'{_NOT_IN_NAMES.sub("_", key)}="{text.translate(_ESCAPES)}"' for key, text in tags)
            families.setdefault(family, []).append(f"{family}{{{labels}}} {value:.16g}\n")
    parts: list[str] = []
    for family, lines in sorted(families.items()):
        parts.append(f"# TYPE {family} {'counter' if family.endswith('_total') else 'gauge'}\n")
        parts.extend(lines)
    return "".join(parts)
