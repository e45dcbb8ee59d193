"""Descriptors as a .proto.

Names of types are full, so the text means the same wherever it is compiled. The normal form also sorts what has no
order: imports, options, fields and values by number, ranges. Messages keep their order, because records refer to it.
Comments are not in descriptors.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    Edition,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    ServiceDescriptorProto,
    SymbolVisibility,
)
from google.protobuf.descriptor_pool import DescriptorPool

from millbeck.registry.formats.protobuf.files import KINDS
from millbeck.registry.formats.protobuf.options import OptionPrinter, quoted

_FIELD_MAX: Final = 2**29 - 1
_ENUM_MAX: Final = 2**31 - 1
_LABELS: Final = {
    FieldDescriptorProto.LABEL_OPTIONAL: "optional ",
    FieldDescriptorProto.LABEL_REQUIRED: "required ",
    FieldDescriptorProto.LABEL_REPEATED: "repeated ",
}
_VISIBILITIES: Final = {SymbolVisibility.VISIBILITY_LOCAL: "local ", SymbolVisibility.VISIBILITY_EXPORT: "export "}
_PROTO2: Final = "proto2"
_EDITIONS: Final = "editions"


def printed(file: FileDescriptorProto, pool: DescriptorPool, *, is_normal: bool) -> str:
    """The text of a file; ``pool`` has its extensions."""
    return "\n".join(_Printer(file, pool, is_normal=is_normal).lines()) + "\n"


class _Printer:
    def __init__(self, file: FileDescriptorProto, pool: DescriptorPool, *, is_normal: bool) -> None:
        self._file = file
        self._options = OptionPrinter(pool)
        self._is_normal = is_normal
        self._syntax = file.syntax or _PROTO2

    def lines(self) -> Iterator[str]:
        if self._syntax == _EDITIONS:
            yield f"edition = {quoted(Edition.Name(self._file.edition).removeprefix('EDITION_'))};"
        else:
            yield f"syntax = {quoted(self._syntax)};"
        if self._file.package:
            yield f"package {self._file.package};"
        yield from self._imports()
        yield from self._settings(self._file.options, "")
        groups = self._groups(self._file.extension)
        for message in self._file.message_type:
            if message.name not in groups:
                yield from self._message(message, "")
        for enum in self._file.enum_type:
            yield from self._enum(enum, "")
        yield from self._extensions(self._file.extension, {}, "")
        for service in self._file.service:
            yield from self._service(service)

    def _imports(self) -> Iterator[str]:
        modifiers = {
            **dict.fromkeys(self._file.public_dependency, "public "),
            **dict.fromkeys(self._file.weak_dependency, "weak "),
        }
        found = [(name, modifiers.get(index, "")) for index, name in enumerate(self._file.dependency)]
        found += [(name, "option ") for name in self._file.option_dependency]
        for name, modifier in sorted(found) if self._is_normal else found:
            yield f"import {modifier}{quoted(name)};"

    def _settings(self, options: Any, indent: str) -> Iterator[str]:
        for each in self._options.assignments(options, is_sorted=self._is_normal):
            yield f"{indent}option {each};"

    def _bracketed(self, *given: str, options: Any) -> str:
        every = [*given, *self._options.assignments(options, is_sorted=self._is_normal)]
        return f" [{', '.join(every)}]" if every else ""

    # messages

    def _message(self, message: DescriptorProto, indent: str) -> Iterator[str]:
        yield f"{indent}{_VISIBILITIES.get(message.visibility, '')}message {message.name} {{"
        yield from self._body(message, indent + "  ")
        yield f"{indent}}}"

    def _body(self, message: DescriptorProto, indent: str) -> Iterator[str]:
        yield from self._settings(message.options, indent)
        yield from self._reserved(message.reserved_range, message.reserved_name, _FIELD_MAX + 1, 1, indent)
        yield from self._extension_ranges(message, indent)
        nested = {each.name: each for each in message.nested_type}
        groups = self._groups((*message.field, *message.extension))
        yield from self._fields(message, nested, indent)
        for each in message.nested_type:
            if not each.options.map_entry and each.name not in groups:
                yield from self._message(each, indent)
        for enum in message.enum_type:
            yield from self._enum(enum, indent)
        yield from self._extensions(message.extension, nested, indent)

    def _fields(self, message: DescriptorProto, nested: dict[str, DescriptorProto], indent: str) -> Iterator[str]:
        done: dict[int, None] = {}
        for each in self._by_number(message.field):
            if not each.HasField("oneof_index") or each.proto3_optional:
                yield from self._field(each, nested, indent, self._label(each))
            elif each.oneof_index not in done:
                done[each.oneof_index] = None
                oneof = message.oneof_decl[each.oneof_index]
                yield f"{indent}oneof {oneof.name} {{"
                yield from self._settings(oneof.options, indent + "  ")
                for member in self._by_number(message.field):
                    if member.HasField("oneof_index") and member.oneof_index == each.oneof_index:
                        yield from self._field(member, nested, indent + "  ", "")
                yield f"{indent}}}"

    def _by_number(self, fields: Any) -> list[FieldDescriptorProto]:
        return sorted(fields, key=lambda each: int(each.number)) if self._is_normal else list(fields)

    def _groups(self, fields: Any) -> dict[str, None]:
        """The names of the messages that are declared together with their field."""
        return {each.type_name.rpartition(".")[2]: None for each in fields if self._is_group(each)}

    def _is_group(self, field: FieldDescriptorProto) -> bool:
        return field.type == FieldDescriptorProto.TYPE_GROUP and self._syntax == _PROTO2

    def _label(self, field: FieldDescriptorProto) -> str:
        if field.label == FieldDescriptorProto.LABEL_OPTIONAL and self._syntax != _PROTO2 and not field.proto3_optional:
            return ""
        return _LABELS[field.label]

    def _field(
        self, field: FieldDescriptorProto, nested: dict[str, DescriptorProto], indent: str, label: str
    ) -> Iterator[str]:
        inner = nested.get(field.type_name.rpartition(".")[2]) if field.type_name else None
        options = self._bracketed(*self._given(field), options=field.options)
        if self._is_group(field):
            assert inner is not None
            yield f"{indent}{label}group {inner.name} = {field.number}{options} {{"
            yield from self._body(inner, indent + "  ")
            yield f"{indent}}}"
            return
        kind = field.type_name or KINDS[field.type]
        if inner is not None and inner.options.map_entry:
            key, value = inner.field
            label, kind = "", f"map<{KINDS[key.type]}, {value.type_name or KINDS[value.type]}>"
        yield f"{indent}{label}{kind} {field.name} = {field.number}{options};"

    def _given(self, field: FieldDescriptorProto) -> Iterator[str]:
        if field.HasField("default_value"):
            yield f"default = {_default(field)}"
        if field.HasField("json_name") and field.json_name != _camel(field.name) and not field.extendee:
            yield f"json_name = {quoted(field.json_name)}"

    def _extensions(self, fields: Any, nested: dict[str, DescriptorProto], indent: str) -> Iterator[str]:
        if not nested:
            nested = {each.name: each for each in self._file.message_type}
        for each in fields:
            yield f"{indent}extend {each.extendee} {{"
            yield from self._field(each, nested, indent + "  ", self._label(each))
            yield f"{indent}}}"

    def _extension_ranges(self, message: DescriptorProto, indent: str) -> Iterator[str]:
        for each in message.extension_range:
            options = self._bracketed(options=each.options)
            yield f"{indent}extensions {_range(each.start, each.end - 1, _FIELD_MAX)}{options};"

    def _reserved(self, ranges: Any, names: Any, maximum: int, beyond: int, indent: str) -> Iterator[str]:
        """The lines of reserved ranges and names; ``beyond`` is 1 if the end of a range is exclusive, else 0."""
        found = [(each.start, each.end - beyond) for each in ranges]
        if found:
            shown = [
                _range(start, end, maximum - beyond) for start, end in (sorted(found) if self._is_normal else found)
            ]
            yield f"{indent}reserved {', '.join(shown)};"
        listed = sorted(names) if self._is_normal else list(names)
        if listed:
            shown = listed if self._syntax == _EDITIONS else [quoted(each) for each in listed]
            yield f"{indent}reserved {', '.join(shown)};"

    # enums and services

    def _enum(self, enum: EnumDescriptorProto, indent: str) -> Iterator[str]:
        yield f"{indent}{_VISIBILITIES.get(enum.visibility, '')}enum {enum.name} {{"
        yield from self._settings(enum.options, indent + "  ")
        yield from self._reserved(enum.reserved_range, enum.reserved_name, _ENUM_MAX, 0, indent + "  ")
        values = list(enum.value)
        if self._is_normal:
            # The first value is the default, and stays first.
            values[1:] = sorted(values[1:], key=lambda each: int(each.number))
        for each in values:
            yield f"{indent}  {each.name} = {each.number}{self._bracketed(options=each.options)};"
        yield f"{indent}}}"

    def _service(self, service: ServiceDescriptorProto) -> Iterator[str]:
        yield f"service {service.name} {{"
        yield from self._settings(service.options, "  ")
        for each in service.method:
            taken = f"{'stream ' if each.client_streaming else ''}{each.input_type}"
            given = f"{'stream ' if each.server_streaming else ''}{each.output_type}"
            settings = list(self._settings(each.options, "    "))
            yield f"  rpc {each.name}({taken}) returns ({given})" + (" {" if settings else ";")
            if settings:
                yield from settings
                yield "  }"
        yield "}"


def _range(start: int, end: int, maximum: int) -> str:
    """The text of a range whose ``end`` is inclusive."""
    if start == end:
        return str(start)
    return f"{start} to {'max' if end == maximum else end}"


def _default(field: FieldDescriptorProto) -> str:
    if field.type == FieldDescriptorProto.TYPE_STRING:
        return quoted(field.default_value)
    if field.type == FieldDescriptorProto.TYPE_BYTES:
        return f'"{field.default_value}"'  # escaped in the descriptor already
    return str(field.default_value)


def _camel(name: str) -> str:
    """The default JSON name of a field."""
    head, *parts = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in parts)
