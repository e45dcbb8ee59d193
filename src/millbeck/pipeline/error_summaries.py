"""Finds the line that explains an error raised by Spark.

Spark wraps the error of a source, sink or Python function into its own, with the query plan, the offsets and the stack
traces of two languages around the line that matters. `explained` finds that line and returns it as the original error;
other errors are shortened to Spark's first sentence, with advice where it is known.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final

from millbeck.pipeline import errors
from millbeck.pipeline.errors import BadRecord, CheckpointMismatch, InvalidOption, PipelineError

ExceptHook = Callable[[type[BaseException], BaseException, TracebackType | None], Any]

LENGTH_MAX: Final = 1000

_OURS: Final = re.compile(r"millbeck\.pipeline\.errors\.([A-Za-z]+): (.*)")
_RAISED: Final = re.compile(r"\[USER_RAISED_EXCEPTION\] (.*?)(?: SQLSTATE|$)", re.MULTILINE)
_LAST_OF_TRACEBACK: Final = re.compile(r"^([A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Iteration)): (.*)", re.MULTILINE)
_QUERY: Final = re.compile(r"^\[STREAM_FAILED\] Query \[.*?\] terminated with exception: ")
_PLACE: Final = re.compile(r"(\S+)-(\d+) at offset (\d+):")
_STATE: Final = re.compile(r" SQLSTATE: [0-9A-Z]{5}")
_TRACEBACK: Final = "Traceback (most recent call last)"

_NEW_CHECKPOINT: Final = (
    "The checkpoint was written by an incompatible version of this pipeline: use a new checkpoint "
    "(--checkpoint), or the old version"
)
_OTHER_FORM: Final = re.compile(
    r"STATE_STORE_(?:KEY|VALUE)_(?:SCHEMA|ROW)|STATE_STORE_COLUMN_FAMILY_SCHEMA|STATE_STORE_INVALID_(?:CONFIG_AFTER|VA)"
    r"|STREAMING_STATEFUL_OPERATOR_|STREAMING_CHECKPOINT_MISSING|STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY"
    r"|sources in the checkpoint offsets"
)
_OPTIONS: Final = (
    (
        re.compile("UNSUPPORTED_DATA_SOURCE_SAVE_MODE"),
        'a log can only be appended to: write with mode("append")',
    ),
    (
        re.compile("does not support Update mode"),
        "Spark has no update mode for sinks in Python: write each batch with "
        ".foreachBatch(millbeck.pipeline.each_batch.to_log(options)), which does what its Kafka sink does",
    ),
)
"""Patterns of Spark's messages for unsupported uses of the sink, and the advice for each."""
_ADVICE: Final = (
    (re.compile("JAVA_GATEWAY_EXITED"), "Spark's Java process did not start; see its output above"),
    (
        re.compile("failed to connect back|CANNOT_OPEN_SOCKET"),
        "Spark waits seconds for a Python process to start: this machine is too busy, or PYSPARK_PYTHON is not a "
        "Python interpreter",
    ),
    (re.compile("CONCURRENT_STREAM_LOG_UPDATE"), "Another query uses the same checkpoint"),
    (
        re.compile("Invalid Spark URL|Could not parse Master URL"),
        "--master is local[*], spark://host:port, yarn or k8s://…",
    ),
)


def explained(error: BaseException) -> PipelineError:
    """The error itself if it is a `PipelineError`, or one wrapped inside it, or a shortened form of it."""
    if isinstance(error, PipelineError):
        return error
    text = str(error)
    ours = _OURS.findall(text)
    if ours:
        name, message = ours[-1]
        kind = getattr(errors, name, None)
        is_ours = isinstance(kind, type) and issubclass(kind, PipelineError)
        return (kind if is_ours and kind is not None else PipelineError)(_clean(message))
    raised = _RAISED.search(text)
    if raised:
        return BadRecord(_clean(raised[1]) + _way_on(raised[1]))
    for pattern, summary in _OPTIONS:
        if pattern.search(text):
            return InvalidOption(summary)
    short = _short(error, text)
    return CheckpointMismatch(f"{short}. {_NEW_CHECKPOINT}") if _OTHER_FORM.search(text) else PipelineError(short)


def _way_on(text: str) -> str:
    """The remedy for a bad record whose position is in the message; empty for other messages, which contain their
    remedy.
    """
    place = _PLACE.match(text)
    if place is None:
        return ""
    skip = f"millbeck pipeline skip NAME {':'.join(place.groups())}"
    return f". Correct the program that writes it, set bad_records to a topic for such records, or leave it out: {skip}"


def _short(error: BaseException, text: str) -> str:
    if _TRACEBACK in text:
        last = _LAST_OF_TRACEBACK.findall(text)
        if last:
            return _advised(f"{last[-1][0]}: {_clean(last[-1][1])}", text)
    lines = [line for line in _QUERY.sub("", text.strip()).splitlines() if line.strip()]
    return _advised(_clean(lines[0]) if lines else type(error).__name__, text)


def _advised(short: str, text: str) -> str:
    for pattern, advice in _ADVICE:
        if pattern.search(text):
            return f"{short}. {advice}"
    return short


def _clean(text: str) -> str:
    return _STATE.sub("", text).replace(".;", ";").strip().rstrip(".")[:LENGTH_MAX]


def install_exception_hook() -> None:
    """Install an excepthook that prints the line of a wrapped `PipelineError` before Spark's traceback."""
    if not isinstance(sys.excepthook, _TellingFirst):
        sys.excepthook = _TellingFirst(sys.excepthook)


class _TellingFirst:
    def __init__(self, after: ExceptHook) -> None:
        self._after = after

    def __call__(self, kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        if kind.__module__.startswith("pyspark."):
            summary = explained(error)
            if type(summary) is not PipelineError:
                sys.stderr.write(f"{type(summary).__name__}: {summary}\n\n")
        self._after(kind, error, traceback)
