"""Text forms of Avro types.

The canonical form has the members in the order in which Avro's Java library prints them, names relative to the
enclosing namespace, and no spaces. Confluent's registry stores the same form, so a schema gets the same text in both.
The normalised form writes every name in full and sorts what the specification does not order.
"""

from __future__ import annotations

from typing import Any

from millbeck.client.schemas.log_records import Json, encode_json
from millbeck.registry.formats.avro import (
    Array,
    AvroSchema,
    AvroType,
    EnumType,
    Field,
    Fixed,
    Map,
    Named,
    Primitive,
    Record,
    Union,
)
from millbeck.registry.formats.interface import Form


def text_of(schema: AvroSchema, form: Form) -> str:
    known = {} if form is Form.RESOLVED else dict.fromkeys(schema.imported_names)
    printer = _Printer(known, is_normal=form is Form.NORMALIZED)
    return encode_json(printer.tree(schema.root, "")).decode("utf-8", "surrogatepass")


class _Printer:
    def __init__(self, known: dict[str, None], *, is_normal: bool) -> None:
        self._known = known
        self._is_normal = is_normal

    def tree(self, made: AvroType, namespace: str) -> Any:
        match made:
            case Union():
                return [self.tree(branch, namespace) for branch in made.branches]
            case Primitive():
                return {"type": made.kind, **self._others(made.properties)} if made.properties else made.kind
            case Array():
                items = self.tree(made.items, namespace)
                return {"type": "array", "items": items, **self._others(made.properties)}
            case Map():
                values = self.tree(made.values, namespace)
                return {"type": "map", "values": values, **self._others(made.properties)}
            case Record() | EnumType() | Fixed():
                return self._named(made, namespace)

    def _named(self, made: Record | EnumType | Fixed, namespace: str) -> Any:
        if made.name in self._known:
            return self._relative(made.name, namespace)
        self._known[made.name] = None
        members: Json = {"type": made.kind, **self._name(made, namespace)}
        if made.doc is not None:
            members["doc"] = made.doc
        match made:
            case Record():
                members["fields"] = [self._field(each, made.namespace) for each in made.fields]
            case EnumType():
                members["symbols"] = made.symbols
                if made.default is not None:
                    members["default"] = made.default
            case Fixed():
                members["size"] = made.size
        members.update(self._others(made.properties))
        if made.aliases:
            members["aliases"] = [self._relative(alias, made.namespace) for alias in made.aliases]
        return members

    def _name(self, made: Named, namespace: str) -> Json:
        if self._is_normal:
            return {"name": made.name} if made.namespace or not namespace else {"name": made.name, "namespace": ""}
        if made.namespace == namespace:
            return {"name": made.short_name}
        return {"name": made.short_name, "namespace": made.namespace}

    def _relative(self, name: str, namespace: str) -> str:
        space, _, short = name.rpartition(".")
        return short if space == namespace and not self._is_normal else name

    def _field(self, made: Field, namespace: str) -> Json:
        members: Json = {"name": made.name, "type": self.tree(made.type, namespace)}
        if made.doc is not None:
            members["doc"] = made.doc
        if made.has_default:
            members["default"] = made.default
        if made.order != "ascending":
            members["order"] = made.order
        if made.aliases:
            members["aliases"] = made.aliases
        return {**members, **self._others(made.properties)}

    def _others(self, properties: Json) -> Json:
        return dict(sorted(properties.items())) if self._is_normal else properties
