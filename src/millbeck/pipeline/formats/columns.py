"""Needs pyarrow: whole batches of records, from bytes to Arrow columns and back.

What cannot be read becomes null with a word on why, record by record, and what becomes of it somebody else decides.
What cannot be written ends the batch: it is the pipeline that made it, not somebody far away.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from millbeck.pipeline.errors import BadRecord

if TYPE_CHECKING:
    from pyspark.sql.types import DataType


class Types(NamedTuple):
    """What stands for one schema: Spark's type, Arrow's with the schema's own units, so that numbers are taken for
    times as they are, and Arrow's of the plain numbers, for the way back.
    """

    spark: DataType
    timed: pa.DataType
    plain: pa.DataType


VALUE: Final = "value"
PROBLEM: Final = "problem"


def read_column(
    records: Any, read: Callable[[bytes], Any], timed: pa.DataType, wanted: pa.DataType, before: str = ""
) -> Any:
    """A struct column of ``value``, of the type ``wanted``, and ``problem``; null records have neither.

    ``timed`` is the type that what ``read`` returns has; it differs from ``wanted`` in units of time alone. ``before``
    begins every problem.
    """
    values: list[Any] = []
    problems: list[str | None] = []
    for record in records.to_pylist():
        value, problem = None, None
        if record is not None:
            try:
                value = read(record)
            except BadRecord as error:
                problem = str(error)
        values.append(value)
        problems.append(problem)
    try:
        column = _column(values, timed, wanted)
    except (pa.ArrowException, OverflowError, ValueError, TypeError):
        column = _one_by_one(values, problems, timed, wanted)
    said = pa.array([None if problem is None else before + problem for problem in problems], pa.string())
    return pa.StructArray.from_arrays([column, said], names=[VALUE, PROBLEM])


def _column(values: list[Any], timed: pa.DataType, wanted: pa.DataType) -> Any:
    column = pa.array(values, timed)
    return column if timed == wanted else column.cast(wanted)


def _one_by_one(values: list[Any], problems: list[str | None], timed: pa.DataType, wanted: pa.DataType) -> Any:
    """Some value has no place in its column, such as a time after the year 290,000: which?"""
    columns = []
    for place, value in enumerate(values):
        try:
            columns.append(_column([value], timed, wanted))
        except (pa.ArrowException, OverflowError, ValueError, TypeError) as error:
            problems[place] = f"{type(error).__name__}: {error}"[:200]
            columns.append(pa.nulls(1, wanted))
    return pa.concat_arrays(columns)


def write_column(
    values: Any, write: Callable[[Any], bytes], timed: pa.DataType | None = None, plain: pa.DataType | None = None
) -> Any:
    """A column of bytes; ``timed`` and ``plain`` say in which units times are written, as plain numbers."""
    if timed is not None and plain is not None and timed != plain:
        values = values.cast(timed, safe=False).cast(plain)
    written = [None if value is None else write(value) for value in values.to_pylist(maps_as_pydicts="strict")]
    return pa.array(written, pa.binary())
