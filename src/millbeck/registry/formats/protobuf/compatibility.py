"""Whether one Protobuf schema reads what another has written: by field numbers and by the wire encoding of types.

The rules are those that Protobuf documents for updating a message type, and the names of what breaks them are those of
Confluent's registry. Removing a message is refused, since records identify their message by its index in the writer's
schema. Changing the package is refused, since it renames every message. One rule is this registry's own: a number or
name that the writer has reserved must not be used again (`RESERVED_FIELD_USED`).

Pairs of messages are compared once each, from a list of pairs still to compare, so recursive types end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from millbeck.registry.formats.interface import Incompatibility, Roles
from millbeck.registry.formats.protobuf.files import ENUM, GROUP, MESSAGE, Field, Message, ProtoFiles

PROBLEMS_MAX: Final = 50
_VARINT: Final = ("int32", "int64", "uint32", "uint64", "bool", ENUM)
_ZIGZAG: Final = ("sint32", "sint64")
_FIXED_4: Final = ("fixed32", "sfixed32")
_FIXED_8: Final = ("fixed64", "sfixed64")
_LENGTH: Final = ("string", "bytes")
_GROUPS: Final = {
    kind: group for group in (_VARINT, _ZIGZAG, _FIXED_4, _FIXED_8, ("float",), ("double",), _LENGTH) for kind in group
}
"""Groups of field types that can read each other."""


def problems_reading(reader: ProtoFiles, writer: ProtoFiles, roles: Roles) -> list[Incompatibility]:
    """The reasons why the reader cannot read the writer's data, at most `PROBLEMS_MAX`; empty if it can."""
    found: list[Incompatibility] = []
    for problem in _Comparison(reader, writer, roles).problems():
        found.append(problem)
        if len(found) == PROBLEMS_MAX:
            break
    return found


