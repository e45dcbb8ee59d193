"""A worker on Spark: from file to topic to file, each line once, whatever dies in between."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.spark.connect.live_worker import LiveWorker
    from tests.spark.live_log import LiveLog

LINES = 3_000


@pytest.fixture
def worker(spark: SparkSession, log: LiveLog, sample_plugin: None) -> Iterator[LiveWorker]:
    pytest.importorskip("starlette", reason="the extra connect-worker is not installed")
    from tests.spark.connect.live_worker import LiveWorker

    with LiveWorker(spark, log.bootstrap) as found:
        yield found


@pytest.fixture
def sample_plugin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package of connectors in the unit tests, as if it were installed."""
    from millbeck.pipeline.connect.connectors import declared
    from tests.unit.pipeline.connect.connectors import sample_plugin

    entries = importlib.metadata.EntryPoints(
        importlib.metadata.EntryPoint(name, f"{sample_plugin.__name__}:{name}", declared.ENTRY_POINTS)
        for name in ("CountingSource", "MemorySink")
    )
    known = importlib.metadata.entry_points
    monkeypatch.setattr(
        importlib.metadata,
        "entry_points",
        lambda group: entries if group == declared.ENTRY_POINTS else known(group=group),
    )
    declared._installed.cache_clear()
    yield
    declared._installed.cache_clear()


