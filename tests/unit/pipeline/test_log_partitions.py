"""Rows are placed as clients place them, and shuffled by that."""

from __future__ import annotations

from typing import Any

import pytest

pa = pytest.importorskip("pyarrow", reason="the extra spark is not installed")
pytest.importorskip("pyspark", reason="the extra spark is not installed")

from pyspark.sql.types import StringType, StructType  # noqa: E402

from millbeck.pipeline.log_partitions import to_log_partitions  # noqa: E402
from millbeck.records.partitioning import partition_for_key  # noqa: E402


class FakeFrame:
    """Notes what is asked of it."""

    def __init__(self, columns: list[str]) -> None:
        self.columns = columns
        self.schema = StructType()
        for name in columns:
            self.schema.add(name, StringType())
        self.placed: Any = None
        self.shuffled: Any = None

    def mapInArrow(self, place: Any, schema: StructType) -> FakeFrame:  # noqa: N802
        batch = pa.RecordBatch.from_pydict({"key": ["a", None, "b", None], "value": ["1", "2", "3", "4"]})
        self.placed = [made.to_pydict() for made in place(iter([batch]))]
        assert schema.fieldNames() == [*self.columns, "partition"]
        return self

    def repartition(self, tasks: int, column: str) -> FakeFrame:
        self.shuffled = (tasks, column)
        return self


def test_rows_are_placed_and_shuffled() -> None:
    frame: Any = FakeFrame(["key", "value"])
    to_log_partitions(frame, partitions=3)
    expected = [partition_for_key(b"a", 3), 1, partition_for_key(b"b", 3), 0]
    assert [made["partition"] for made in frame.placed] == [expected]
    assert frame.shuffled == (3, "partition")


def test_a_column_that_is_there_is_taken() -> None:
    frame: Any = FakeFrame(["value", "partition"])
    to_log_partitions(frame, partitions=3, tasks=8)
    assert frame.placed is None
    assert frame.shuffled == (3, "partition")
