"""Adds the place in the user's file to errors of a topology: the file, the line and the operator.

Spark's own errors only name the column, and a topology often uses the same name many times.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final

from millbeck.pipeline.error_summaries import explained
from millbeck.pipeline.errors import PipelineError, TopologyError

_OPERATORS: Final = "millbeck.pipeline.topology."


@contextmanager
def placed(file: Path) -> Iterator[None]:
    """Prefix errors of Spark and of the topology that are raised in the block with their place in the file."""
    try:
        yield
    except Exception as error:
        is_ours = isinstance(error, PipelineError)
        if not is_ours and not type(error).__module__.startswith(("pyspark.", "py4j.")):
            raise
        place = _place(error.__traceback__, file)
        if place is None:
            raise
        summary = explained(error)
        kind = type(summary) if is_ours else TopologyError
        raise kind(f"{place}: {summary}") from error


def _place(traceback: TracebackType | None, file: Path) -> str | None:
    """The last line of the file in the traceback, and the operator that it called, if it called one."""
    found: str | None = None
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if Path(code.co_filename) == file:
            found = f"{file}:{traceback.tb_lineno}"
            callee = traceback.tb_next
            if callee is not None and str(callee.tb_frame.f_globals.get("__name__", "")).startswith(_OPERATORS):
                found += f" ({callee.tb_frame.f_code.co_name})"
        traceback = traceback.tb_next
    return found
