"""Which group a query's offsets go to, and which offsets."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from millbeck.client.errors import NoBrokerReachable
from millbeck.kernel.ids import TopicPartition
from millbeck.pipeline.offsets import Offsets
from millbeck.pipeline.progress_groups import ProgressGroups, offsets_of

STREAM = "org.apache.spark.sql.execution.datasources.v2.python.PythonMicroBatchStreamWithTriggerAvailableNow@1"
END = Offsets({TopicPartition("a", 0): 7}, {"a": bytes(16)})


def source(description: str = STREAM, end: Any = None) -> Any:
    return SimpleNamespace(description=description, endOffset=json.dumps(END.to_json()) if end is None else end)


def event(name: str | None, *sources: Any) -> Any:
    return SimpleNamespace(id="i", name=name, progress=SimpleNamespace(name=name, sources=list(sources)))


def test_offsets_of_our_sources() -> None:
    assert offsets_of([source(), source("KafkaV2[Subscribe[a]]")]) == {TopicPartition("a", 0): 7}
    assert offsets_of([source(end=END.to_json())]) == {TopicPartition("a", 0): 7}
    assert offsets_of([source(end=""), source(end="null"), source(end='{"x": 5}'), source(end="{")]) == {}


def test_groups() -> None:
    listener = ProgressGroups({}, {"revenue": "team-revenue"})
    assert listener.group_of("revenue") == "team-revenue"
    assert listener.group_of("other") == "millbeck-other"
    assert listener.group_of(None) is None


def test_progress_is_committed(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    committed: list[Any] = []
    listener = ProgressGroups({"bootstrap.servers": "h:1"})
    monkeypatch.setattr(listener, "_commit", lambda group, offsets: committed.append((group, dict(offsets))))
    listener.onQueryStarted(event("q"))
    listener.onQueryProgress(event("q", source()))
    listener.onQueryProgress(event(None, source()))
    listener.onQueryProgress(event("q", source("rate")))
    listener.onQueryIdle(event("q"))
    listener.onQueryTerminated(event("q"))
    assert committed == [("millbeck-q", {TopicPartition("a", 0): 7})]

    def fail(group: str, offsets: Any) -> None:
        raise NoBrokerReachable("nobody")

    monkeypatch.setattr(listener, "_commit", fail)
    listener.onQueryProgress(event("q", source()))
    assert "offsets of query q were not committed to group millbeck-q: nobody" in caplog.text
