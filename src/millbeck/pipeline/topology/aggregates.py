"""Needs pyspark: take a column of Spark's aggregates apart, so that its value can be told before its window closes.

``functions.sum(v.cents) / functions.count(v)`` becomes two inputs that Spark computes for each record, two partial
results (`partials`) that are kept in state, and the quotient, which Spark computes from the partial results.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import (
    ArrayType,
    AtomicType,
    DataType,
    DecimalType,
    DoubleType,
    LongType,
    StructField,
    StructType,
    _parse_datatype_json_value,
)

from millbeck.pipeline.errors import TopologyError
from millbeck.pipeline.topology.partials import (
    FIRST,
    FIRST_UNLESS_NULL,
    LAST,
    LAST_UNLESS_NULL,
    PARTIALS,
    PartialFunction,
    PartialResults,
)

_AGGREGATE: Final = "AggregateExpression"


class _Function(NamedTuple):
    """One aggregate: its inputs, what is kept of them, and its value given a column of what is kept."""

    inputs: list[Column]
    partial: PartialFunction
    kind: DataType
    value: Callable[[Column], Column]


class RunningAggregate:
    """A column of aggregates over ``frame``, grouped by its column ``key``.

    ``inputs`` is a struct column with the fields i0, i1 and so on, which each record has; ``kind`` is the type of the
    partial results. Raises `TopologyError` for aggregates that have no running value.
    """

    def __init__(self, frame: DataFrame, described: Column, what: str) -> None:
        self._jvm: Any = frame.sparkSession._jvm
        planned: Any = frame.groupBy("key").agg(described.alias("value"))._jdf
        self._expression = planned.queryExecution().analyzed().aggregateExpressions().apply(1)
        self._functions: list[_Function] = []
        self._found(self._expression, what)
        inputs = [each for function in self._functions for each in function.inputs]
        self.inputs = sf.struct(*[each.alias(f"i{number}") for number, each in enumerate(inputs or [sf.lit(0)])])
        self.kind = StructType([StructField(f"p{n}", function.kind) for n, function in enumerate(self._functions)])
        self.partials = PartialResults(
            tuple(function.partial for function in self._functions),
            tuple(len(function.inputs) for function in self._functions),
        )

    def values_of(self, frame: DataFrame, partials: str) -> Column:
        """The value, from the partial results in the struct column ``partials`` with the fields p0, p1 and so on; the
        frame also has the column ``key``.
        """
        columns = [function.value(sf.col(partials)[f"p{number}"]) for number, function in enumerate(self._functions)]
        planned: Any = frame.select(sf.col("key"), *[each.alias(f"v{n}") for n, each in enumerate(columns)])._jdf
        made = planned.queryExecution().analyzed().projectList()
        key, *values = [made.apply(number) for number in range(made.size())]
        waiting = iter([value.child() if _kind(value) == "Alias" else value for value in values])
        return self._column(self._replaced(self._expression, key, waiting))

    def _found(self, node: Any, what: str) -> None:
        if _kind(node) == _AGGREGATE:
            inputs = [(self._column(child), _type(child)) for child in _children(node.aggregateFunction())]
            self._functions.append(_function(node, inputs, what))
            return
        for child in _children(node):
            self._found(child, what)

    def _replaced(self, node: Any, key: Any, values: Any) -> Any:
        """The expression with the aggregates, in the order of `_found`, replaced by their values."""
        if _kind(node) == _AGGREGATE:
            return next(values)
        if _kind(node) == "AttributeReference":
            return key
        children = _children(node)
        if not children:
            return node
        listed = self._jvm.java.util.ArrayList()
        for child in children:
            listed.add(self._replaced(child, key, values))
        return node.withNewChildren(self._jvm.scala.jdk.javaapi.CollectionConverters.asScala(listed).toSeq())

    def _column(self, expression: Any) -> Column:
        from pyspark.sql.classic.column import Column as ClassicColumn

        return ClassicColumn(self._jvm.org.apache.spark.sql.classic.ExpressionUtils.column(expression))


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def _children(node: Any) -> list[Any]:
    children = node.children()
    return [children.apply(number) for number in range(children.size())]


def _type(expression: Any) -> DataType:
    return _parse_datatype_json_value(json.loads(expression.dataType().json()))


def _function(node: Any, inputs: list[tuple[Column, DataType]], what: str) -> _Function:
    function = node.aggregateFunction()
    name = _ALIASES.get(str(function.prettyName()), str(function.prettyName()))
    if node.isDistinct() or node.filter().isDefined():
        raise _refused(what, f"{name} with DISTINCT or FILTER")
    kind = _type(function)
    columns = [column for column, _ in inputs]
    if name in ("first", "last"):
        with_nulls, without = (FIRST, FIRST_UNLESS_NULL) if name == "first" else (LAST, LAST_UNLESS_NULL)
        partial = without if function.ignoreNulls() else with_nulls
        return _Function(columns[:1], partial, _struct(value=kind), lambda held: held["value"])
    found = PARTIALS.get(name)
    if found is None:
        raise _refused(what, name)
    if name in ("min", "max", "min_by", "max_by"):
        ranked = inputs[-1][1]
        if not isinstance(ranked, AtomicType):
            raise _refused(what, f"{name} of {ranked.simpleString()}")
        if name.endswith("_by"):
            return _Function(columns, found, _struct(value=kind, rank=ranked), lambda held: held["value"])
    if name in ("count", "count_if"):
        return _Function(columns, found, LongType(), lambda held: sf.coalesce(held, sf.lit(0).cast("bigint")))
    if name == "avg":
        taken = inputs[0][1]
        summed = DecimalType(38, taken.scale) if isinstance(taken, DecimalType) else DoubleType()
        held_type = _struct(sum=summed, count=LongType())
        return _Function([columns[0].cast(summed)], found, held_type, lambda held: _quotient(held).cast(kind))
    if name in ("collect_list", "collect_set"):
        # The expression around it may need an array without null, and what comes from the state is declared to have it.
        assert isinstance(kind, ArrayType)
        empty = sf.array().cast(ArrayType(kind.elementType))
        return _Function(columns[:1], found, kind, lambda held: sf.array_compact(sf.coalesce(held, empty)))
    if found is PARTIALS["var_pop"]:
        held_type = _struct(count=LongType(), mean=DoubleType(), squares=DoubleType())
        return _Function([columns[0].cast("double")], found, held_type, _of_moments(name))
    return _Function(columns[:1], found, kind, lambda held: held)


_ALIASES: Final = {
    "mean": "avg",
    "any_value": "first",
    "first_value": "first",
    "last_value": "last",
    "array_agg": "collect_list",
    "every": "bool_and",
    "any": "bool_or",
    "some": "bool_or",
    "variance": "var_samp",
    "stddev": "stddev_samp",
    "std": "stddev_samp",
}


def _struct(**kinds: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in kinds.items()])


def _quotient(held: Column) -> Column:
    return held["sum"] / held["count"]


def _of_moments(name: str) -> Callable[[Column], Column]:
    is_population = name.endswith("_pop")

    def value(held: Column) -> Column:
        degrees = held["count"] if is_population else held["count"] - 1
        variance = sf.when(degrees > 0, held["squares"] / degrees)
        return sf.sqrt(variance) if name.startswith("std") else variance

    return value


def _refused(what: str, name: str) -> TopologyError:
    return TopologyError(
        f'{what}: {name} has no running result; use emit="final", or one of {", ".join(PARTIALS)}, first, last'
    )
