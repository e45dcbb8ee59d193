"""Connect's schemas and values as Avro's, and back, in the way of Confluent's AvroConverter.

What Avro has no word for (a name of a number's schema, INT8, parameters) is in properties of the Avro schema that begin
with ``connect.``, so a schema that goes through Avro is the same afterwards. Numbers of dates and times stay numbers on
the way: fastavro sees no logical types, which would end with Python's year 9999.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Final

from millbeck.pipeline.connect.errors import InvalidValue, SchemaError
from millbeck.pipeline.connect.model.logical import (
    DATE,
    DECIMAL,
    TEMPORAL,
    TIME,
    TIMESTAMP,
    Instant,
    decimal_of,
    instant_of,
    scale_of,
    stored_number,
    unscaled_bytes,
)
from millbeck.pipeline.connect.model.numbers import Float32, Int8, Int16, Int32, fits
from millbeck.pipeline.connect.model.schema import Field, Schema, SchemaType
from millbeck.pipeline.connect.model.struct import Struct, checked

_NAMESPACE: Final = "io.confluent.connect.avro"
_DEFAULT_NAME: Final = "ConnectDefault"
_UNION: Final = f"{_NAMESPACE}.Union"
_ENUM: Final = f"{_NAMESPACE}.Enum"
_ENTRY: Final = "MapEntry"
_PRECISION: Final = "connect.decimal.precision"
_PRECISION_DEFAULT: Final = 64
_PLAIN: Final = {
    SchemaType.BOOLEAN: "boolean",
    SchemaType.INT8: "int",
    SchemaType.INT16: "int",
    SchemaType.INT32: "int",
    SchemaType.INT64: "long",
    SchemaType.FLOAT32: "float",
    SchemaType.FLOAT64: "double",
    SchemaType.STRING: "string",
    SchemaType.BYTES: "bytes",
}
_CONNECT: Final[Mapping[str, SchemaType]] = {
    "boolean": SchemaType.BOOLEAN,
    "int": SchemaType.INT32,
    "long": SchemaType.INT64,
    "float": SchemaType.FLOAT32,
    "double": SchemaType.FLOAT64,
    "string": SchemaType.STRING,
    "bytes": SchemaType.BYTES,
    "fixed": SchemaType.BYTES,
    "enum": SchemaType.STRING,
}
_NARROW: Final = {"int8": SchemaType.INT8, "int16": SchemaType.INT16}
_LOGICAL: Final = {DATE: "date", TIME: "time-millis", TIMESTAMP: "timestamp-millis"}
_OF_LOGICAL: Final = {("int", "date"): DATE, ("int", "time-millis"): TIME, ("long", "timestamp-millis"): TIMESTAMP}
_NUMBERS: Final[Mapping[SchemaType, tuple[int, Any]]] = {
    SchemaType.INT8: (8, Int8),
    SchemaType.INT16: (16, Int16),
    SchemaType.INT32: (32, Int32),
    SchemaType.INT64: (64, int),
}
_LEGAL: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_DEPTH_MAX: Final = 64


# schemas to Avro


@dataclass(slots=True)
class _Written:
    """The records of a schema that are written already, by their names."""

    scrubs: bool
    has_metadata: bool = True
    records: dict[str, Schema] = field(default_factory=dict)


def avro_of(schema: Schema, *, scrubs_names: bool = False, has_metadata: bool = True) -> Any:
    """The Avro schema, as JSON has it. Raises `SchemaError` for names that Avro does not allow."""
    return _optional(schema, _Written(scrubs_names, has_metadata))


def _optional(schema: Schema, written: _Written) -> Any:
    inner = _required(schema, written)
    if not schema.optional:
        return inner
    # The type of the default comes first in a union.
    return ["null", inner] if schema.default is None else [inner, "null"]


def _required(schema: Schema, written: _Written) -> Any:
    found: dict[str, Any]
    match schema.type:
        case SchemaType.STRUCT:
            name = _record_name(schema, written)
            if name in written.records:
                return name
            written.records[name] = _shape(schema)
            found = _record(schema, name, written)
        case SchemaType.ARRAY if schema.value_schema is not None:
            found = {"type": "array", "items": _optional(schema.value_schema, written)}
        case SchemaType.MAP if schema.key_schema is not None and schema.value_schema is not None:
            found = _map(schema, schema.key_schema, schema.value_schema, written)
        case kind if kind in _PLAIN:
            found = {"type": _PLAIN[kind]}
            if kind in (SchemaType.INT8, SchemaType.INT16):
                found["connect.type"] = kind.value
        case _:
            raise SchemaError(f"{schema} has no type of its elements")
    if schema.name == DECIMAL:
        precision = int((schema.parameters or {}).get(_PRECISION, _PRECISION_DEFAULT))
        found |= {"scale": scale_of(schema), "precision": precision, "logicalType": "decimal"}
    elif schema.name in _LOGICAL:
        found["logicalType"] = _LOGICAL[schema.name]
    if written.has_metadata:
        found |= _metadata(schema)
    return found["type"] if len(found) == 1 else found


def _metadata(schema: Schema) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if schema.doc is not None:
        found["connect.doc"] = schema.doc
    if schema.version is not None:
        found["connect.version"] = schema.version
    if schema.parameters:
        found["connect.parameters"] = dict(schema.parameters)
    if schema.default is not None:
        found["connect.default"] = _default(schema)
    if schema.name is not None:
        found["connect.name"] = schema.name
    return found


def _shape(schema: Schema) -> Schema:
    return replace(schema, optional=False, default=None)


def _record_name(schema: Schema, written: _Written) -> str:
    """The full name of a record; of different ones with the same name, the later ones get a number."""
    name = _legal_path(schema.name, written) if schema.name else f"{_NAMESPACE}.{_DEFAULT_NAME}"
    number, numbered = 1, name
    while written.records.get(numbered, shape := _shape(schema)) != shape:
        number += 1
        numbered = f"{name}{number}"
    return numbered


def _legal_path(name: str, written: _Written) -> str:
    return ".".join(_legal(part, written) for part in name.split("."))


def _legal(name: str, written: _Written) -> str:
    if _LEGAL.fullmatch(name):
        return name
    if not written.scrubs:
        raise SchemaError(
            f"{name[:100]} is no name of Avro: set scrub.invalid.names=true, or rename it with ReplaceField"
        )
    scrubbed = re.sub(r"[^A-Za-z0-9_]", "_", name, flags=re.ASCII)
    return scrubbed if _LEGAL.fullmatch(scrubbed) else f"_{scrubbed}"


def _record(schema: Schema, name: str, written: _Written) -> dict[str, Any]:
    namespace, _, simple = name.rpartition(".")
    found: dict[str, Any] = {"type": "record", "name": simple}
    if namespace:
        found["namespace"] = namespace
    if schema.doc is not None:
        found["doc"] = schema.doc
    found["fields"] = [_field(each, written) for each in schema.fields]
    return found


def _field(each: Field, written: _Written) -> dict[str, Any]:
    found: dict[str, Any] = {"name": _legal(each.name, written), "type": _optional(each.schema, written)}
    if each.schema.doc is not None:
        found["doc"] = each.schema.doc
    if each.schema.default is not None:
        found["default"] = _default(each.schema)
    elif each.schema.optional:
        found["default"] = None
    return found


def _map(schema: Schema, key: Schema, element: Schema, written: _Written) -> dict[str, Any]:
    if key.type is SchemaType.STRING and not key.optional:
        return {"type": "map", "values": _optional(element, written)}
    # Avro's maps have texts as keys: others are arrays of entries.
    name = f"{_NAMESPACE}.{_ENTRY}" if schema.name is None else _legal_path(schema.name, written)
    entry = Schema(SchemaType.STRUCT, name=name, fields=(Field("key", key), Field("value", element)))
    numbered = _record_name(entry, written)
    if numbered in written.records:
        return {"type": "array", "items": numbered}
    written.records[numbered] = entry
    items = _record(entry, numbered, written)
    if schema.name is not None:
        items["connect.internal.type"] = _ENTRY
    return {"type": "array", "items": items}


def _default(schema: Schema) -> Any:
    """A default as Avro's JSON has it."""
    return _json_default(value_to_avro(replace(schema, optional=True), schema.default))


