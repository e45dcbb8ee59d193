"""Needs pyspark: paths of records from a frame through stateless operators; several paths can share one frame.

A stream is one path, or several after a merge. A path has a root (a decoded source or the result of a stateful
operator) and the steps that follow it; each step processes one record. If several paths with the same root were read
separately, Spark would read its source once per path. Instead the paths run side by side in one row, each in its own
column (a lane) that is null where the path has no record, and the columns are exploded at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Protocol

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

_BASE: Final = "base"
_LANE: Final = "lane"


class Step(Protocol):
    """A step: processes one record, whose columns are given by name."""

    def alone(self, frame: DataFrame) -> DataFrame:
        """Apply the step to a frame whose rows are the records."""

    def beside(self, wide: DataFrame, lane: str) -> DataFrame:
        """Apply the step to the records in the column ``lane``; all other columns are unchanged."""


@dataclass(frozen=True, slots=True, eq=False)
class Keep:
    """Keeps the records for which the condition is true."""

    condition: Column

    def alone(self, frame: DataFrame) -> DataFrame:
        return frame.where(self.condition)

    def beside(self, wide: DataFrame, lane: str) -> DataFrame:
        kept = sf.when(sf.col(lane).isNotNull() & self.condition, sf.col(lane))
        return _opened(wide, lane).select(*_without(wide, lane), kept.alias(lane))


@dataclass(frozen=True, slots=True, eq=False)
class Select:
    """Replaces each record by one with these columns; ``takes_null`` says that their Python functions accept null."""

    columns: Mapping[str, Column]
    takes_null: bool = False

    def alone(self, frame: DataFrame) -> DataFrame:
        return frame.select(*self._named())

    def beside(self, wide: DataFrame, lane: str) -> DataFrame:
        made = sf.when(sf.col(lane).isNotNull(), sf.struct(*self._named()))
        return _opened(wide, lane).select(*_without(wide, lane), made.alias(lane))

    def _named(self) -> list[Column]:
        return [column.alias(name) for name, column in self.columns.items()]


@dataclass(frozen=True, slots=True, eq=False)
class Explode:
    """Replaces each record by one per element of an array; ``columns`` may refer to ``made``, the element, and
    ``position``."""

    array: Column
    columns: Mapping[str, Column]

    def alone(self, frame: DataFrame) -> DataFrame:
        rows = frame.select("*", sf.posexplode(self.array).alias("position", "made"))
        return rows.select(*[column.alias(name) for name, column in self.columns.items()])

    def beside(self, wide: DataFrame, lane: str) -> DataFrame:
        """The records of the other lanes stay in the row of the first element."""
        others = _without(wide, lane)
        opened = _opened(wide, lane)
        array = sf.when(sf.col(lane).isNotNull(), self.array)
        rows = opened.select(*opened.columns, sf.posexplode_outer(array).alias("position", "made"))
        is_first = sf.col("position").isNull() | (sf.col("position") == 0)
        made = sf.struct(*[column.alias(name) for name, column in self.columns.items()])
        return rows.select(
            *[sf.when(is_first, sf.col(name)).alias(name) for name in others],
            sf.when(sf.col("position").isNotNull(), made).alias(lane),
        )


@dataclass(frozen=True, slots=True, eq=False)
class LookUp:
    """Joins each record with the row of a small table that has the key ``wanted``; ``rows`` has the columns found_key,
    with a key at most once, and found. ``columns`` may refer to ``found``, which is null for a record without a row;
    with ``is_left`` it stays, otherwise it is dropped.
    """

    rows: DataFrame
    wanted: Column
    columns: Mapping[str, Column]
    is_left: bool

    def alone(self, frame: DataFrame) -> DataFrame:
        how = "left_outer" if self.is_left else "inner"
        joined = frame.withColumn("wanted", self.wanted).join(sf.broadcast(self.rows), self._is_same(), how)
        return joined.select(*self._named())

    def beside(self, wide: DataFrame, lane: str) -> DataFrame:
        opened = _opened(wide, lane).withColumn("wanted", self.wanted)
        joined = opened.join(sf.broadcast(self.rows), self._is_same(), "left_outer")
        is_kept = sf.col(lane).isNotNull()
        if not self.is_left:
            is_kept &= sf.col("found_key").isNotNull()
        return joined.select(*_without(wide, lane), sf.when(is_kept, sf.struct(*self._named())).alias(lane))

    def _is_same(self) -> Column:
        return sf.col("wanted") == sf.col("found_key")

    def _named(self) -> list[Column]:
        return [column.alias(name) for name, column in self.columns.items()]


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """Calls a Python function with the key and value of each record."""

    action: Callable[[Any, Any], object]

    def alone(self, frame: DataFrame) -> DataFrame:
        action = self.action

        def look(batches: Any) -> Any:
            for batch in batches:
                for row in batch.select(["key", "value"]).to_pylist():
                    action(row["key"], row["value"])
                yield batch

        return frame.mapInArrow(look, frame.schema)

    def beside(self, wide: DataFrame, lane: str) -> DataFrame:
        action = self.action

        def look(batches: Any) -> Any:
            for batch in batches:
                for record in batch.column(lane).to_pylist():
                    if record is not None:
                        action(record["key"], record["value"])
                yield batch

        return wide.mapInArrow(look, wide.schema)


@dataclass(frozen=True, eq=False)
class Path:
    """A path; ``frames`` are the root and the rows after each of the ``steps``. ``markers`` are paths of the marker
    rows of its sources (`watermarks`)."""

    frames: tuple[DataFrame, ...]
    steps: tuple[Step, ...] = ()
    markers: tuple[Path, ...] = ()

    @property
    def root(self) -> DataFrame:
        return self.frames[0]

    @property
    def frame(self) -> DataFrame:
        return self.frames[-1]

    def then(self, step: Step) -> Path:
        """Add a step; it is evaluated at once, so that an error is raised in the user's line."""
        return Path((*self.frames, step.alone(self.frame)), (*self.steps, step), self.markers)

    def runs_python(self, begin: int) -> bool:
        """Whether a step from this one on calls a user's Python function, which must not see missing records.

        With Spark Connect this is unknown and assumed to be true.
        """
        made = zip(self.steps[begin:], self.frames[begin + 1 :], strict=True)
        return any(_runs_python(step, frame) for step, frame in made)


