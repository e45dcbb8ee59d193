"""The formats of files: what a record becomes, and the bytes of a file, which are the same whenever it is written."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Protocol

from millbeck.kernel.extras import needs_extra
from millbeck.pipeline.connect.connectors.objects.settings import simple_name
from millbeck.pipeline.connect.converters.avro_mapping import (
    avro_of,
    schema_of_avro,
    sync_marker,
    value_of_avro,
    value_to_avro,
    without_logical_types,
)
from millbeck.pipeline.connect.converters.json_converter import JsonConverter
from millbeck.pipeline.connect.errors import ConnectError, InvalidValue
from millbeck.pipeline.connect.model.record import SinkRecord
from millbeck.pipeline.connect.model.schema import BYTES_SCHEMA, Schema
from millbeck.pipeline.connect.model.struct import Struct

_ROWS_AT_ONCE: Final = 5000


class FileWriter(Protocol):
    """One file that grows."""

    def add(self, record: SinkRecord) -> None:
        """Raises `InvalidValue` for a record that the format cannot hold; the file is as before then."""

    def content(self) -> bytes: ...


class FileFormat(Protocol):
    """Made from the connector's parsed settings."""

    extension: str

    def writer(self, schema: Schema | None, identity: str) -> FileWriter:
        """A new file of records with this schema. ``identity`` is the file's name. Raises `InvalidValue`."""

    def records(self, content: bytes) -> Iterator[tuple[Schema | None, Any]]:
        """Schema and value of each record of a file."""


class _Lines:
    """Files of records one after another."""

    def __init__(self, form: Any, *, is_compressed: bool, separator: bytes) -> None:
        self._form = form
        self._is_compressed = is_compressed
        self._separator = separator
        self._parts: list[bytes] = []

    def add(self, record: SinkRecord) -> None:
        self._parts += (self._form(record), self._separator)

    def content(self) -> bytes:
        content = b"".join(self._parts)
        # Without a time and a name, the same content is the same file.
        return gzip.compress(content, 6, mtime=0) if self._is_compressed else content


def _decompressed(content: bytes) -> bytes:
    return gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content


class JsonFormat:
    """A line of JSON for each record."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._is_compressed = values.get("s3.compression.type") == "gzip"
        self.extension = ".json.gz" if self._is_compressed else ".json"
        decimals = values.get("json.decimal.format", "BASE64")
        self._converter = JsonConverter({"schemas.enable": "false", "decimal.format": decimals})

    def writer(self, schema: Schema | None, identity: str) -> FileWriter:
        def line(record: SinkRecord) -> bytes:
            found = self._converter.to_bytes(record.topic, record.value_schema, record.value)
            return b"null" if found is None else found

        return _Lines(line, is_compressed=self._is_compressed, separator=b"\n")

    def records(self, content: bytes) -> Iterator[tuple[Schema | None, Any]]:
        for line in _decompressed(content).split(b"\n"):
            if line.strip():
                yield self._converter.from_bytes(None, line)


class ByteArrayFormat:
    """The bytes of values, each with a separator behind it."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._is_compressed = values.get("s3.compression.type") == "gzip"
        self.extension = values["format.bytearray.extension"] + (".gz" if self._is_compressed else "")
        self._separator = values["format.bytearray.separator"].encode()

    def writer(self, schema: Schema | None, identity: str) -> FileWriter:
        return _Lines(self._stored, is_compressed=self._is_compressed, separator=self._separator)

    def _stored(self, record: SinkRecord) -> bytes:
        if not isinstance(record.value, bytes):
            raise InvalidValue("ByteArrayFormat needs bytes: set value.converter to ByteArrayConverter")
        return record.value

    def records(self, content: bytes) -> Iterator[tuple[Schema | None, Any]]:
        found = _decompressed(content)
        if not self._separator:
            raise ConnectError("format.bytearray.separator: without it, records cannot be told apart")
        for value in found.removesuffix(self._separator).split(self._separator) if found else ():
            yield BYTES_SCHEMA, value


class AvroFormat:
    """Avro's container files, with Connect's schema in properties of the Avro schema."""

    extension = ".avro"

    def __init__(self, values: Mapping[str, Any]) -> None:
        with needs_extra("schemas"):
            import fastavro

        self._fastavro = fastavro
        self._codec = values.get("avro.codec", "null")

    def writer(self, schema: Schema | None, identity: str) -> FileWriter:
        if schema is None:
            raise InvalidValue("AvroFormat needs a schema: use a converter with schemas")
        return _AvroFile(self._fastavro, schema, self._codec, identity)

    def records(self, content: bytes) -> Iterator[tuple[Schema | None, Any]]:
        stream = io.BytesIO(content)
        header = self._fastavro.reader(io.BytesIO(content)).metadata["avro.schema"]
        avro = json.loads(header)
        schema = schema_of_avro(avro)
        # fastavro's own reading of dates ends with Python's years: it gets a header without logical types.
        plain = json.dumps(without_logical_types(avro))
        place = content.index(header.encode())
        replaced = _with_header(content, place, len(header.encode()), plain.encode())
        stream = io.BytesIO(replaced)
        for found in self._fastavro.reader(stream, return_named_type=True):
            yield schema, value_of_avro(schema, found)


