"""Needs pyspark: decode bytes of the log to typed columns and encode them.

    json("customer STRING, cents BIGINT")
    avro("order.avsc")                                         # a file, or the schema's text
    protobuf("order.proto", "Order")
    avro(registry="http://127.0.0.1:8081")                     # the wire format of schema registries

Strings, numbers and JSON are column expressions, evaluated by Spark without Python; Avro and Protobuf are decoded and
encoded in Python, a batch at a time. For a record that cannot be decoded a serde returns the reason; the topology
decides what to do. In a DataFrame without a topology: ``frame.select(avro("order.avsc").decode(frame.value))``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as sf
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from millbeck.client.schemas.errors import BadRecord
from millbeck.client.schemas.model import AVRO, PROTOBUF, SchemaRegistry, subject_of
from millbeck.client.schemas.wire_format import HEADER_BYTES, MAGIC, framed
from millbeck.kernel.errors import InvalidConfig
from millbeck.pipeline.errors import PipelineError, TopologyError
from millbeck.pipeline.formats.columns import PROBLEM, VALUE, read_column, write_column
from millbeck.pipeline.formats.schema_files import SchemaGiven, read_schema
from millbeck.pipeline.topology.records import type_of

if TYPE_CHECKING:
    from millbeck.pipeline.formats.codecs import RecordCodec, RegistrySubject

_UNREADABLE = "_unreadable"
_SHOWN_CHARACTERS = 60
INT_MAX = 2**31 - 1

KEY_PART = "key"
VALUE_PART = "value"


@dataclass(frozen=True, slots=True)
class Serde:
    """A serde. ``read`` returns a struct of ``value`` and ``problem``; both are null for a null record, and null is
    written as null."""

    name: str
    read: Callable[[Column], Column]
    encode: Callable[[Column], Column]
    kind: DataType | None = None
    """The type that `encode` takes; None for any type."""
    bind: Callable[[str, str], Serde] | None = None
    """Set for a serde that must first know the topic, and whether it is for keys or values."""

    def decode(self, column: Column) -> Column:
        """The value, null where it cannot be decoded."""
        return self.read(column)[VALUE]

    def bound_to(self, topic: str, part: str) -> Serde:
        return self if self.bind is None else self.bind(topic, part)


def _reading(
    decode: Callable[[Column], Column], problem: Callable[[Column], Column | str] | None = None
) -> Callable[[Column], Column]:
    """The struct column of value and ``problem``, which describes bytes that could not be decoded."""

    def read(column: Column) -> Column:
        decoded = decode(column)
        said = sf.lit(None).cast("string")
        if problem is not None:
            described = problem(column)
            text = sf.lit(described) if isinstance(described, str) else described
            said = sf.when(column.isNotNull() & decoded.isNull(), text)
        return sf.struct(decoded.alias(VALUE), said.alias(PROBLEM))

    return read


def raw() -> Serde:
    """Bytes without conversion."""
    return Serde("raw", _reading(lambda column: column), lambda column: column)


def string() -> Serde:
    """UTF-8 text."""
    return Serde(
        "string",
        _reading(
            lambda column: sf.when(sf.is_valid_utf8(column.cast("string")), column.cast("string")),
            lambda column: "not a string: it is not UTF-8",
        ),
        lambda column: column.cast("string").cast("binary"),
    )


def long() -> Serde:
    """A big-endian integer of eight bytes, as in Kafka's LongSerializer."""
    return _integer("long", "bigint", 8)


def integer() -> Serde:
    """A big-endian integer of four bytes, as in Kafka's IntegerSerializer."""
    return _integer("integer", "int", 4)


def _integer(name: str, kind: str, size_bytes: int) -> Serde:
    def decode(column: Column) -> Column:
        half, whole = (sf.lit(str(2 ** (8 * size_bytes - less))).cast("decimal(20,0)") for less in (1, 0))
        unsigned = sf.conv(sf.hex(column), 16, 10).cast("decimal(20,0)")
        signed = sf.when(unsigned >= half, unsigned - whole).otherwise(unsigned)
        return sf.when(sf.length(column) == size_bytes, signed.cast(kind))

    def encode(column: Column) -> Column:
        digits = sf.hex(column.cast("bigint"))
        return sf.unhex(sf.substring(sf.lpad(digits, 16, "0"), 17 - 2 * size_bytes, 2 * size_bytes))

    def problem(column: Column) -> Column:
        return sf.format_string(f"not a {name}: it has %d bytes, not {size_bytes}", sf.length(column))

    return Serde(name, _reading(decode, problem), encode)


