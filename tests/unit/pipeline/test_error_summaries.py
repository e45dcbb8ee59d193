"""Spark's messages, as it writes them, become the one line that helps."""

from __future__ import annotations

import sys

import pytest

from millbeck.pipeline.error_summaries import explained, install_exception_hook
from millbeck.pipeline.errors import (
    BadRecord,
    BrokerUnreachable,
    CheckpointMismatch,
    InvalidOption,
    PipelineError,
    TopicChanged,
)

QUERY = "[STREAM_FAILED] Query [id = 9198c5cb, runId = 9f8377c3] terminated with exception: "
AFTER = (
    " SQLSTATE: 38000 SQLSTATE: XXKST\n=== Streaming Query ===\nIdentifier: [id = 9198c5cb]\n"
    "Current Committed Offsets: {}\nCurrent State: ACTIVE\n\nLogical Plan:\nWriteToMicroBatchDataSource\n+- Project [x]"
)
SOURCE = (
    QUERY
    + "[PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR] Failed when Python streaming data source perform planPartitions:"
    ' Traceback (most recent call last):\n  File "runner.py", line 271, in main\n    raise error\n'
    "millbeck.client.errors.NoBrokerReachable: no connection\n\nTraceback (most recent call last):\n"
)


def test_our_own_errors_are_found_and_are_what_they_were() -> None:
    cause = "millbeck.pipeline.errors.BrokerUnreachable: the reason of it\n\nTraceback (most recent call last):\n"
    text = SOURCE + cause + "millbeck.pipeline.errors.TopicChanged: topic a was deleted. Use a new checkpoint\n" + AFTER
    found = explained(RuntimeError(text))
    assert type(found) is TopicChanged
    assert str(found) == "topic a was deleted. Use a new checkpoint"
    same = BrokerUnreachable("x")
    assert explained(same) is same


def test_a_bad_record_says_where_it_is_and_what_to_do() -> None:
    text = (
        QUERY
        + "Job aborted: [USER_RAISED_EXCEPTION] t-0 at offset 5: the value is no json SQLSTATE: P0001\n\tat x"
        + AFTER
    )
    found = explained(RuntimeError(text))
    assert type(found) is BadRecord
    assert str(found) == (
        "t-0 at offset 5: the value is no json. Correct the program that writes it, set bad_records to a topic for "
        "such records, or leave it out: millbeck pipeline skip NAME t:0:5"
    )


def test_modes_that_a_sink_cannot_have_are_told_with_what_to_do() -> None:
    mode = "[UNSUPPORTED_DATA_SOURCE_SAVE_MODE] The data source cannot be written in the Ignore mode. SQLSTATE: 0A000"
    found = explained(RuntimeError(mode))
    assert (type(found), str(found)) == (InvalidOption, 'a log can only be appended to: write with mode("append")')
    found = explained(RuntimeError(QUERY + "requirement failed: millbeck does not support Update mode." + AFTER))
    assert type(found) is InvalidOption
    assert "each_batch.to_log(options)" in str(found)


@pytest.mark.parametrize(
    ("text", "short"),
    [
        (
            QUERY + "[PYTHON_EXCEPTION] An exception was thrown:\nTraceback (most recent call last):\n"
            '  File "p.py", line 3, in total\n    return a / b\nZeroDivisionError: division by zero\n SQLSTATE: 39000'
            + AFTER,
            "ZeroDivisionError: division by zero",
        ),
        (QUERY + "Something happened. SQLSTATE: 42000" + AFTER, "Something happened"),
        (
            QUERY + "Python worker failed to connect back." + AFTER,
            "Python worker failed to connect back. Spark waits seconds for a Python process to start: this machine is "
            "too busy, or PYSPARK_PYTHON is not a Python interpreter",
        ),
        (
            "[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number",
            "[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number. Spark's Java process "
            "did not start; see its output above",
        ),
        ("", "RuntimeError"),
        ("one\ntwo", "one"),
    ],
)
def test_what_is_not_ours_is_cut_to_the_line_that_matters(text: str, short: str) -> None:
    found = explained(RuntimeError(text))
    assert type(found) is PipelineError
    assert str(found) == short


@pytest.mark.parametrize(
    "said",
    [
        "There are [1] sources in the checkpoint offsets and now there are [2] sources requested",
        "[STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE] Provided value schema does not match",
        "[STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA] Streaming stateful operator name does not match",
    ],
)
def test_a_checkpoint_of_another_form_asks_for_a_new_one(said: str) -> None:
    found = explained(RuntimeError(QUERY + said + AFTER))
    assert type(found) is CheckpointMismatch
    assert str(found).startswith(f"{said}. The checkpoint was written by an incompatible version of this pipeline")


def test_a_line_is_a_line() -> None:
    assert len(str(explained(RuntimeError("x" * 100_000)))) == 1000
    assert type(explained(RuntimeError("millbeck.pipeline.errors.annotations: x"))) is PipelineError


def test_the_cause_is_the_first_thing_that_a_program_prints_when_it_ends(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "excepthook", lambda kind, error, traceback: print("usual", file=sys.stderr))
    install_exception_hook()
    install_exception_hook()
    failed = type("StreamingQueryException", (Exception,), {"__module__": "pyspark.errors.exceptions.captured"})
    for kind, text, said in (
        (failed, SOURCE + "millbeck.pipeline.errors.TopicMissing: there is no topic x\n" + AFTER, True),
        (failed, QUERY + "Something else" + AFTER, False),
        (ValueError, "millbeck.pipeline.errors.TopicMissing: there is no topic x", False),
    ):
        sys.excepthook(kind, kind(text), None)
        assert capsys.readouterr().err == ("TopicMissing: there is no topic x\n\n" if said else "") + "usual\n"
