"""Avro compatibility: whether a reader's schema can read data of a writer's schema, by the specification's schema
resolution.

Each rule of the section "Schema Resolution" is one branch here. Two named types are compared only once. While a pair is
being compared it counts as readable, so that recursive types terminate; if it turns out not to be readable, everything
is compared again with that result.

Names of records, enums and fixed types are compared without their namespace, and the reader's aliases count, as the
specification says.
"""

from __future__ import annotations

from typing import Final

from millbeck.registry.errors import SchemaTooLarge
from millbeck.registry.formats.assumptions import PROBLEMS_MAX, STEPS_MAX, Assumptions, Steps
from millbeck.registry.formats.avro import Array, AvroType, EnumType, Field, Fixed, Map, Named, Primitive, Record, Union
from millbeck.registry.formats.interface import Incompatibility, Roles

_PROMOTIONS: Final = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}
"""The wider types that a reader may use, by the writer's type."""


def problems_reading(reader: AvroType, writer: AvroType, roles: Roles) -> list[Incompatibility]:
    """The reasons why the reader cannot read the writer's data, at most `PROBLEMS_MAX`; empty if it can."""
    try:
        return _Resolution(roles).resolve(reader, writer)[:PROBLEMS_MAX]
    except RecursionError:
        raise SchemaTooLarge("the types of the schema refer to each other in a chain that is too long") from None


def _called(made: AvroType) -> str:
    return f"{made.kind} {made.name}" if isinstance(made, Named) else made.kind


