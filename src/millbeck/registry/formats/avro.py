"""Avro schemas: the types of the specification, parsed from JSON with all its rules on names, unions and defaults.

A named type is one object wherever it is used, so types may be cyclic. All names are full names here; the namespace in
which they were written matters only for the text (`avro_text`). Properties that the specification does not define,
documentation and logical types are kept and printed, but not used in resolution: a decimal with another scale
is compatible, and is read as its bytes, as in other implementations.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from millbeck.client.schemas.log_records import Json
from millbeck.registry.errors import InvalidSchema, SchemaTooLarge
from millbeck.registry.formats.interface import Form, Imported, Incompatibility, Limits, Policy, Roles

PRIMITIVES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_RESERVED: Final = (
    "type",
    "name",
    "namespace",
    "doc",
    "aliases",
    "fields",
    "items",
    "symbols",
    "size",
    "values",
)
"""Members that are never properties; a type drops those that it does not have, as in Avro's Java library."""
_ORDERS: Final = ("ascending", "descending", "ignore")
_INT: Final = range(-(2**31), 2**31)
_LONG: Final = range(-(2**63), 2**63)
MISSING: Final = object()
"""Marks a missing default, since null is a valid default."""


@dataclass(slots=True, eq=False)
class Primitive:
    kind: str
    properties: Json = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Array:
    items: AvroType
    properties: Json = field(default_factory=dict)
    kind: str = "array"


@dataclass(slots=True, eq=False)
class Map:
    values: AvroType
    properties: Json = field(default_factory=dict)
    kind: str = "map"


@dataclass(slots=True, eq=False)
class Union:
    branches: list[AvroType]
    kind: str = "union"


@dataclass(slots=True, eq=False)
class Named:
    """The common part of record, enum and fixed types."""

    name: str
    kind: str
    aliases: list[str] = field(default_factory=list)
    doc: str | None = None
    properties: Json = field(default_factory=dict)

    @property
    def short_name(self) -> str:
        return self.name.rpartition(".")[2]

    @property
    def namespace(self) -> str:
        return self.name.rpartition(".")[0]


@dataclass(slots=True, eq=False)
class Field:
    name: str
    type: AvroType
    default: Any = MISSING
    aliases: list[str] = field(default_factory=list)
    doc: str | None = None
    order: str = "ascending"
    properties: Json = field(default_factory=dict)

    @property
    def has_default(self) -> bool:
        return self.default is not MISSING


@dataclass(slots=True, eq=False)
class Record(Named):
    fields: list[Field] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class EnumType(Named):
    symbols: list[str] = field(default_factory=list)
    default: str | None = None


@dataclass(slots=True, eq=False)
class Fixed(Named):
    size: int = 0


AvroType = Primitive | Array | Map | Union | Record | EnumType | Fixed


class AvroSchema:
    """A parsed schema with the names that its references define."""

    def __init__(self, root: AvroType, imported_names: frozenset[str]) -> None:
        self.root = root
        self.imported_names = imported_names

    def text(self, form: Form) -> str:
        from millbeck.registry.formats.avro_text import text_of

        try:
            return text_of(self, form)
        except RecursionError:
            raise SchemaTooLarge("the schema is nested too deeply when its references are resolved") from None

    def problems_reading(
        self, writer: AvroSchema, roles: Roles, policy: Policy = Policy.STRICT
    ) -> list[Incompatibility]:
        from millbeck.registry.formats.avro_compatibility import problems_reading

        return problems_reading(self.root, writer.root, roles)


class AvroFormat:
    name = "AVRO"

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()

    def parse(self, text: str, imported: Sequence[Imported], *, is_new: bool = True) -> AvroSchema:
        if len(imported) > self._limits.reference_count_max:
            raise SchemaTooLarge(f"the schema has more than {self._limits.reference_count_max} references")
        parser = _Parser(self._limits, is_new=False)
        for reference in imported:
            parser.parse(_load(reference.text, self._limits), "", "", 0)
        names = frozenset(parser.names)
        parser.is_new = is_new
        root = parser.parse(_load(text, self._limits), "", "", 0)
        return AvroSchema(root, names)


def _load(text: str, limits: Limits) -> Any:
    if len(text) > limits.text_length_max:
        raise SchemaTooLarge(f"the schema has {len(text)} characters, the limit is {limits.text_length_max}")
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise SchemaTooLarge("the schema is nested too deeply") from None
    except ValueError as error:
        if _NAME.match(text.rpartition(".")[2]):
            return text  # the specification's tools accept a bare name
        raise InvalidSchema(f"Invalid schema: not JSON: {error}") from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


