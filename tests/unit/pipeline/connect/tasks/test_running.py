"""What follows from a failure of a share."""

from __future__ import annotations

import pytest

from millbeck.client.errors import NoBrokerReachable
from millbeck.kernel.errors import CoordinatorNotAvailable, MessageTooLarge, TopicAuthorizationFailed
from millbeck.pipeline.connect.connectors.interface import SourceShare
from millbeck.pipeline.connect.errors import ConfigError, ConnectError, InvalidValue, RetriableError
from millbeck.pipeline.connect.tasks.running import failure_of, run_work
from millbeck.pipeline.connect.tasks.tolerance import RecordFailed, Stage
from millbeck.pipeline.connect.tasks.work import FailureKind, TaskSettings, Work

RETRIABLE, FATAL = FailureKind.RETRIABLE, FailureKind.FATAL
CASES = {
    "the target is down": (RetriableError("down"), RETRIABLE),
    "a driver's own error": (ConnectionResetError("reset"), RETRIABLE),
    "an error of the connector's code": (ZeroDivisionError("division by zero"), RETRIABLE),
    "brokers are down": (NoBrokerReachable("none"), RETRIABLE),
    "a coordinator moves": (CoordinatorNotAvailable("moves"), RETRIABLE),
    "a wrong setting": (ConfigError("table: no such table"), FATAL),
    "cannot go on": (ConnectError("the slot is lost"), FATAL),
    "a record, without tolerance": (RecordFailed(Stage.TASK_PUT, "C", InvalidValue("no")), FATAL),
    "no right to write": (TopicAuthorizationFailed("no"), FATAL),
    "a record that brokers never take": (MessageTooLarge("2 MB"), FATAL),
}


@pytest.mark.parametrize(("error", "kind"), CASES.values(), ids=CASES.keys())
def test_what_follows_from_a_failure(error: Exception, kind: FailureKind) -> None:
    found = failure_of(error, "orders-0@5")
    assert found.kind is kind
    assert found.place == "orders-0@5"
    assert str(error) in found.message


def test_a_share_never_raises() -> None:
    settings = TaskSettings(
        name="c",
        class_name="no.Such",
        implementation="no_such_module_of_ours:Source",
        settings={},
        converters={},
        tasks_max=1,
        client={"bootstrap.servers": "127.0.0.1:1"},
        producer={},
        consumer={},
    )
    outcome = run_work(Work(settings=settings, task=2, share=SourceShare()))
    assert outcome.task == 2
    assert outcome.failure is not None
    assert outcome.failure.kind is FATAL
    assert "no.Such" in outcome.failure.message
