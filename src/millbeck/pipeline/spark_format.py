"""Needs pyspark: the data source registered as ``format("millbeck")``.

    spark.dataSource.register(MillbeckFormat)

Spark starts processes that import this module for every query and, with a sink, for every batch: so source and sink are
imported only when they are used.
"""

from __future__ import annotations

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from millbeck.pipeline.errors import InvalidOption
from millbeck.pipeline.short_errors import with_short_errors


class MillbeckFormat(DataSource):
    @classmethod
    def name(cls) -> str:
        return "millbeck"

    def schema(self) -> StructType:
        from millbeck.pipeline.source_options import includes_headers
        from millbeck.pipeline.source_schema import source_schema

        return source_schema(includes_headers(self.options))

    @with_short_errors
    def reader(self, schema: StructType) -> DataSourceReader:
        from millbeck.pipeline.source import BatchReader
        from millbeck.pipeline.source_options import parse_source_options

        return BatchReader(parse_source_options(self.options, is_streaming=False))

    @with_short_errors
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        from millbeck.pipeline.source import StreamReader
        from millbeck.pipeline.source_options import parse_source_options

        return StreamReader(parse_source_options(self.options, is_streaming=True))

    @with_short_errors
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from millbeck.pipeline.sink import BatchWriter
        from millbeck.pipeline.sink_options import parse_sink_options

        if overwrite:
            raise InvalidOption('a log can only be appended to: write with mode("append")')
        _check_columns(schema, parse_sink_options(self.options).topic)
        return BatchWriter(parse_sink_options(self.options))

    @with_short_errors
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        from millbeck.pipeline.sink import StreamWriter
        from millbeck.pipeline.sink_options import parse_sink_options

        _check_columns(schema, parse_sink_options(self.options).topic)
        return StreamWriter(parse_sink_options(self.options))


_COLUMNS = {
    "key": ("binary", "string"),
    "value": ("binary", "string"),
    "topic": ("string",),
    "partition": ("int",),
    "headers": ("array<struct<key:string,value:binary>>",),
}


def _check_columns(schema: StructType, topic: str | None) -> None:
    """Check the columns when the query starts instead of in a task; raises `InvalidOption`."""
    kinds = {found.name: found.dataType.simpleString() for found in schema.fields}
    if "value" not in kinds:
        raise InvalidOption(f'rows need a column "value", binary or string; there are {", ".join(kinds) or "none"}')
    if topic is None and "topic" not in kinds:
        raise InvalidOption('rows need a topic: set the option topic, or add a column "topic"')
    for name, wanted in _COLUMNS.items():
        if name in kinds and kinds[name] not in (*wanted, "void"):
            raise InvalidOption(f'the column "{name}" must be {" or ".join(wanted)}, not {kinds[name]}: cast it first')
