from __future__ import annotations

import logging

import pytest

from millbeck.kernel import isolation
from millbeck.kernel.isolation import Isolation


def fail() -> int:
    raise ValueError("bad")


def test_what_one_entity_raises_is_counted_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    failures: list[int] = []
    work = Isolation(lambda: failures.append(1))
    with caplog.at_level(logging.ERROR):
        assert [work.run("a", lambda: 1), work.run("b", fail), work.run("c", lambda: 3)] == [1, None, 3]
        assert work.run("b", fail) is None
    assert (work.failure_count, len(failures)) == (2, 2)
    assert [record.getMessage() for record in caplog.records] == ["b failed, continuing with the others"]
    assert caplog.records[0].exc_info is not None


def test_a_failure_after_a_success_is_logged_again(caplog: pytest.LogCaptureFixture) -> None:
    work = Isolation()
    with caplog.at_level(logging.ERROR):
        for step in (fail, lambda: 1, fail):
            work.run("b", step)
    assert len(caplog.records) == 2


def test_only_so_many_entities_are_logged(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "LOGGED_ENTITIES_MAX", 2)
    work = Isolation()
    with caplog.at_level(logging.ERROR):
        for index in range(5):
            work.run(index, fail)
    assert (work.failure_count, len(caplog.records)) == (5, 2)
