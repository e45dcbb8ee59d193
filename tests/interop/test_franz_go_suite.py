"""Reading what franz-go's own tests print: a run in which little happened, or that broke off, is no success."""

from __future__ import annotations

import pytest

from tests.interop.franz_go_suite import Outcome, read_outcome

PRINTED = """=== RUN   TestOne
    some word of a test--- PASS: TestOne (0.01s)
    --- PASS: TestOne/part (0.00s)
--- SKIP: TestSCRAMAuth (0.00s)
PASS
"""


def test_verdicts_are_found_wherever_they_begin() -> None:
    found = read_outcome(PRINTED)
    assert found == Outcome(passed=("TestOne", "TestOne/part"), failed=(), skipped=("TestSCRAMAuth",), has_ended=True)
    assert found.problems(tests_min=2) == []


@pytest.mark.parametrize(
    ("printed", "problem"),
    [
        (PRINTED + "--- FAIL: TestTwo (1.00s)\n", "TestTwo failed"),
        (PRINTED + "--- SKIP: TestTxn (1.00s)\n", "TestTxn was skipped"),
        (PRINTED.replace("\nPASS\n", "\n"), "the suite did not come to its end"),
        (PRINTED + "panic: test timed out after 30m0s\n", "the suite did not come to its end"),
    ],
)
def test_what_is_no_success_is_named(printed: str, problem: str) -> None:
    assert read_outcome(printed).problems(tests_min=2) == [problem]


def test_with_a_listener_for_scram_its_tests_must_run() -> None:
    assert read_outcome(PRINTED).problems(tests_min=2, has_scram=True) == ["TestSCRAMAuth was skipped"]


def test_a_run_without_tests_is_empty() -> None:
    assert read_outcome("PASS\n").problems(tests_min=1) == ["empty: only 0 tests passed, not 1"]