class _Parser:
    def __init__(self, limits: Limits, *, is_new: bool) -> None:
        self.names: dict[str, Record | EnumType | Fixed] = {}
        self.is_new = is_new
        self._limits = limits
        self._piece_count = 0

    def parse(self, node: Any, namespace: str, path: str, depth: int) -> AvroType:
        self._count(path)
        if depth > self._limits.depth_max:
            raise SchemaTooLarge(f"the schema is nested more than {self._limits.depth_max} levels deep")
        if isinstance(node, str):
            return self._named(node, namespace, path)
        if isinstance(node, list):
            return self._union(node, namespace, path, depth)
        if not isinstance(node, dict):
            raise _invalid(path, f"{_shown(node)} is not a type")
        kind = node.get("type")
        if isinstance(kind, dict | list):
            return self.parse(kind, namespace, f"{path}/type", depth + 1)
        if not isinstance(kind, str):
            raise _invalid(path, "a type has no member type" if kind is None else f"{_shown(kind)} is not a type")
        match kind:
            case "record" | "error":
                return self._record(node, namespace, path, depth)
            case "enum":
                return self._enum(node, namespace, path)
            case "fixed":
                return self._fixed(node, namespace, path)
            case "array":
                items = self.parse(_member(node, "items", path), namespace, f"{path}/items", depth + 1)
                return Array(items, _others(node, *_RESERVED))
            case "map":
                values = self.parse(_member(node, "values", path), namespace, f"{path}/values", depth + 1)
                return Map(values, _others(node, *_RESERVED))
        if kind in PRIMITIVES:
            return Primitive(kind, _others(node, *_RESERVED))
        return self._named(kind, namespace, path)

    def _count(self, path: str) -> None:
        self._piece_count += 1
        if self._piece_count > self._limits.piece_count_max:
            raise SchemaTooLarge(f"the schema has more than {self._limits.piece_count_max} parts, at {path}")

    def _named(self, name: str, namespace: str, path: str) -> AvroType:
        if name in PRIMITIVES:
            return Primitive(name)
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        found = self.names.get(full)
        if found is None and not self.is_new:
            found = self.names.get(name)
        if found is None:
            raise _invalid(
                path,
                f'"{name[:200]}" is not a defined name: define the type first, or add its schema to the references',
            )
        return found

    def _union(self, node: list[Any], namespace: str, path: str, depth: int) -> Union:
        branches: list[AvroType] = []
        seen: dict[str, None] = {}
        for index, each in enumerate(node):
            branch = self.parse(each, namespace, f"{path}/{index}", depth + 1)
            if isinstance(branch, Union):
                raise _invalid(f"{path}/{index}", "a union must not immediately contain other unions")
            key = branch.name if isinstance(branch, Named) else branch.kind
            if key in seen:
                raise _invalid(f"{path}/{index}", f"the union has {key} twice")
            seen[key] = None
            branches.append(branch)
        return Union(branches)

    def _is_name(self, name: str) -> bool:
        """Whether this can be a name; earlier releases of Avro did not check names."""
        return bool(_NAME.match(name) if self.is_new else name)

    def _define(self, made: Record | EnumType | Fixed, path: str) -> None:
        if made.name in self.names or made.name in PRIMITIVES:
            raise _invalid(path, f'"{made.name}" is defined twice')
        self.names[made.name] = made

    def _head(self, node: Json, namespace: str, path: str) -> tuple[str, list[str], str | None]:
        name = _member(node, "name", path)
        own = node.get("namespace")
        if not isinstance(name, str) or not isinstance(own, str | None):
            raise _invalid(path, "name and namespace must be strings")
        if "." not in name:
            space = namespace if own is None else own
            name = f"{space}.{name}" if space else name
        if len(name) > self._limits.name_length_max:
            raise SchemaTooLarge(f"a name has {len(name)} characters, the limit is {self._limits.name_length_max}")
        parts = name.split(".") if not name.startswith(".") else name[1:].split(".")
        if self.is_new and not all(_NAME.match(part) for part in parts):
            raise _invalid(path, f'"{name[:200]}" is not a name: names have letters, digits and _')
        name = ".".join(parts)
        space = name.rpartition(".")[0]
        aliases = [
            alias if "." in alias or not space else f"{space}.{alias}" for alias in _texts(node, "aliases", path)
        ]
        doc = node.get("doc")
        return name, aliases, doc if isinstance(doc, str) else None

    def _record(self, node: Json, namespace: str, path: str, depth: int) -> Record:
        name, aliases, doc = self._head(node, namespace, path)
        others = _others(node, *_RESERVED)
        record = Record(name, node["type"], aliases, doc, others)
        self._define(record, path)
        listed = _member(node, "fields", path)
        if not isinstance(listed, list):
            raise _invalid(path, "the fields of a record must be a list")
        seen: dict[str, None] = {}
        for index, each in enumerate(listed):
            where = f"{path}/fields/{index}"
            made = self._field(each, record.namespace, where, depth)
            if made.name in seen:
                raise _invalid(where, f'record {record.name} has two fields named "{made.name}"')
            seen[made.name] = None
            record.fields.append(made)
        if self.is_new:
            for index, made in enumerate(record.fields):
                if made.has_default and not _fits(made.default, made.type):
                    given = f'the default of field "{made.name}" is {_shown(made.default)}'
                    raise _invalid(f"{path}/fields/{index}", f"{given}, which is not a valid {_called(made.type)}")
        return record

    def _field(self, node: Any, namespace: str, path: str, depth: int) -> Field:
        if not isinstance(node, dict):
            raise _invalid(path, "a field must be an object")
        name = _member(node, "name", path)
        if not isinstance(name, str) or len(name) > self._limits.name_length_max or not self._is_name(name):
            raise _invalid(path, f"{_shown(name)} is not a field's name")
        made = self.parse(_member(node, "type", path), namespace, f"{path}/type", depth + 1)
        order = node.get("order", "ascending")
        if order not in _ORDERS:
            raise _invalid(path, f"the order of a field must be one of {', '.join(_ORDERS)}")
        doc = node.get("doc")
        return Field(
            name,
            made,
            node.get("default", MISSING),
            _texts(node, "aliases", path),
            doc if isinstance(doc, str) else None,
            order,
            _others(node, "name", "type", "default", "aliases", "doc", "order"),
        )

    def _enum(self, node: Json, namespace: str, path: str) -> EnumType:
        name, aliases, doc = self._head(node, namespace, path)
        others = _others(node, *_RESERVED, "default")
        symbols = _texts(node, "symbols", path, is_required=True)
        for symbol in symbols:
            self._count(path)
            if not self._is_name(symbol):
                raise _invalid(path, f"{_shown(symbol)} is not a symbol: symbols have letters, digits and _")
        if len(dict.fromkeys(symbols)) < len(symbols):
            raise _invalid(path, f"enum {name} has a symbol twice")
        default = node.get("default")
        if default is not None and default not in symbols:
            raise _invalid(path, f"the default of enum {name} is not one of its symbols")
        made = EnumType(name, "enum", aliases, doc, others, symbols, default)
        self._define(made, path)
        return made

    def _fixed(self, node: Json, namespace: str, path: str) -> Fixed:
        name, aliases, doc = self._head(node, namespace, path)
        size = _member(node, "size", path)
        if not isinstance(size, int) or isinstance(size, bool) or size not in _INT or size < 0:
            raise _invalid(path, "the size of a fixed must be a number of bytes")
        others = _others(node, *_RESERVED)
        made = Fixed(name, "fixed", aliases, doc, others, size)
        self._define(made, path)
        return made


