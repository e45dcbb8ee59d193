from __future__ import annotations

from millbeck.coordinator.runtime.result import ResponseCallback, Result
from millbeck.kernel.errors import ApiError, NotCoordinator


def test_only_the_first_answer_counts() -> None:
    answers: list[object] = []
    reply: ResponseCallback[str] = ResponseCallback(answers.append, answers.append)
    assert not reply.is_done
    reply.reply("first")
    reply.reply("second")
    reply.fail(NotCoordinator())
    assert answers == ["first"]
    assert reply.is_done


def test_a_failure_is_an_answer() -> None:
    failures: list[ApiError] = []
    reply: ResponseCallback[str] = ResponseCallback(lambda _: None, failures.append)
    reply.fail(NotCoordinator())
    reply.fail(NotCoordinator())
    assert [type(error) for error in failures] == [NotCoordinator]
    assert reply.is_done


def test_a_result_without_anything_changes_nothing() -> None:
    result: Result[str, str] = Result()
    assert (list(result.records), result.response, result.is_replayed, result.is_atomic) == ([], None, True, True)