def _json_default(value: Any) -> Any:
    match value:
        case bytes():
            return value.decode("latin-1")
        case tuple() as pair if len(pair) == 2:
            return _json_default(pair[1])
        case list():
            return [_json_default(each) for each in value]
        case dict():
            return {name: _json_default(each) for name, each in value.items()}
    return value


# values to Avro


def value_to_avro(schema: Schema, value: Any, *, scrubs_names: bool = False) -> Any:
    """What fastavro writes for a value. Raises `InvalidValue`."""
    return _to_avro(schema, value, _Written(scrubs_names))


def _to_avro(schema: Schema, value: Any, written: _Written) -> Any:
    if value is None:
        if schema.default is not None and not schema.optional:
            return _to_avro(schema, schema.default, written)
        if schema.optional:
            return None
        raise InvalidValue(f"null in a required {schema.type.name}")
    if schema.name == DECIMAL:
        if not isinstance(value, Decimal):
            raise InvalidValue(f"{type(value).__name__} where a Decimal is expected")
        return unscaled_bytes(schema, value)
    if schema.name in TEMPORAL:
        if not isinstance(value, Instant):
            raise InvalidValue(f"{type(value).__name__} where a date or time is expected")
        return stored_number(schema, value)
    match schema.type:
        case SchemaType.STRUCT:
            return _struct_to_avro(schema, checked(schema, value), written)
        case SchemaType.ARRAY if schema.value_schema is not None and isinstance(value, (list, tuple)):
            return [_to_avro(schema.value_schema, each, written) for each in value]
        case SchemaType.MAP if schema.key_schema is not None and isinstance(value, dict):
            return _map_to_avro(schema, schema.key_schema, value, written)
    return checked(schema, value)


