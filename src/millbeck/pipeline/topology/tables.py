"""Needs pyspark: tables (the last value of each key), represented as a stream of changes.

A row of a table's frame is the new value of its key; null means that the key is deleted. Operators that need the
previous value keep it in Spark's state (`keyed`, `stateful`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import BooleanType, StringType

from millbeck.pipeline.errors import TopologyError
from millbeck.pipeline.topology.keyed import (
    ForeignKeyResponse,
    ForeignKeySubscription,
    StreamTableJoin,
    TableChangesProcessor,
    TableTableJoin,
)
from millbeck.pipeline.topology.paths import Records, Select
from millbeck.pipeline.topology.records import (
    COLUMNS,
    HEADERS,
    ColumnRecord,
    JoinFunction,
    RecordFunction,
    ValueFunction,
    column,
    replacing,
)
from millbeck.pipeline.topology.serdes import Serde
from millbeck.pipeline.topology.stateful import JoinInput, run_keyed
from millbeck.pipeline.topology.streams import Stream, same_type

if TYPE_CHECKING:
    from millbeck.pipeline.topology.grouped import GroupedTable
    from millbeck.pipeline.topology.topology import Topology


class Table:
    """``name`` is the name of its store; ``is_kept`` says that the rows already come from that store."""

    def __init__(
        self, topology: Topology, rows: DataFrame | Records, *, name: str | None = None, is_kept: bool = False
    ) -> None:
        self.topology = topology
        records = rows if isinstance(rows, Records) else Records.of(rows)
        if any(HEADERS in path.frame.columns for path in records.paths):
            records = records.then(lambda frame: Select({name: sf.col(name) for name in COLUMNS}))
        self.records = records
        self.name = name
        self._is_kept = is_kept

    @property
    def frame(self) -> DataFrame:
        return self.records.frame

    def _with(self, rows: DataFrame | Records) -> Table:
        return Table(self.topology, rows)

    def _changing(self, value: Column) -> Table:
        return self._with(self.records.then(lambda frame: Select(replacing(frame, value=value))))

    def _side(self) -> JoinInput:
        return JoinInput(self.frame, key=sf.col("key"), value=sf.col("value"))

    # One row at a time

    def filter(self, predicate: Callable[[ColumnRecord], Column]) -> Table:
        """Rows that do not match are deleted, also those that matched before."""
        kept = sf.when(predicate(_row()), sf.col("value"))
        return self._changing(kept)

    def filter_not(self, predicate: Callable[[ColumnRecord], Column]) -> Table:
        return self.filter(lambda row: ~sf.coalesce(predicate(row), sf.lit(False)))

    def map_values(self, function: ValueFunction) -> Table:
        mapped = sf.when(sf.col("value").isNotNull(), column(function(sf.col("value")), "map_values"))
        return self._changing(mapped)

    def to_stream(self) -> Stream:
        """The changes as records; a null value means that the key is deleted."""
        return Stream(self.topology, self.records)

    def to(self, topic: str, *, key: Serde | None = None, value: Serde | None = None) -> None:
        self.topology.write(self.records, [topic], None, key=key, value=value)

    def publish(self, *, key: Serde | None = None, value: Serde | None = None) -> Table:
        """Also write the changes of this table's store, which must have a name, to the topic
        ``{app}-{store}-changelog``.

        The topic is compacted, so it holds the last value of each key; a deleted key leaves a tombstone.
        """
        if self.name is None:
            raise TopologyError("only a store with a name can be published: give it one with store=")
        records = self.records
        if not self._is_kept:
            # Via the state store, one task has all changes of a key, so they are written in order.
            records = Records.of(_joined(self.changes("to be published"), sf.col("after")), self.records)
        self.topology.publish(records, self.name, key=key, value=value)
        return self

    # Joins

    def joined_by(self, stream: Stream, joiner: JoinFunction, how: str, options: Mapping[str, Any]) -> Stream:
        self.topology.needs_batches("join of a stream with a table", "topology.global_table")
        if options:
            raise TopologyError(f"a join of a stream with a table is by key and takes no {', '.join(options)}")
        sides = [self._side(), JoinInput(stream.frame, key=sf.col("key"), value=sf.col("value"))]
        same_type(sides[1].key_type, sides[0].key_type, "a stream with a table")
        rows = run_keyed(
            sides,
            StreamTableJoin(how != "inner"),
            slots={"value": sides[0].value_type},
            outputs={"left": sides[1].value_type, "right": sides[0].value_type},
        )
        self.topology.outline.shuffled("join of a stream with a table, by key")
        self.topology.outline.store(
            self.name, "table", "the last value of each key, for a join", bytes_per_key=sides[0].bytes
        )
        joined = _joined(rows, column(joiner(sf.col("left"), sf.col("right")), "join"))
        return Stream(self.topology, Records.of(joined, stream.records))

    def join(self, other: Table, joiner: JoinFunction, *, foreign_key: ValueFunction | None = None) -> Table:
        """Join by key, or with ``foreign_key``: a function of this table's value that returns the key of the other
        table.
        """
        return self._join(other, joiner, needs_left=True, needs_right=True, foreign_key=foreign_key)

    def left_join(self, other: Table, joiner: JoinFunction, *, foreign_key: ValueFunction | None = None) -> Table:
        return self._join(other, joiner, needs_left=True, needs_right=False, foreign_key=foreign_key)

    def outer_join(self, other: Table, joiner: JoinFunction) -> Table:
        return self._join(other, joiner, needs_left=False, needs_right=False, foreign_key=None)

    def _join(
        self,
        other: Table,
        joiner: JoinFunction,
        *,
        needs_left: bool,
        needs_right: bool,
        foreign_key: ValueFunction | None,
    ) -> Table:
        self.topology.needs_batches("join of two tables")
        if foreign_key is not None:
            rows = self._foreign_rows(other, foreign_key, is_left=not needs_right)
        else:
            sides = [self._side(), other._side()]
            same_type(sides[0].key_type, sides[1].key_type, "two tables")
            kinds = {"left": sides[0].value_type, "right": sides[1].value_type}
            rows = run_keyed(sides, TableTableJoin(needs_left, needs_right), slots=kinds, outputs={**kinds})
            self.topology.outline.shuffled("join of two tables, by key")
            self.topology.outline.store(
                None,
                "table-join",
                "the last value of each key of both tables",
                bytes_per_key=sum(side.bytes for side in sides),
            )
        joined = column(joiner(sf.col("left"), sf.col("right")), "join")
        is_row = sf.col("left").isNotNull() | sf.col("right").isNotNull()
        return self._with(Records.of(_joined(rows, sf.when(is_row, joined)), self.records, other.records))

    def _foreign_rows(self, other: Table, foreign_key: ValueFunction, *, is_left: bool) -> DataFrame:
        """Columns key, left, right: each row of this table with the row of the other that it refers to.

        Each row subscribes at the key it refers to, and responses are sent back to the row: a row whose foreign key
        changes within a batch gets responses from both keys, in any order, and uses only those for its current version.
        """
        changes = self.changes("the previous foreign key of each row").select(
            "*",
            _target(foreign_key, "before").alias("old"),
            _target(foreign_key, "after").alias("new"),
            sf.concat_ws("-", sf.col("order")["partition"], sf.col("order")["offset"], sf.col("order")["step"]).alias(
                "version"
            ),
        )
        leaving = changes.where(sf.col("old").isNotNull() & ~sf.col("old").eqNullSafe(sf.col("new")))
        pointing = changes.where(sf.col("new").isNotNull())
        asking = _asking(leaving, "old", sf.lit(None).cast("string")).unionByName(
            _asking(pointing, "new", sf.col("version"))
        )
        left = JoinInput(asking, key=sf.col("target"), value=sf.col("row"))
        right = other._side()
        same_type(left.key_type, right.key_type, "two tables by a foreign key")
        row = self._side()
        answers = run_keyed(
            [left, right],
            ForeignKeySubscription(),
            slots={"value": right.value_type},
            outputs={"left_key": row.key_type, "version": StringType(), "right": right.value_type},
            entries=(row.key_type, StringType()),
        )
        settled = run_keyed(
            [
                JoinInput(
                    changes,
                    key=sf.col("key"),
                    value=sf.struct(
                        sf.col("after").alias("value"), "version", sf.col("new").isNotNull().alias("points")
                    ),
                ),
                JoinInput(
                    answers,
                    key=sf.col("left_key"),
                    value=sf.struct("version", sf.col("right").alias("value")),
                ),
            ],
            ForeignKeyResponse(is_left),
            slots={"value": row.value_type, "version": StringType(), "is_row": BooleanType()},
            outputs={"left": row.value_type, "right": right.value_type},
        )
        self.topology.outline.shuffled("join of two tables: rows subscribe at their foreign key")
        self.topology.outline.store(
            None,
            "foreign-key",
            "the rows that refer to each key, and its last value",
            bytes_per_key=row.bytes + right.bytes,
        )
        self.topology.outline.shuffled("join of two tables: responses are sent back to the rows")
        self.topology.outline.store(None, "foreign-key-answers", "the last value of each row", bytes_per_key=row.bytes)
        return settled

    def changes(self, reason: str) -> DataFrame:
        """Columns key, before, after: the change made by each row of the frame."""
        self.topology.needs_batches(f"a table whose changes are {reason}")
        side = self._side()
        self.topology.outline.shuffled(f"changes of a table, by key: {reason}")
        self.topology.outline.store(self.name, "table", "the last value of each key", bytes_per_key=side.bytes)
        return run_keyed(
            [side],
            TableChangesProcessor(),
            slots={"value": side.value_type},
            outputs={"before": side.value_type, "after": side.value_type},
        )

    def group_by(self, function: RecordFunction) -> GroupedTable:
        """Group rows by another key, for aggregates that follow every change."""
        return self.topology.grouped_table(self, function)


def _row() -> ColumnRecord:
    return ColumnRecord(sf.col("key"), sf.col("value"), sf.col("timestamp"), sf.lit(None))


def _target(foreign_key: ValueFunction, side: str) -> Column:
    """The foreign key of the row; null if there is no row, whatever the function returns for null."""
    return sf.when(sf.col(side).isNotNull(), column(foreign_key(sf.col(side)), "foreign_key"))


def _asking(changes: DataFrame, target: str, version: Column) -> DataFrame:
    return changes.select(
        sf.col(target).alias("target"),
        sf.struct("key", version.alias("version")).alias("row"),
        "timestamp",
        "order",
    )


def _joined(rows: DataFrame, value: Column) -> DataFrame:
    return rows.select("key", value.alias("value"), "timestamp", "order")
