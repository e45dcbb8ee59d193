"""Log levels by requests."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from millbeck.pipeline.connect.rest.answers import Request, RestError
from millbeck.pipeline.connect.rest.loggers import Loggers

NAME = "millbeck.pipeline.connect.test"


@pytest.fixture
def loggers() -> Iterator[Loggers]:
    before = {name: logging.getLogger(name).level for name in (NAME, f"{NAME}.below")}
    yield Loggers(lambda: 5)
    for name, level in before.items():
        logging.getLogger(name).setLevel(level)


def _put(loggers: Loggers, body: object, **query: tuple[str, ...]) -> object:
    return loggers.put(NAME, Request(method="PUT", path="/", query=query, body=body))


def test_a_level_is_that_of_the_loggers_below_too(loggers: Loggers) -> None:
    answer = loggers.put(NAME, Request(method="PUT", path="/", body={"level": "debug"}))
    assert answer.body == [NAME, f"{NAME}.below"]
    assert logging.getLogger(f"{NAME}.below").level == logging.DEBUG
    assert loggers.one(NAME) == {"level": "DEBUG", "last_modified": 5}
    assert loggers.listed()[f"{NAME}.below"]["level"] == "DEBUG"
    assert "root" in loggers.listed()


def test_a_level_of_all_workers_is_a_record(loggers: Loggers) -> None:
    answer = loggers.put(NAME, Request(method="PUT", path="/", query={"scope": ("cluster",)}, body={"level": "WARN"}))
    assert answer.status == 204
    assert [record.key for record in answer.configs] == [f"logger-cluster-{NAME}"]
    assert answer.configs[0].value == b'{"level":"WARN"}'


@pytest.mark.parametrize(("body", "status"), [(None, 400), ({}, 400), ({"level": 5}, 400), ({"level": "LOUD"}, 404)])
def test_what_is_wrong_is_answered(loggers: Loggers, body: object, status: int) -> None:
    with pytest.raises(RestError) as caught:
        _put(loggers, body)
    assert caught.value.status == status


def test_an_unknown_logger(loggers: Loggers) -> None:
    with pytest.raises(RestError) as caught:
        loggers.one("no.such")
    assert caught.value.status == 404