def _struct_to_avro(schema: Schema, value: Struct, written: _Written) -> Any:
    if schema.name == _UNION:
        for each, found in value.items():
            if found is not None:
                return each.name, _to_avro(each.schema, found, written)
        return None
    return {_legal(each.name, written): _to_avro(each.schema, found, written) for each, found in value.items()}


def _map_to_avro(schema: Schema, key: Schema, value: dict[Any, Any], written: _Written) -> Any:
    assert schema.value_schema is not None
    if key.type is SchemaType.STRING and not key.optional:
        return {checked(key, name): _to_avro(schema.value_schema, each, written) for name, each in value.items()}
    return [
        {"key": _to_avro(key, name, written), "value": _to_avro(schema.value_schema, each, written)}
        for name, each in value.items()
    ]


# Avro to schemas


def without_logical_types(avro: Any) -> Any:
    """The schema as fastavro gets it: numbers and bytes."""
    match avro:
        case dict():
            return {
                name: without_logical_types(each) if name in ("type", "items", "values", "fields") else each
                for name, each in avro.items()
                if name not in ("logicalType",) and not name.startswith("connect.")
            }
        case list():
            return [without_logical_types(each) for each in avro]
    return avro


def schema_of_avro(avro: Any, named: dict[str, Any] | None = None) -> Schema:
    """The Connect schema of an Avro schema; ``named`` are types that it refers to. Raises `SchemaError`."""
    return _Reading({} if named is None else dict(named)).schema(avro, "", 0)