def _with_header(content: bytes, place: int, length: int, header: bytes) -> bytes:
    """An Avro file with another schema in its header; the length before it is a varint."""
    before = content[:place]
    old = _varint(length)
    assert before.endswith(old)
    return before[: -len(old)] + _varint(len(header)) + header + content[place + length :]


def _varint(number: int) -> bytes:
    left, written = number << 1, bytearray()
    while left > 0x7F:
        written.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*written, left])


class _AvroFile:
    def __init__(self, fastavro: Any, schema: Schema, codec: str, identity: str) -> None:
        self._fastavro = fastavro
        self._schema = schema
        self._codec = codec
        self._identity = identity
        self._avro = avro_of(schema)
        self._plain = fastavro.parse_schema(without_logical_types(self._avro))
        self._rows: list[Any] = []

    def add(self, record: SinkRecord) -> None:
        row = value_to_avro(self._schema, record.value)
        try:
            self._fastavro.schemaless_writer(io.BytesIO(), self._plain, row)
        except Exception as error:  # fastavro raises arbitrary exceptions
            raise InvalidValue(f"the value does not match its schema: {type(error).__name__}: {error}"[:300]) from error
        self._rows.append(row)

    def content(self) -> bytes:
        stream = io.BytesIO()
        marker = sync_marker(self._identity)
        self._fastavro.writer(stream, self._avro, self._rows, codec=self._codec, sync_marker=marker)
        return stream.getvalue()


class ParquetFormat:
    """Parquet, with a column for each field. Values without a schema are objects, whose types Arrow finds out."""

    extension = ".parquet"

    def __init__(self, values: Mapping[str, Any]) -> None:
        codec = values.get("parquet.codec", "snappy")
        self._codec = codec
        self.extension = f".{codec}.parquet" if codec in ("snappy", "gzip", "zstd", "brotli") else ".parquet"

    def writer(self, schema: Schema | None, identity: str) -> FileWriter:
        return _ParquetFile(schema, self._codec)

    def records(self, content: bytes) -> Iterator[tuple[Schema | None, Any]]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        from millbeck.pipeline.connect.connectors.objects.arrow_rows import schema_of_arrow, storage_of, value_of_plain

        with pq.ParquetFile(io.BytesIO(content)) as file:
            schema = schema_of_arrow(pa.struct(list(file.schema_arrow)))
            for batch in file.iter_batches(_ROWS_AT_ONCE):
                columns = [storage_of(column).to_pylist() for column in batch.columns]
                for row in zip(*columns, strict=True):
                    made = Struct(schema)
                    made.values = [
                        value_of_plain(field.schema, found) for field, found in zip(schema.fields, row, strict=True)
                    ]
                    yield schema, made


class _ParquetFile:
    def __init__(self, schema: Schema | None, codec: str) -> None:
        from millbeck.pipeline.connect.connectors.objects import arrow_rows

        self._arrow_rows = arrow_rows
        self._schema = schema
        self._codec = codec
        self._rows: list[Any] = []
        self._tables: list[Any] = []
        if schema is not None:
            arrow_rows.arrow_schema(schema)

    def add(self, record: SinkRecord) -> None:
        if self._schema is None:
            if not isinstance(record.value, dict):
                raise InvalidValue("ParquetFormat needs a schema, or JSON objects")
            self._rows.append(record.value)
            return
        self._rows.append(self._arrow_rows.plain_value(self._schema, record.value))
        if len(self._rows) >= _ROWS_AT_ONCE:
            self._gather()

    def _gather(self) -> None:
        assert self._schema is not None
        self._tables.append(self._arrow_rows.table_of(self._schema, self._rows))
        self._rows = []

    def content(self) -> bytes:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if self._schema is None:
            table = _table_of_objects(self._rows)
        else:
            if self._rows or not self._tables:
                self._gather()
            table = pa.concat_tables(self._tables)
        stream = io.BytesIO()
        pq.write_table(table, stream, compression=self._codec, store_schema=True)
        return stream.getvalue()


def _table_of_objects(rows: list[dict[str, Any]]) -> Any:
    import pyarrow as pa

    names = dict.fromkeys(name for row in rows for name in row)
    try:
        return pa.table({name: pa.array([row.get(name) for row in rows]) for name in names})
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise ConnectError(
            f"the objects of a file have no common type for a field ({error}): use a converter with schemas"
        ) from error


_FORMATS: Final[Mapping[str, Callable[[Mapping[str, Any]], FileFormat]]] = {
    "JsonFormat": JsonFormat,
    "ByteArrayFormat": ByteArrayFormat,
    "AvroFormat": AvroFormat,
    "ParquetFormat": ParquetFormat,
}


def format_of(values: Mapping[str, Any]) -> FileFormat:
    return _FORMATS[simple_name(values["format.class"])](values)
