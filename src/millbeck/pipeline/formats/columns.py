"""Needs pyarrow: decode whole batches of records to Arrow columns and encode them.

A record that cannot be decoded becomes null, with a description of the problem; the caller decides how to handle it. A
value that cannot be encoded fails the batch: it is an error of the pipeline itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from millbeck.client.schemas.errors import BadRecord

if TYPE_CHECKING:
    from pyspark.sql.types import DataType


class ColumnTypes(NamedTuple):
    """The types of one schema: Spark's type, Arrow's type with the schema's own time units, so that numbers are read as
    times without conversion, and Arrow's type of the plain numbers, for encoding.
    """

    spark: DataType
    timed: pa.DataType
    plain: pa.DataType


VALUE: Final = "value"
PROBLEM: Final = "problem"


def read_column(
    records: Any, read: Callable[[bytes], Any], timed: pa.DataType, wanted: pa.DataType, before: str = ""
) -> Any:
    """Decode a column of bytes to a struct column of ``value``, of type ``wanted``, and ``problem``; for null records
    both are null.

    ``timed`` is the type of the values that ``read`` returns; it differs from ``wanted`` only in units of time.
    ``before`` is the prefix of every problem.
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
    """Convert values one by one to find the one that does not fit its column, such as a time after the year 290,000."""
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
    """Encode a column to bytes; ``timed`` and ``plain`` give the units in which times are encoded, as plain numbers."""
    if timed is not None and plain is not None and timed != plain:
        values = values.cast(timed, safe=False).cast(plain)
    written = [None if value is None else write(value) for value in values.to_pylist(maps_as_pydicts="strict")]
    return pa.array(written, pa.binary())
