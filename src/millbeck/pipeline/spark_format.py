"""Needs pyspark: what Spark knows as ``format("millbeck")``.

spark.dataSource.register(MillbeckFormat)
"""

from __future__ import annotations

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from millbeck.pipeline.source import BatchReader, StreamReader, source_schema
from millbeck.pipeline.source_options import includes_headers, parse_source_options


class MillbeckFormat(DataSource):
    @classmethod
    def name(cls) -> str:
        return "millbeck"

    def schema(self) -> StructType:
        return source_schema(includes_headers(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:
        return BatchReader(parse_source_options(self.options, is_streaming=False))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        return StreamReader(parse_source_options(self.options, is_streaming=True))