class _Comparison:
    def __init__(self, reader: ProtoFiles, writer: ProtoFiles, roles: Roles) -> None:
        self._reader = reader
        self._writer = writer
        self._roles = roles
        self._pairs: dict[tuple[str, str], None] = {}

    def problems(self) -> Iterator[Incompatibility]:
        old, new = self._writer.main.package, self._reader.main.package
        if old != new:
            yield self._problem(
                "PACKAGE_CHANGED",
                "#/",
                f'the package is "{new}" in the {self._roles.reader} schema and "{old}" in the {self._roles.writer} '
                "one; keep it",
                old,
            )
        for name in self._writer.own_messages:
            message = self._writer.messages[name]
            if message.is_map_entry:
                continue
            there = self._in_reader(name)
            if there in self._reader.messages:
                self._pairs[there, name] = None
            else:
                yield self._problem(
                    "MESSAGE_REMOVED",
                    f"#/{_plain(name, old)}",
                    f"the {self._roles.reader} schema has no message {_plain(name, old)}, which the "
                    f"{self._roles.writer} schema has; keep it, even if it is no longer used",
                    _plain(name, old),
                )
        yield from self._pairs_compared()

    def _pairs_compared(self) -> Iterator[Incompatibility]:
        position = 0
        while position < len(self._pairs):
            # Comparing adds pairs at the end.
            pairs = list(self._pairs)[position:]
            position += len(pairs)
            for reader, writer in pairs:
                yield from self._messages(self._reader.messages[reader], self._writer.messages[writer])

    def _in_reader(self, name: str) -> str:
        """The name that a message of the writer's file has in the reader's package."""
        plain = _plain(name, self._writer.main.package)
        package = self._reader.main.package
        if plain == name and self._writer.main.package:
            return name  # of another package
        return f"{package}.{plain}" if package else plain

    def _messages(self, reader: Message, writer: Message) -> Iterator[Incompatibility]:
        path = f"#/{_plain(writer.full_name, self._writer.main.package)}"
        oneofs = reader.oneofs
        for number, old in writer.fields.items():
            new = reader.fields.get(number)
            where = f"{path}/{number}"
            if new is not None:
                yield from self._fields(new, old, oneofs, where)
            elif old.is_required:
                yield self._problem(
                    "REQUIRED_FIELD_REMOVED",
                    where,
                    f"the required field {old.name} is not in the {self._roles.reader} schema; keep it",
                    old.name,
                )
            elif old.oneof is not None and old.oneof in oneofs:
                yield self._problem(
                    "ONEOF_FIELD_REMOVED",
                    where,
                    f"the oneof {old.oneof} of the {self._roles.reader} schema has no field {old.name}; keep it, or "
                    "remove the whole oneof",
                    old.name,
                )
        for number, new in reader.fields.items():
            if number not in writer.fields:
                yield from self._added(new, writer, f"{path}/{number}")
        yield from self._oneofs(reader, writer, path)

    def _added(self, new: Field, writer: Message, where: str) -> Iterator[Incompatibility]:
        if new.is_required:
            yield self._problem(
                "REQUIRED_FIELD_ADDED",
                where,
                f"the field {new.name} of the {self._roles.reader} schema is required and is not in the "
                f"{self._roles.writer} schema; make it optional",
                new.name,
            )
        is_reserved = any(start <= new.number < end for start, end in writer.reserved_ranges)
        if is_reserved or new.name in writer.reserved_names:
            yield self._problem(
                "RESERVED_FIELD_USED",
                where,
                f"the field {new.name} = {new.number} of the {self._roles.reader} schema has a number or name "
                f"that the {self._roles.writer} schema reserves; choose another one",
                new.name,
            )

    def _fields(self, new: Field, old: Field, oneofs: Collection[str], where: str) -> Iterator[Incompatibility]:
        yield from self._kinds(new, old, where)
        if old.oneof is not None and new.oneof != old.oneof and old.oneof in oneofs:
            yield self._problem(
                "ONEOF_FIELD_REMOVED",
                where,
                f"the field {new.name} is no longer in the oneof {old.oneof} of the {self._roles.reader} schema; keep "
                "it there, or remove the whole oneof",
                old.name,
            )
        if new.is_required and not old.is_required:
            yield self._problem(
                "REQUIRED_FIELD_ADDED",
                where,
                f"the field {new.name} is required in the {self._roles.reader} schema and not in the "
                f"{self._roles.writer} one; keep it optional",
                new.name,
            )
        is_packable = new.kind not in (*_LENGTH, MESSAGE, GROUP)
        if new.is_repeated != old.is_repeated and is_packable and _group(new) == _group(old):
            yield self._problem(
                "FIELD_NUMERIC_LABEL_CHANGED",
                where,
                f"the field {new.name} is {_label(new)} in the {self._roles.reader} schema and {_label(old)} in "
                f"the {self._roles.writer} one; repeated numbers are encoded differently from single ones",
                _label(old),
            )

    def _kinds(self, new: Field, old: Field, where: str) -> Iterator[Incompatibility]:
        if _group(new) != _group(old):
            is_scalar = all(each.kind not in (MESSAGE, GROUP, ENUM) for each in (new, old))
            accepted = f"; {old.kind} can become {', '.join(_group(old))}" if len(_group(old)) > 1 else ""
            yield self._problem(
                "FIELD_SCALAR_KIND_CHANGED" if is_scalar else "FIELD_KIND_CHANGED",
                where,
                f"the field {new.name} is {_called(new)} in the {self._roles.reader} schema and {_called(old)} in the "
                f"{self._roles.writer} one{accepted}; otherwise add a field with a new number",
                old.kind,
            )
            return
        if not new.type_name or not old.type_name:
            return
        has_entries = self._is_entry(self._reader, new) and self._is_entry(self._writer, old)
        if not has_entries and not self._have_same_name(new, old):
            yield self._problem(
                "FIELD_NAMED_TYPE_CHANGED",
                where,
                f"the type of the field {new.name} is {new.type_name} in the {self._roles.reader} schema and "
                f"{old.type_name} in the {self._roles.writer} one; keep the type, or add a field with a new number",
                old.type_name,
            )
        elif new.kind in (MESSAGE, GROUP):
            self._pairs.setdefault((new.type_name, old.type_name))

    def _have_same_name(self, new: Field, old: Field) -> bool:
        """Whether the types of two fields have the same name apart from the package; a type may move to another
        file."""
        if self._in_reader(old.type_name) == new.type_name:
            return True
        return self._reader.local_name(new.type_name) == self._writer.local_name(old.type_name)

    @staticmethod
    def _is_entry(files: ProtoFiles, field: Field) -> bool:
        found = files.messages.get(field.type_name)
        return found is not None and found.is_map_entry

    def _oneofs(self, reader: Message, writer: Message, path: str) -> Iterator[Incompatibility]:
        """Compare oneofs: a reader keeps at most one field of a oneof, so independent fields must not be moved into the
        same one."""
        for name, members in reader.oneofs.items():
            known = [writer.fields[each.number] for each in members if each.number in writer.fields]
            sources = {each.oneof or f"\0{each.number}": None for each in known}
            if len(sources) < 2:
                continue
            moved = ", ".join(each.name for each in known if each.oneof != name)
            where = f"{path}/{name}"
            if any(each.oneof is not None for each in known):
                yield self._problem(
                    "FIELD_MOVED_TO_EXISTING_ONEOF",
                    where,
                    f"{moved} moved into the oneof {name} of the {self._roles.reader} schema, which had fields "
                    f"before; leave them outside, or add new fields to the oneof",
                    name,
                )
            else:
                yield self._problem(
                    "MULTIPLE_FIELDS_MOVED_TO_ONEOF",
                    where,
                    f"{moved} moved into the new oneof {name} of the {self._roles.reader} schema; only one field can",
                    name,
                )

    @staticmethod
    def _problem(kind: str, path: str, sentence: str, detail: str) -> Incompatibility:
        return Incompatibility(kind, path, sentence, detail)


def _plain(name: str, package: str) -> str:
    return name.removeprefix(f"{package}.") if package else name


def _group(field: Field) -> tuple[str, ...]:
    return _GROUPS.get(field.kind, (field.kind,))


def _called(field: Field) -> str:
    return field.type_name or field.kind


def _label(field: Field) -> str:
    return "repeated" if field.is_repeated else "single"