class _Resolution:
    def __init__(self, roles: Roles) -> None:
        self._roles = roles
        self._assumptions = Assumptions(Steps(STEPS_MAX))

    def resolve(self, reader: AvroType, writer: AvroType) -> list[Incompatibility]:
        return self._assumptions.resolve(lambda: self.compare(reader, writer, ""))

    def compare(self, reader: AvroType, writer: AvroType, path: str) -> list[Incompatibility]:
        self._assumptions.steps.add(1)
        if isinstance(writer, Union):
            return self._writer_union(reader, writer, path)
        if isinstance(reader, Union):
            return self._reader_union(reader, writer, path)
        if not (isinstance(reader, Named) and isinstance(writer, Named)):
            return self._unnamed(reader, writer, path)
        return self._assumptions.once((id(reader), id(writer)), lambda: self._named(reader, writer, path))

    def _unnamed(self, reader: AvroType, writer: AvroType, path: str) -> list[Incompatibility]:
        if isinstance(reader, Array) and isinstance(writer, Array):
            return self.compare(reader.items, writer.items, f"{path}/items")
        if isinstance(reader, Map) and isinstance(writer, Map):
            return self.compare(reader.values, writer.values, f"{path}/values")
        if isinstance(reader, Primitive) and isinstance(writer, Primitive):
            if reader.kind == writer.kind or reader.kind in _PROMOTIONS.get(writer.kind, ()):
                return []
            return [self._type_mismatch(reader, writer, path)]
        return [self._type_mismatch(reader, writer, path)]

    def _writer_union(self, reader: AvroType, writer: Union, path: str) -> list[Incompatibility]:
        """Compare a writer's union: every branch may have been written, so every branch must be readable."""
        problems: list[Incompatibility] = []
        for branch in writer.branches:
            if len(problems) >= PROBLEMS_MAX:
                break
            found = self.compare(reader, branch, path)
            if not found:
                continue
            if isinstance(reader, Union):
                problems += found
            else:
                problems.append(
                    self._problem(
                        "TYPE_MISMATCH",
                        path,
                        f"the {self._roles.writer} schema may have written {_called(branch)}, which "
                        f"{_called(reader)} of the {self._roles.reader} schema cannot read; use "
                        "a union that contains it",
                        f"reader type: {reader.kind.upper()} not compatible with writer type: {branch.kind.upper()}",
                    )
                )
        return problems

    def _reader_union(self, reader: Union, writer: AvroType, path: str) -> list[Incompatibility]:
        nearest: list[Incompatibility] = []
        for index, branch in enumerate(reader.branches):
            found = self.compare(branch, writer, f"{path}/{index}")
            if not found:
                return []
            if branch.kind == writer.kind and not nearest:
                nearest = found
        return nearest or [
            self._problem(
                "MISSING_UNION_BRANCH",
                path,
                f"the {self._roles.writer} schema writes {_called(writer)}, which no branch of the union of the "
                f"{self._roles.reader} schema reads; add it to the union",
                f"reader union lacking writer type: {writer.kind.upper()}",
            )
        ]

    def _named(self, reader: AvroType, writer: AvroType, path: str) -> list[Incompatibility]:
        assert isinstance(reader, Named)
        assert isinstance(writer, Named)
        if isinstance(reader, Record) != isinstance(writer, Record) or (
            not isinstance(reader, Record) and reader.kind != writer.kind
        ):
            return [self._type_mismatch(reader, writer, path)]
        if reader.short_name != writer.short_name and writer.name not in reader.aliases:
            problem = self._problem(
                "NAME_MISMATCH",
                f"{path}/name",
                f"the {reader.kind} is named {reader.name} in the {self._roles.reader} schema and {writer.name} in the "
                f"{self._roles.writer} schema; an alias {writer.name} would make it readable",
                f"expected: {writer.name}",
            )
            return [problem]
        if isinstance(reader, Record) and isinstance(writer, Record):
            return self._record(reader, writer, path)
        if isinstance(reader, EnumType) and isinstance(writer, EnumType):
            return self._enum(reader, writer, path)
        assert isinstance(reader, Fixed)
        assert isinstance(writer, Fixed)
        if reader.size == writer.size:
            return []
        return [
            self._problem(
                "FIXED_SIZE_MISMATCH",
                f"{path}/size",
                f"fixed {reader.name} has {reader.size} bytes in the {self._roles.reader} schema and {writer.size} in "
                f"the {self._roles.writer} schema; the size cannot change",
                f"expected: {writer.size}, found: {reader.size}",
            )
        ]

    def _enum(self, reader: EnumType, writer: EnumType, path: str) -> list[Incompatibility]:
        missing = [symbol for symbol in writer.symbols if symbol not in reader.symbols]
        if not missing or reader.default is not None:
            return []
        shown = ", ".join(missing[:20])
        return [
            self._problem(
                "MISSING_ENUM_SYMBOLS",
                f"{path}/symbols",
                f"enum {reader.name} of the {self._roles.reader} schema has no symbol {shown}, which the "
                f"{self._roles.writer} schema has; keep the symbols, or give the enum a default",
                f"[{shown}]",
            )
        ]

    def _record(self, reader: Record, writer: Record, path: str) -> list[Incompatibility]:
        problems: list[Incompatibility] = []
        written = {each.name: each for each in writer.fields}
        for index, each in enumerate(reader.fields):
            if len(problems) >= PROBLEMS_MAX:
                break
            where = f"{path}/fields/{index}"
            source = _source(each, written)
            if source is not None:
                problems += self.compare(each.type, source.type, f"{where}/type")
            elif not each.has_default:
                problems.append(
                    self._problem(
                        "READER_FIELD_MISSING_DEFAULT_VALUE",
                        where,
                        f"the field {each.name} of the {self._roles.reader} schema has no default value and is missing "
                        f"in the {self._roles.writer} schema; give it a default value",
                        each.name,
                    )
                )
        return problems

    def _type_mismatch(self, reader: AvroType, writer: AvroType, path: str) -> Incompatibility:
        wider = _PROMOTIONS.get(writer.kind, ())
        accepted = f"; {writer.kind} can be read as {', '.join(wider)}" if wider else ""
        return self._problem(
            "TYPE_MISMATCH",
            path,
            f"the type is {_called(reader)} in the {self._roles.reader} schema and {_called(writer)} in the "
            f"{self._roles.writer} schema{accepted}",
            f"reader type: {reader.kind.upper()} not compatible with writer type: {writer.kind.upper()}",
        )

    @staticmethod
    def _problem(kind: str, path: str, sentence: str, detail: str) -> Incompatibility:
        return Incompatibility(kind, path or "/", sentence, detail)


def _source(field: Field, written: dict[str, Field]) -> Field | None:
    """The writer's field from which a reader's field takes its value; None if there is none."""
    return next((written[name] for name in (field.name, *field.aliases) if name in written), None)
