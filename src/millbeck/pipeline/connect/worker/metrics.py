"""A worker's metrics in Prometheus' text format, with the names that dashboards of Kafka Connect use. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from millbeck.pipeline.connect.rest.herder import Cluster
from millbeck.pipeline.connect.state.status import State
from millbeck.pipeline.connect.worker.runner import Totals

_TASK_STATES: Final = (
    State.RUNNING,
    State.PAUSED,
    State.FAILED,
    State.UNASSIGNED,
    State.DESTROYED,
    State.RESTARTING,
)
_TOTALS: Final = {
    "kafka_connect_task_error_total_record_errors": ("skipped", "Records that were left out."),
    "kafka_connect_task_error_total_record_failures": ("failures", "Shares that failed."),
    "kafka_connect_task_error_total_records_skipped": ("skipped", "Records that were left out."),
    "kafka_connect_task_error_total_retries": ("retries", "Operations on records that were tried again."),
    "kafka_connect_task_error_deadletterqueue_produce_requests": ("letters", "Dead letters."),
    "millbeck_connect_records": ("records", "Records that were written."),
    "millbeck_connect_turns": ("turns", "Turns: plan, shares, commit."),
    "millbeck_connect_turn_seconds": ("turn_seconds", "The time of turns."),
    "millbeck_connect_plan_seconds": ("plan_seconds", "The part of it in plans."),
    "millbeck_connect_commit_seconds": ("commit_seconds", "The part of it in commits."),
}


def text_of(
    cluster: Cluster,
    totals: Mapping[str, Totals],
    *,
    owned: Iterable[str],
    is_rebalancing: bool,
    job_count: int,
    gauges: Mapping[str, Mapping[str, float]] | None = None,
) -> str:
    """``totals`` are of the connectors that run here, ``gauges`` what they say of themselves."""
    names = sorted(owned)
    lines: list[str] = []
    tasks = {name: cluster.configs.tasks_of(name) for name in names}
    lines += _gauge("kafka_connect_worker_connector_count", "Connectors of this worker.", [({}, len(names))])
    task_count = sum(len(found) for found in tasks.values())
    lines += _gauge("kafka_connect_worker_task_count", "Tasks of this worker.", [({}, task_count)])
    lines += _gauge(
        "kafka_connect_worker_rebalance_rebalancing", "Whether this worker waits for its part.", [({}, is_rebalancing)]
    )
    counts = {name: Counter(status.state for status in cluster.statuses.tasks_of(name).values()) for name in names}
    for state in _TASK_STATES:
        lines += _gauge(
            f"kafka_connect_worker_connector_{state.value.lower()}_task_count",
            f"Tasks that are {state.value}.",
            [({"connector": name}, counts[name][state]) for name in names],
        )
    lines += _gauge(
        "kafka_connect_connector_status",
        "1, with the connector's state as a label.",
        [
            ({"connector": name, "status": cluster.statuses.connectors[name].state.value.lower()}, 1)
            for name in names
            if name in cluster.statuses.connectors
        ],
    )
    lines += _gauge(
        "kafka_connect_task_status",
        "1, with the task's state as a label.",
        [
            ({"connector": name, "task": str(number), "status": status.state.value.lower()}, 1)
            for name in names
            for number, status in cluster.statuses.tasks_of(name).items()
        ],
    )
    for metric, (attribute, doc) in _TOTALS.items():
        values = [({"connector": name}, getattr(found, attribute)) for name, found in sorted(totals.items())]
        lines += _family(metric, "counter", doc, values)
    own = gauges or {}
    for gauge in sorted({gauge for found in own.values() for gauge in found}):
        lines += _gauge(
            f"millbeck_connect_{gauge}",
            "What the connector says of itself.",
            [({"connector": name}, found[gauge]) for name, found in sorted(own.items()) if gauge in found],
        )
    lines += _family("millbeck_connect_jobs", "counter", "Spark jobs.", [({}, job_count)])
    return "\n".join(lines) + "\n"


def _gauge(name: str, doc: str, values: Iterable[tuple[Mapping[str, str], float]]) -> Iterator[str]:
    return _family(name, "gauge", doc, values)


def _family(name: str, kind: str, doc: str, values: Iterable[tuple[Mapping[str, str], float]]) -> Iterator[str]:
    yield f"# HELP {name} {doc}"
    yield f"# TYPE {name} {kind}"
    for labels, value in values:
        shown = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
        yield f"{name}{{{shown}}} {float(value):g}" if shown else f"{name} {float(value):g}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
