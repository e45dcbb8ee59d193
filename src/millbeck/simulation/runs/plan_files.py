"""Plans of cluster runs as files: a failed run is saved with its faults, because the meaning of a seed changes with the
code."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from millbeck.simulation.environment.options import NetworkOptions
from millbeck.simulation.faults.schedule import Fault
from millbeck.simulation.runs.cluster_run import ClusterPlan


def plan_text(plan: ClusterPlan, note: str = "") -> str:
    """One fault per line, for readable diffs; ``note`` is the result of the run."""
    fields: dict[str, Any] = {"note": note}
    for field in dataclasses.fields(plan):
        value = getattr(plan, field.name)
        if field.name == "schedule":
            value = [dataclasses.astuple(fault) for fault in value]
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            value = dataclasses.asdict(value)
        elif isinstance(value, frozenset):
            value = sorted(value)
        fields[field.name] = value
    lines = [f"  {json.dumps(name)}: {_value_text(value)}" for name, value in fields.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _value_text(value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return "[\n" + ",\n".join(f"    {json.dumps(each)}" for each in value) + "\n  ]"
    return json.dumps(value)


def parse_plan(text: str) -> ClusterPlan:
    fields = json.loads(text)
    fields.pop("note", None)
    fields["schedule"] = tuple(Fault(*each) for each in fields["schedule"])
    fields["network"] = NetworkOptions(**fields["network"])
    fields["omitted"] = frozenset(fields["omitted"])
    return ClusterPlan(**fields)