@dataclass(slots=True)
class _Reading:
    names: dict[str, Any]
    open: list[str] = field(default_factory=list)
    namespaces: dict[str, str] = field(default_factory=dict)

    def schema(self, avro: Any, namespace: str, depth: int) -> Schema:
        if depth > _DEPTH_MAX:
            raise SchemaError(f"the schema is nested deeper than {_DEPTH_MAX}")
        if isinstance(avro, list):
            return self._union(avro, namespace, depth)
        if isinstance(avro, str):
            if avro in _CONNECT and avro not in ("fixed", "enum"):
                return Schema(_CONNECT[avro])
            return self._reference(avro, namespace, depth)
        kind = avro.get("type") if isinstance(avro, dict) else None
        if isinstance(kind, (dict, list)):
            return self.schema(kind, namespace, depth + 1)
        if kind in ("record", "error", "enum", "fixed"):
            return self._named(avro, namespace, depth)
        if kind == "array":
            return self._array(avro, namespace, depth)
        if kind == "map":
            values = self.schema(avro.get("values"), namespace, depth + 1)
            return _with_metadata(
                Schema(SchemaType.MAP, key_schema=Schema(SchemaType.STRING), value_schema=values), avro
            )
        if isinstance(kind, str) and kind in _CONNECT:
            return _with_metadata(_leaf(kind, avro), avro)
        if isinstance(kind, str):
            return self._reference(kind, namespace, depth)
        raise SchemaError(f"{str(avro)[:200]} is no Avro schema")

    def _reference(self, name: str, namespace: str, depth: int) -> Schema:
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        full = full if full in self.names else name
        if full in self.open:
            raise SchemaError(f"the record {full} contains itself: Connect's schemas cannot be recursive")
        if full not in self.names:
            raise SchemaError(f"there is no type {name[:200]} in the Avro schema")
        return self._named(self.names[full], full.rpartition(".")[0], depth, is_again=True)

    def _named(self, avro: Any, namespace: str, depth: int, *, is_again: bool = False) -> Schema:
        simple = str(avro.get("name", ""))
        own_namespace = simple.rpartition(".")[0] if "." in simple else str(avro.get("namespace", namespace))
        simple = simple.rpartition(".")[2]
        full = f"{own_namespace}.{simple}" if own_namespace else simple
        self.names.setdefault(full, avro)
        if avro["type"] == "fixed":
            found = replace(_leaf("bytes", avro), parameters={"connect.fixed.size": str(avro.get("size"))})
            return _with_metadata(_leaf("bytes", avro) if found.name == DECIMAL else found, avro)
        if avro["type"] == "enum":
            symbols = {f"{_ENUM}.{each}": str(each) for each in avro.get("symbols", ())}
            return _with_metadata(Schema(SchemaType.STRING, name=full, parameters={_ENUM: full} | symbols), avro)
        self.open.append(full)
        fields = tuple(self._field(each, own_namespace, depth) for each in avro.get("fields", ()))
        self.open.pop()
        made = Schema(SchemaType.STRUCT, name=full, fields=fields, doc=avro.get("doc"))
        if full.startswith(f"{_NAMESPACE}.{_DEFAULT_NAME}") and "connect.name" not in avro:
            made = replace(made, name=None)
        return _with_metadata(made, avro)

    def _field(self, each: Any, namespace: str, depth: int) -> Field:
        schema = self.schema(each["type"], namespace, depth + 1)
        if each.get("default") is not None and schema.default is None:
            schema = replace(schema, default=_of_json_default(schema, each["default"]))
        if each.get("doc") is not None and schema.doc is None:
            schema = replace(schema, doc=each["doc"])
        return Field(str(each["name"]), schema)

    def _array(self, avro: Any, namespace: str, depth: int) -> Schema:
        items = avro.get("items")
        element = self.schema(items, namespace, depth + 1)
        named = items
        if isinstance(items, str):
            named = self.names.get(f"{namespace}.{items}", self.names.get(items))
        is_entry = isinstance(named, dict) and (
            named.get("connect.internal.type") == _ENTRY
            or (str(named.get("name")).startswith(_ENTRY) and named.get("namespace", namespace) == _NAMESPACE)
        )
        if is_entry and [each.name for each in element.fields] == ["key", "value"]:
            key, value = (each.schema for each in element.fields)
            return _with_metadata(Schema(SchemaType.MAP, key_schema=key, value_schema=value), avro)
        return _with_metadata(Schema(SchemaType.ARRAY, value_schema=element), avro)

    def _union(self, branches: list[Any], namespace: str, depth: int) -> Schema:
        others = [each for each in branches if each != "null"]
        optional = len(others) < len(branches)
        if len(others) == 1:
            return replace(self.schema(others[0], namespace, depth + 1), optional=optional)
        fields = tuple(
            Field(_branch_name(each, namespace), replace(self.schema(each, namespace, depth + 1), optional=True))
            for each in others
        )
        return Schema(SchemaType.STRUCT, optional=optional, name=_UNION, fields=fields)


def _branch_name(avro: Any, namespace: str) -> str:
    """The name of a branch of a union: the full name of a named type, or the type."""
    if isinstance(avro, str):
        return avro
    kind = avro.get("type")
    if kind in ("record", "enum", "fixed", "error"):
        name, own = str(avro["name"]), str(avro.get("namespace", namespace))
        return name if "." in name or not own else f"{own}.{name}"
    return str(kind)


def _leaf(kind: str, avro: Any) -> Schema:
    logical = avro.get("logicalType")
    if kind == "bytes" and logical == "decimal":
        parameters = {"scale": str(avro.get("scale", 0))}
        if avro.get("precision", _PRECISION_DEFAULT) != _PRECISION_DEFAULT:
            parameters[_PRECISION] = str(avro["precision"])
        return Schema(SchemaType.BYTES, name=DECIMAL, version=1, parameters=parameters)
    name = _OF_LOGICAL.get((kind, logical))
    if name is not None:
        return Schema(_CONNECT[kind], name=name, version=1)
    return Schema(_NARROW.get(avro.get("connect.type", ""), _CONNECT[kind]))


def _with_metadata(schema: Schema, avro: Any) -> Schema:
    given = avro.get("connect.parameters")
    parameters = dict(schema.parameters or {}) | (given if isinstance(given, dict) else {})
    made = replace(
        schema,
        name=avro.get("connect.name", schema.name),
        version=avro.get("connect.version", schema.version),
        doc=avro.get("connect.doc", schema.doc),
        parameters={str(name): str(text) for name, text in parameters.items()} or None,
    )
    if avro.get("connect.default") is not None:
        made = replace(made, default=_of_json_default(made, avro["connect.default"]))
    return made


