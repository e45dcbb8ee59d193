"""Writers hand each task's rows over and return what was written."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from millbeck.kernel.ids import TopicPartition
from millbeck.pipeline import sink
from millbeck.pipeline.sink import BatchWriter, StreamWriter, TaskWritten
from millbeck.pipeline.sink_options import SinkOptions, parse_sink_options


class FakeOutgoing:
    made: list[FakeOutgoing] = []

    def __init__(self, options: SinkOptions) -> None:
        self.batches: list[str] = []
        self.is_closed = False
        FakeOutgoing.made.append(self)

    def write(self, batch: str) -> None:
        if batch == "bad":
            raise ValueError(batch)
        self.batches.append(batch)

    def finish(self) -> dict[TopicPartition, tuple[int, int]]:
        return {TopicPartition("a", 0): (len(self.batches), 9)}

    def close(self) -> None:
        self.is_closed = True


OPTIONS = parse_sink_options({"kafka.bootstrap.servers": "h:1", "topic": "a"})


@pytest.mark.parametrize("kind", [BatchWriter, StreamWriter])
def test_a_task(monkeypatch: pytest.MonkeyPatch, kind: Any) -> None:
    FakeOutgoing.made = []
    monkeypatch.setattr(sink, "Outgoing", FakeOutgoing)
    writer = pickle.loads(pickle.dumps(kind(OPTIONS)))
    message = writer.write(iter(["one", "two"]))
    assert isinstance(message, TaskWritten)
    assert pickle.loads(pickle.dumps(message)).written == {TopicPartition("a", 0): (2, 9)}
    with pytest.raises(ValueError, match="bad"):
        writer.write(iter(["bad"]))
    assert [made.is_closed for made in FakeOutgoing.made] == [True, True]


def test_nothing_is_left_for_the_driver() -> None:
    writer = StreamWriter(OPTIONS)
    messages: list[Any] = [TaskWritten({})]
    writer.commit(messages, 5)
    writer.abort(messages, 5)
    assert messages[0].written == {}