def test_each_line_goes_from_file_to_file_once_though_workers_vanish(
    worker: LiveWorker, log: LiveLog, make_topic: Callable[..., str], tmp_path: Path
) -> None:
    topic = make_topic()
    given, written = tmp_path / "in.txt", tmp_path / "out.txt"
    wanted = [f"line {number}" for number in range(LINES)]
    given.write_text("".join(f"{line}\n" for line in wanted[: LINES // 3]))
    worker.put("source", connector_class="FileStreamSource", file=str(given), topic=topic)
    worker.put("sink", connector_class="FileStreamSink", file=str(written), topics=topic)
    worker.until(lambda: written.exists() and written.stat().st_size > 0)
    with given.open("a") as file:
        file.writelines(f"{line}\n" for line in wanted[LINES // 3 : 2 * LINES // 3])
    # The share is planned, or its task runs, or it is to be committed.
    worker.until(lambda: worker.member.runners["source"].totals.turns >= 1)
    worker.vanish()
    with given.open("a") as file:
        file.writelines(f"{line}\n" for line in wanted[2 * LINES // 3 :])
    worker.until(lambda: written.read_text().count("\n") >= 2 * LINES // 3)
    worker.vanish()
    worker.until(lambda: written.read_text().count("\n") >= LINES)
    assert written.read_text().splitlines() == wanted
    assert [value.decode() for value in log.values(topic)] == wanted
    assert worker.states("source") == ["RUNNING", "RUNNING"]
    offsets = worker.ask("GET", "/connectors/source/offsets").body["offsets"]
    assert offsets == [{"partition": {"filename": str(given)}, "offset": {"position": given.stat().st_size}}]
    assert worker.ask("GET", "/connectors/source/topics").body == {"source": {"topics": [topic]}}


def test_what_cannot_be_handled_becomes_a_dead_letter_and_an_outage_does_not(
    worker: LiveWorker, log: LiveLog, make_topic: Callable[..., str], tmp_path: Path
) -> None:
    from millbeck.pipeline.connect.dead_letters import letter_fields

    topic, letters = make_topic(), make_topic()
    written = tmp_path / "missing" / "out.txt"
    log.put(topic, [{"value": b"{" if number % 10 == 3 else b'{"id":%d}' % number} for number in range(40)])
    worker.put(
        "sink",
        connector_class="FileStreamSink",
        file=str(tmp_path / "out.txt"),
        topics=topic,
        value_converter="JsonConverter",
        value_converter_schemas_enable="false",
        errors_tolerance="all",
        errors_deadletterqueue_topic_name=letters,
        errors_deadletterqueue_context_headers_enable="true",
    )
    done = tmp_path / "out.txt"
    worker.until(lambda: done.exists() and done.read_text().count("\n") >= 36)
    found = log.read(letters)
    assert [letter_fields(record.headers)["offset"] for _, record in found] == ["3", "13", "23", "33"]
    assert {letter_fields(record.headers)["stage"] for _, record in found} == {"VALUE_CONVERTER"}
    worker.until(lambda: log.committed("connect-sink", topic) == {0: 40})
    # What a sink itself refuses is in the transaction that also moves its position.
    refused = make_topic()
    worker.put(
        "memory",
        connector_class="MemorySink",
        refuses='{"id":7}',
        topics=topic,
        errors_tolerance="all",
        errors_deadletterqueue_topic_name=refused,
        errors_deadletterqueue_context_headers_enable="true",
    )
    worker.until(lambda: log.committed("connect-memory", topic) == {0: 40})
    ((_, letter),) = log.read(refused)
    assert letter.value == b'{"id":7}'
    assert letter_fields(letter.headers)["stage"] == "TASK_PUT"
    # Without tolerance the first one fails the task, and names the record.
    worker.put(
        "strict",
        connector_class="FileStreamSink",
        file=str(tmp_path / "strict.txt"),
        topics=topic,
        value_converter="JsonConverter",
        value_converter_schemas_enable="false",
    )
    worker.until_states("strict", "RUNNING", "FAILED")
    status = worker.ask("GET", "/connectors/strict/status").body
    assert f"{topic}-0@3" in status["tasks"][0]["trace"]
    # What is wrong in the other system is answered before anything runs; what comes later is for somebody to mend.
    nowhere = {"connector.class": "FileStreamSink", "file": str(written), "topics": topic}
    answer = worker.ask("PUT", "/connectors/nowhere/config", nowhere)
    assert answer.status == 400
    assert "there is no directory" in answer.body["message"]
    written.parent.mkdir()
    worker.put("nowhere", connector_class="FileStreamSink", file=str(written), topics=topic)
    worker.until(lambda: written.exists() and written.read_text().count("\n") == 40)
    worker.ask("PUT", "/connectors/nowhere/pause")
    worker.until_states("nowhere", "PAUSED", "PAUSED")
    written.parent.rename(tmp_path / "moved")
    worker.ask("PUT", "/connectors/nowhere/resume")
    worker.until(lambda: worker.states("nowhere")[:1] == ["FAILED"])
    (tmp_path / "moved").rename(written.parent)
    log.put(topic, [{"value": b'{"id":40}'}])
    worker.ask("POST", "/connectors/nowhere/restart")
    worker.until(lambda: written.read_text().count("\n") == 41)
    assert worker.states("nowhere") == ["RUNNING", "RUNNING"]


def test_connectors_of_another_package_run_in_tasks_and_rest_on_request(
    worker: LiveWorker, log: LiveLog, make_topic: Callable[..., str]
) -> None:
    topic = make_topic(2)
    worker.put("count", connector_class="CountingSource", topic=topic, end="200", step="20", tasks_max="2")
    worker.until(lambda: len(log.values(topic)) >= 100)
    worker.vanish()
    worker.until(lambda: len(log.values(topic)) >= 200)
    assert sorted(int(value) for value in log.values(topic)) == list(range(200))
    assert worker.states("count") == ["RUNNING"] * 3
    worker.ask("PUT", "/connectors/count/pause")
    worker.until_states("count", "PAUSED", "PAUSED", "PAUSED")
    worker.ask("PUT", "/connectors/count/stop")
    worker.until_states("count", "STOPPED")
    moved = {"offsets": [{"partition": {"lane": 0}, "offset": {"next": 196}}]}
    assert worker.ask("PATCH", "/connectors/count/offsets", moved).status == 200
    worker.ask("PUT", "/connectors/count/resume")
    worker.until(lambda: len(log.values(topic)) >= 202)
    assert sorted(int(value) for value in log.values(topic)) == sorted([*range(200), 196, 198])
    assert worker.ask("DELETE", "/connectors/count").status == 204
    worker.until(lambda: worker.states("count") == [])
