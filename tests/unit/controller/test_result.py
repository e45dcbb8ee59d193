from __future__ import annotations

from millbeck.controller import Result
from millbeck.controller.result import RECORD_COUNT_MAX


def test_a_result_without_records_changes_nothing_and_is_atomic() -> None:
    result = Result(response=1)
    assert (result.records, result.is_atomic) == ([], True)
    assert result.records is not Result(response=1).records
    assert RECORD_COUNT_MAX == 10_000
