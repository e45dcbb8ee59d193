"""Metrics under the names of Kafka Connect's dashboards."""

from __future__ import annotations

from millbeck.pipeline.connect.rest.herder import Cluster
from millbeck.pipeline.connect.state import configs, status
from millbeck.pipeline.connect.state.configs import TaskId
from millbeck.pipeline.connect.state.status import State, Status
from millbeck.pipeline.connect.worker.metrics import text_of
from millbeck.pipeline.connect.worker.runner import Totals


def test_the_metrics_of_a_worker() -> None:
    cluster = Cluster()
    records = [*configs.connector_records("a", {"x": "1"}), *configs.task_records("a", [{}, {}])]
    for offset, record in enumerate(records):
        cluster.configs.replay(offset, *record)
    running = Status(state=State.RUNNING, worker_id="w", generation=1)
    failed = Status(state=State.FAILED, worker_id="w", generation=1)
    cluster.statuses.replay(*status.connector_record("a", running))
    cluster.statuses.replay(*status.task_record(TaskId("a", 0), running))
    cluster.statuses.replay(*status.task_record(TaskId("a", 1), failed))
    text = text_of(
        cluster,
        {"a": Totals(records=7, letters=2)},
        owned=["a"],
        is_rebalancing=False,
        job_count=3,
        gauges={"a": {"slot_retained_bytes": 5}, "b": {}},
    )
    lines = text.splitlines()
    assert "kafka_connect_worker_connector_count 1" in lines
    assert "kafka_connect_worker_task_count 2" in lines
    assert "kafka_connect_worker_rebalance_rebalancing 0" in lines
    assert 'kafka_connect_worker_connector_running_task_count{connector="a"} 1' in lines
    assert 'kafka_connect_worker_connector_failed_task_count{connector="a"} 1' in lines
    assert 'kafka_connect_connector_status{connector="a",status="running"} 1' in lines
    assert 'kafka_connect_task_status{connector="a",task="1",status="failed"} 1' in lines
    assert 'kafka_connect_task_error_deadletterqueue_produce_requests{connector="a"} 2' in lines
    assert 'millbeck_connect_records{connector="a"} 7' in lines
    assert 'millbeck_connect_slot_retained_bytes{connector="a"} 5' in lines
    assert "millbeck_connect_jobs 3" in lines
    assert len(lines) == len(set(lines))
