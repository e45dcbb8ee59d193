"""Settings of errors, retries, and the headers of dead letters."""

from __future__ import annotations

import pytest

from millbeck.pipeline.connect.dead_letters import letter_fields
from millbeck.pipeline.connect.errors import ConfigError, InvalidValue, RetriableError
from millbeck.pipeline.connect.tasks.tolerance import ErrorPolicy, RecordFailed, Retries, Stage, letter_headers


def test_the_settings_of_errors() -> None:
    policy = ErrorPolicy.of(
        {
            "errors.tolerance": "all",
            "errors.retry.timeout": "2500",
            "errors.deadletterqueue.topic.name": "dead",
            "errors.deadletterqueue.context.headers.enable": "true",
            "topics": "a",
        }
    )
    assert (policy.tolerates, policy.retry_timeout_s, policy.letter_topic) == (True, 2.5, "dead")
    assert policy.has_letter_headers
    assert ErrorPolicy.of({}) == ErrorPolicy()
    with pytest.raises(ConfigError, match=r"errors\.tolerance"):
        ErrorPolicy.of({"errors.tolerance": "some"})


class _Time:
    def __init__(self) -> None:
        self.now_s = 0.0
        self.pauses: list[float] = []

    def pause(self, seconds: float) -> None:
        self.pauses.append(round(seconds, 3))
        self.now_s += seconds


def _failing(times: int) -> tuple[list[int], object]:
    calls: list[int] = []

    def operation(value: int) -> int:
        calls.append(value)
        if len(calls) <= times:
            raise RetriableError("the registry is down")
        return value + 1

    return calls, operation


def test_an_outage_is_waited_for_with_growing_pauses() -> None:
    time = _Time()
    calls, operation = _failing(3)
    retries = Retries(ErrorPolicy(retry_timeout_s=10.0, retry_delay_max_s=0.5), lambda: time.now_s, time.pause)
    assert retries.run(operation, 5) == 6  # type: ignore[arg-type]
    assert (len(calls), retries.count, time.pauses) == (4, 3, [0.3, 0.5, 0.5])


def test_an_outage_longer_than_the_timeout_fails_the_share() -> None:
    time = _Time()
    _, operation = _failing(100)
    retries = Retries(ErrorPolicy(retry_timeout_s=1.0), lambda: time.now_s, time.pause)
    with pytest.raises(RetriableError):
        retries.run(operation, 5)  # type: ignore[arg-type]
    assert time.now_s == pytest.approx(1.0)


def test_nothing_is_tried_again_by_default_and_other_errors_never() -> None:
    time = _Time()
    calls, operation = _failing(1)
    with pytest.raises(RetriableError):
        Retries(ErrorPolicy(), lambda: time.now_s, time.pause).run(operation, 5)  # type: ignore[arg-type]
    assert len(calls) == 1

    def wrong() -> None:
        raise InvalidValue("no")

    with pytest.raises(InvalidValue):
        Retries(ErrorPolicy(retry_timeout_s=-1.0), lambda: time.now_s, time.pause).run(wrong)
    assert not time.pauses


def test_the_headers_of_a_letter_are_those_that_commands_read() -> None:
    try:
        raise InvalidValue("not a number")
    except InvalidValue as error:
        failed = RecordFailed(Stage.VALUE_CONVERTER, "org.example.Converter", error)
    headers = letter_headers(failed, topic="orders", partition=3, offset=17, connector="sink", task=2)
    fields = letter_fields(headers)
    assert fields["topic"] == "orders"
    assert (fields["partition"], fields["offset"], fields["task"]) == ("3", "17", "2")
    assert fields["stage"] == "VALUE_CONVERTER"
    assert fields["class"] == "org.example.Converter"
    assert fields["exception"] == "org.apache.kafka.connect.errors.DataException"
    assert fields["message"] == "not a number"
    assert "test_tolerance" in fields["stacktrace"]