def _invalid(path: str, reason: str) -> InvalidSchema:
    return InvalidSchema(f"Invalid schema: {reason} (at {path or '/'})")


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 100 else f"{text[:100]}…"


def _called(made: AvroType) -> str:
    if isinstance(made, Named):
        return f"{made.kind} {made.name}"
    return f"union of {', '.join(map(_called, made.branches))}" if isinstance(made, Union) else made.kind


def _member(node: Json, name: str, path: str) -> Any:
    if name not in node:
        raise _invalid(path, f"{_shown(node.get('name') or node.get('type'))} has no {name}")
    return node[name]


def _texts(node: Json, name: str, path: str, *, is_required: bool = False) -> list[str]:
    found = node.get(name)
    if found is None and not is_required:
        return []
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise _invalid(path, f"{name} must be a list of strings")
    return found


def _others(node: Json, *known: str) -> Json:
    return {name: value for name, value in node.items() if name not in known}


def _fits(value: Any, made: AvroType) -> bool:
    """Whether a default is a value of its type. The recursion is bounded by the depth of the value."""
    match made:
        case Union():
            return any(_fits(value, branch) for branch in made.branches)
        case Record():
            return isinstance(value, dict) and all(
                _fits(value[each.name], each.type) if each.name in value else each.has_default for each in made.fields
            )
        case EnumType():
            return value in made.symbols
        case Fixed():
            return _is_bytes(value) and len(value) == made.size
        case Array():
            return isinstance(value, list) and all(_fits(each, made.items) for each in value)
        case Map():
            return isinstance(value, dict) and all(_fits(each, made.values) for each in value.values())
    match made.kind:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "int" | "long":
            bounds = _INT if made.kind == "int" else _LONG
            return isinstance(value, int) and not isinstance(value, bool) and value in bounds
        case "float" | "double":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "bytes":
            return _is_bytes(value)
    return isinstance(value, str)


def _is_bytes(value: Any) -> bool:
    return isinstance(value, str) and all(ord(character) < 256 for character in value)