RegistryGiven = SchemaRegistry | str | Mapping[str, Any]
"""A schema registry: its URL, the settings of its client, a directory of schemas, or an object."""


def registry_of(given: RegistryGiven) -> SchemaRegistry:
    """The registry; raises `TopologyError` if the settings of its client are not usable."""
    if isinstance(given, str) and "://" not in given:
        from millbeck.pipeline.formats.schema_files import DirectorySchemas

        return DirectorySchemas(given)
    if not isinstance(given, str | Mapping):
        return given
    from millbeck.client.schemas.registry_client import RegistryClient

    try:
        return RegistryClient({"schema.registry.url": given} if isinstance(given, str) else given)
    except InvalidConfig as error:
        raise TopologyError(f"registry: {error}") from error


def json(schema: str | DataType, *, registry: RegistryGiven | None = None, subject: str | None = None) -> Serde:
    """JSON of this type, given as Spark DDL (``"customer STRING, amount DOUBLE"``) or as a Spark type; unknown fields
    are ignored.

    With a registry each record is prefixed with a schema id; records are written with the id of the subject's latest
    schema.
    """
    plain = Serde("json", _reading(_json_decoding(schema), _json_problem(schema)), _to_json)
    if registry is None:
        return plain
    schemas = registry_of(registry)

    def made(topic: str, part: str) -> Serde:
        named = subject or subject_of(topic, part)

        def decode(column: Column) -> Column:
            is_framed = (sf.length(column) >= HEADER_BYTES) & (sf.substring(column, 1, 1) == sf.lit(bytes([MAGIC])))
            return sf.when(is_framed, _json_decoding(schema)(sf.substring(column, HEADER_BYTES + 1, INT_MAX)))

        def encode(column: Column) -> Column:
            return sf.concat(sf.lit(framed(schemas.latest(named).schema_id, b"")), _to_json(column))

        return Serde("json", _reading(decode, _json_problem(schema, "id of a schema and ")), encode)

    return made("", "") if subject is not None else Serde("json", _unbound("json"), _unbound("json"), bind=made)


def _to_json(column: Column) -> Column:
    return sf.to_json(column).cast("binary")


def _json_decoding(schema: str | DataType) -> Callable[[Column], Column]:
    def decode(column: Column) -> Column:
        # Parsed lazily: Spark parses types, and serdes are created before Spark has started.
        kind = type_of(schema)
        text = column.cast("string")
        if isinstance(kind, (ArrayType, MapType)):
            return sf.from_json(text, kind)
        if not isinstance(kind, StructType):
            raise TopologyError(f"json() is for objects, arrays and maps, not for {kind.simpleString()}")
        marked = StructType([*kind.fields, StructField(_UNREADABLE, StringType())])
        parsed = sf.from_json(text, marked, {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _UNREADABLE})
        whole = sf.struct(*[parsed[field.name].alias(field.name) for field in kind.fields])
        return sf.when(column.isNotNull() & parsed[_UNREADABLE].isNull(), whole)

    return decode


def _json_problem(schema: str | DataType, before: str = "") -> Callable[[Column], Column]:
    def problem(column: Column) -> Column:
        begins = sf.substring(sf.make_valid_utf8(column.cast("string")), 1, _SHOWN_CHARACTERS)
        return sf.concat(sf.lit(f"no {before}json of {type_of(schema).simpleString()}: it begins with "), begins)

    return problem


def avro(
    schema: SchemaGiven | None = None,
    *,
    registry: RegistryGiven | None = None,
    subject: str | None = None,
    auto_register: bool = False,
) -> Serde:
    """Avro with this schema: a file, its text, or a dictionary.

    With a registry each record has the id of its writer's schema, and is resolved to the given schema, or else to the
    subject's latest schema; the default subject is the topic name with ``-key`` or ``-value``. The subject must have
    the schema to write with, unless ``auto_register`` is set.
    """
    schemas = None if registry is None else registry_of(registry)

    def made(topic: str, part: str) -> Serde:
        from millbeck.pipeline.formats.codecs import AvroCodec

        registered = _registered(schemas, subject or subject_of(topic, part), auto_register)
        if schema is None:
            if registered is None:
                raise TopologyError("avro() needs a schema, or a registry that has it")
            return _coded(AvroCodec(registered.latest(), registered))
        return _coded(AvroCodec(read_schema(AVRO, schema), registered))

    return _bound(made, "avro", needs_topic=registry is not None and subject is None)


