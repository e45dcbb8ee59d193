from __future__ import annotations

from millbeck.kernel.errors import NotCoordinator
from millbeck.server.loop.gather import ResultCollector


def test_answers_come_out_in_the_order_of_the_questions() -> None:
    finished: list[list[str]] = []
    gather: ResultCollector[str] = ResultCollector(finished.append)
    first, second = gather.ask(str), gather.ask(lambda error: f"failed {error.code}")
    gather.close()
    second.fail(NotCoordinator())
    assert finished == []
    first.reply("one")
    assert finished == [["one", "failed 16"]]


def test_answers_that_are_there_at_once_wait_for_the_last_question() -> None:
    finished: list[list[str]] = []
    gather: ResultCollector[str] = ResultCollector(finished.append)
    gather.ask(str).reply("one")
    gather.ask(str).reply("two")
    assert finished == []
    gather.close()
    assert finished == [["one", "two"]]


def test_no_questions_are_answered_by_nothing() -> None:
    finished: list[list[str]] = []
    ResultCollector(finished.append).close()
    assert finished == [[]]