class Records:
    """The paths of one stream or table."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = tuple(paths)

    @classmethod
    def of(cls, frame: DataFrame, *inputs: Records) -> Records:
        """The rows of a frame; if they are the results of an operator, ``inputs`` are those of the operator."""
        return cls([Path((frame,), (), _distinct(marker for records in inputs for marker in records.markers))])

    @property
    def markers(self) -> tuple[Path, ...]:
        return _distinct(marker for path in self.paths for marker in path.markers)

    def then(self, step: Callable[[DataFrame], Step]) -> Records:
        """Add a step to all paths; ``step`` gets the current rows, whose columns it may use."""
        return Records([path.then(step(path.frame)) for path in self.paths])

    @cached_property
    def frame(self) -> DataFrame:
        return united(self.paths)


def _distinct(paths: Iterable[Path]) -> tuple[Path, ...]:
    return tuple({id(path): path for path in paths}.values())


def united(paths: Iterable[Path]) -> DataFrame:
    """All records of the paths; each root is read once."""
    by_root: dict[int, list[Path]] = {}
    for path in paths:
        by_root.setdefault(id(path.root), []).append(path)
    return _union([frame for group in by_root.values() for frame in _of_one_root(group)])


def apart(paths: Iterable[Path]) -> DataFrame:
    """The same as `united`, but with the root read once per path, as in checkpoints of earlier versions."""
    return _union([path.frame for path in paths])


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    rows = frames[0]
    for more in frames[1:]:
        rows = rows.unionByName(more, allowMissingColumns=True)
    return rows


def _of_one_root(paths: list[Path]) -> list[DataFrame]:
    begin = _common_steps(paths)
    fitting = [path for path in paths if not path.runs_python(begin)]
    if len(fitting) < 2:
        return [path.frame for path in paths]
    return [_side_by_side(fitting, begin), *[path.frame for path in paths if path not in fitting]]


def _common_steps(paths: Sequence[Path]) -> int:
    count = 0
    for steps in zip(*[path.steps for path in paths], strict=False):
        if any(step is not steps[0] for step in steps):
            break
        count += 1
    return count


def _side_by_side(paths: Sequence[Path], begin: int) -> DataFrame:
    common = paths[0].frames[begin]
    wide = common.select(sf.struct(*common.columns).alias(_BASE))
    lanes = [f"{_LANE}_{number}" for number in range(len(paths))]
    for lane, path in zip(lanes, paths, strict=True):
        wide = wide.select("*", sf.col(_BASE).alias(lane))
        for step in path.steps[begin:]:
            wide = step.beside(wide, lane)
    return wide.select(sf.inline(sf.array_compact(sf.array(*lanes))))


def _opened(wide: DataFrame, lane: str) -> DataFrame:
    """The rows with the record's columns beside the lanes."""
    return wide.select("*", f"{lane}.*")


def _without(wide: DataFrame, lane: str) -> list[str]:
    return [name for name in wide.columns if name != lane]


def _runs_python(step: Step, frame: DataFrame) -> bool:
    if isinstance(step, Look) or (isinstance(step, Select) and step.takes_null):
        return False
    planned: Any = getattr(frame, "_jdf", None)
    if planned is None:
        return True
    jvm: Any = frame.sparkSession._jvm
    pattern = jvm.org.apache.spark.sql.catalyst.trees.TreePattern.PYTHON_UDF()
    node = planned.queryExecution().analyzed()
    for _ in range(3 if isinstance(step, Explode | LookUp) else 1):
        expressions = node.expressions()
        if any(expressions.apply(number).containsPattern(pattern) for number in range(expressions.size())):
            return True
        node = node.children().head()
    return False