def _of_json_default(schema: Schema, value: Any) -> Any:
    """A default of Avro's JSON as a value."""
    return value_of_avro(replace(schema, optional=True), _bytes_of_json(schema, value))


def _bytes_of_json(schema: Schema, value: Any) -> Any:
    if value is None:
        return None
    match schema.type:
        case SchemaType.BYTES if isinstance(value, str):
            return value.encode("latin-1", "replace")
        case SchemaType.STRUCT if isinstance(value, dict):
            known = {each.name: each.schema for each in schema.fields}
            return {name: _bytes_of_json(known[name], each) for name, each in value.items() if name in known}
        case SchemaType.ARRAY if isinstance(value, list) and schema.value_schema is not None:
            return [_bytes_of_json(schema.value_schema, each) for each in value]
        case SchemaType.MAP if isinstance(value, dict) and schema.value_schema is not None:
            return {name: _bytes_of_json(schema.value_schema, each) for name, each in value.items()}
        case SchemaType.FLOAT32 | SchemaType.FLOAT64 if isinstance(value, int):
            return float(value)
    return value


# values of Avro


def value_of_avro(schema: Schema, found: Any) -> Any:
    """A value that fastavro has read, with the names of named types in unions beside them. Raises `InvalidValue`."""
    if schema.name == _UNION and schema.type is SchemaType.STRUCT:
        return _union_value(schema, found)
    if isinstance(found, tuple):
        found = found[1]
    if found is None:
        if schema.optional:
            return None
        raise InvalidValue(f"null in a required {schema.type.name}")
    if schema.name == DECIMAL:
        return decimal_of(schema, found)
    if schema.name in TEMPORAL:
        return instant_of(schema, found)
    match schema.type:
        case SchemaType.STRUCT:
            made = Struct(schema)
            made.values = [value_of_avro(each.schema, found.get(each.name)) for each in schema.fields]
            return made
        case SchemaType.ARRAY if schema.value_schema is not None:
            return [value_of_avro(schema.value_schema, each) for each in found]
        case SchemaType.MAP if schema.key_schema is not None and schema.value_schema is not None:
            if isinstance(found, dict):
                return {name: value_of_avro(schema.value_schema, each) for name, each in found.items()}
            return {
                value_of_avro(schema.key_schema, each["key"]): value_of_avro(schema.value_schema, each["value"])
                for each in found
            }
        case SchemaType.FLOAT32:
            return Float32(found)
    if schema.type in _NUMBERS:
        bits, number = _NUMBERS[schema.type]
        if not fits(found, bits):
            raise InvalidValue(f"{found} is no number of {bits} bits")
        return number(found)
    return found


_UNION_TYPES: Final[tuple[tuple[type, tuple[SchemaType, ...]], ...]] = (
    (bool, (SchemaType.BOOLEAN,)),
    (int, (SchemaType.INT64, SchemaType.INT32, SchemaType.INT16, SchemaType.INT8)),
    (float, (SchemaType.FLOAT64, SchemaType.FLOAT32)),
    (str, (SchemaType.STRING,)),
    (bytes, (SchemaType.BYTES,)),
    (list, (SchemaType.ARRAY, SchemaType.MAP)),
    (dict, (SchemaType.MAP, SchemaType.STRUCT)),
)


def _union_value(schema: Schema, found: Any) -> Any:
    if found is None:
        if schema.optional:
            return None
        raise InvalidValue("null in a union that has no null")
    if isinstance(found, tuple):
        chosen = next((each for each in schema.fields if each.name == found[0]), None)
        found = found[1]
    else:
        kinds = next((kinds for known, kinds in _UNION_TYPES if isinstance(found, known)), ())
        chosen = next((each for kind in kinds for each in schema.fields if each.schema.type is kind), None)
    if chosen is None:
        raise InvalidValue(f"no branch of the union has a value like {str(found)[:100]}")
    made = Struct(schema)
    made.values[schema.by_name[chosen.name]] = value_of_avro(chosen.schema, found)
    return made


def sync_marker(identity: str) -> bytes:
    """Sixteen bytes for the blocks of an Avro file that are the same whenever the file is written again."""
    from hashlib import sha256

    return sha256(identity.encode()).digest()[:16]