def protobuf(
    schema: SchemaGiven | None = None,
    message: str | None = None,
    *,
    registry: RegistryGiven | None = None,
    subject: str | None = None,
    auto_register: bool = False,
) -> Serde:
    """Protobuf with this schema: a .proto file, a descriptor set (.desc), or the text of a .proto; registries as with
    `avro`.

    ``message`` names one of the schema's messages, by default the first.
    """
    schemas = None if registry is None else registry_of(registry)

    def made(topic: str, part: str) -> Serde:
        from millbeck.pipeline.formats.codecs import ProtobufCodec

        registered = _registered(schemas, subject or subject_of(topic, part), auto_register)
        if schema is None:
            if registered is None:
                raise TopologyError("protobuf() needs a schema, or a registry that has it")
            return _coded(ProtobufCodec(registered.latest(), message, registered))
        return _coded(ProtobufCodec(read_schema(PROTOBUF, schema), message, registered))

    return _bound(made, "protobuf", needs_topic=registry is not None and subject is None)


def from_registry(column: Column, registry: RegistryGiven, subject: str) -> Column:
    """The values of records in the wire format of schema registries, as the subject's latest schema (Avro or Protobuf)
    has them; null where they cannot be decoded."""
    return _of_subject(registry, subject).decode(column)


def to_registry(column: Column, registry: RegistryGiven, subject: str) -> Column:
    """Values as records in the wire format of schema registries, with the subject's latest schema."""
    return _of_subject(registry, subject).encode(column)


def _of_subject(registry: RegistryGiven, subject: str) -> Serde:
    schemas = registry_of(registry)
    kind = schemas.latest(subject).schema.kind
    if kind == AVRO:
        return avro(registry=schemas, subject=subject)
    if kind == PROTOBUF:
        return protobuf(registry=schemas, subject=subject)
    raise TopologyError(f"the schema of {subject} is {kind}, whose columns are not known: use json(schema, registry=…)")


def _registered(schemas: SchemaRegistry | None, subject: str, auto_register: bool) -> RegistrySubject | None:
    from millbeck.pipeline.formats.codecs import RegistrySubject

    return None if schemas is None else RegistrySubject(schemas, subject, auto_register=auto_register)


def _bound(made: Callable[[str, str], Serde], name: str, *, needs_topic: bool) -> Serde:
    try:
        if not needs_topic:
            return made("", "")
    except ImportError as error:
        raise TopologyError(f"{name}() needs a library ({error}): pip install 'millbeck[spark]'") from error

    return Serde(name, _unbound(name), _unbound(name), bind=made)


def _unbound(name: str) -> Callable[[Column], Column]:
    def unbound(column: Column) -> Column:
        raise TopologyError(f"{name}() with a registry needs subject= outside of a topology")

    return unbound


def _coded(codec: RecordCodec) -> Serde:
    """A codec (`millbeck.pipeline.formats.codecs`) in Spark: a function over Arrow columns."""
    from pyspark.sql.pandas.functions import arrow_udf
    from pyspark.sql.pandas.types import to_arrow_type

    made: Any = arrow_udf  # whose annotations know fewer types than it takes
    types = codec.types()
    name = codec.name

    def decode(records: pa.Array) -> pa.Array:
        wanted = to_arrow_type(types.spark, timezone="UTC")
        return read_column(records, codec.reading(), types.timed, wanted, f"no {name}: ")

    def encode(values: pa.Array) -> pa.Array:
        try:
            return write_column(values, codec.writing(), types.timed, types.plain)
        except BadRecord as error:
            raise PipelineError(f"a value cannot be written as {name}: {error}") from error

    # Said to be so for Spark, which would otherwise decode again wherever a later filter asks for the result.
    read_kind = StructType([StructField(VALUE, types.spark), StructField(PROBLEM, StringType())])
    decoding = made(decode, read_kind).asNondeterministic()
    encoding = made(encode, BinaryType())

    def encoded(column: Column) -> Column:
        codec.prepare_writing()
        written: Column = encoding(column)
        return written

    return Serde(name, lambda column: decoding(column), encoded, kind=types.spark)


def serde_for(kind: DataType) -> Serde:
    """The default serde of a type: JSON for structs, arrays and maps, bytes unchanged, text for all others."""
    if isinstance(kind, (StructType, ArrayType, MapType)):
        return json(kind)
    return raw() if isinstance(kind, BinaryType) else string()
