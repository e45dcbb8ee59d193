"""What is known of a table: its columns with their types, its key. It travels to the tasks as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from millbeck.pipeline.connect.errors import InvalidValue
from millbeck.pipeline.connect.postgres.pgoutput import ReplicaIdentity

JsonObject = dict[str, Any]


class TableId(NamedTuple):
    schema: str
    name: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"


class TypeKind(Enum):
    BASE = "base"
    ENUM = "enum"
    ARRAY = "array"
    OTHER = "other"  # composites, ranges of one's own, multiranges


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A type by its name in the catalog. A domain stands as the type that it is made of."""

    name: str
    kind: TypeKind = TypeKind.BASE
    labels: tuple[str, ...] = ()
    element: ColumnType | None = None

    def as_json(self) -> JsonObject:
        made: JsonObject = {"name": self.name, "kind": self.kind.value}
        if self.labels:
            made["labels"] = list(self.labels)
        if self.element is not None:
            made["element"] = self.element.as_json()
        return made

    @classmethod
    def from_json(cls, found: JsonObject) -> ColumnType:
        element = found.get("element")
        return cls(
            found["name"],
            TypeKind(found["kind"]),
            tuple(found.get("labels", ())),
            None if element is None else cls.from_json(element),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """``default`` is the expression of the catalog, which may be a constant."""

    name: str
    type: ColumnType
    modifier: int = -1
    optional: bool = True
    default: str | None = None
    comment: str | None = None

    def as_json(self) -> JsonObject:
        made: JsonObject = {"name": self.name, "type": self.type.as_json(), "optional": self.optional}
        if self.modifier != -1:
            made["modifier"] = self.modifier
        for name, value in (("default", self.default), ("comment", self.comment)):
            if value is not None:
                made[name] = value
        return made

    @classmethod
    def from_json(cls, found: JsonObject) -> Column:
        return cls(
            name=found["name"],
            type=ColumnType.from_json(found["type"]),
            modifier=found.get("modifier", -1),
            optional=found["optional"],
            default=found.get("default"),
            comment=found.get("comment"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """``key`` names the columns of the primary key, or of the unique index that stands for one."""

    id: TableId
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    replica_identity: ReplicaIdentity = ReplicaIdentity.DEFAULT

    def column(self, name: str) -> Column:
        found = next((column for column in self.columns if column.name == name), None)
        if found is None:
            raise InvalidValue(f"{self.id} has no column {name}")
        return found

    def as_json(self) -> JsonObject:
        return {
            "schema": self.id.schema,
            "name": self.id.name,
            "columns": [column.as_json() for column in self.columns],
            "key": list(self.key),
            "identity": self.replica_identity.value,
        }

    @classmethod
    def from_json(cls, found: JsonObject) -> Table:
        return cls(
            id=TableId(found["schema"], found["name"]),
            columns=tuple(map(Column.from_json, found["columns"])),
            key=tuple(found["key"]),
            replica_identity=ReplicaIdentity(found["identity"]),
        )
