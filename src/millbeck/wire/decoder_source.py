"""Generates the Python source of a decoder for one message at one version.

Theory of operation. The whole message, including nested structs, is decoded by one function that makes no calls except
to create objects. Consecutive fixed-width fields, and the length or count after them, are read by one ``unpack_from``.
The function keeps the position in ``p`` and has few explicit checks: a read past the end raises (struct.error,
IndexError), and a slice past the end leaves ``p`` beyond ``end``, which the next read or the check before the return
detects. Counts are checked before a loop starts, against the remaining bytes and the message's object limit, so time
and memory are bounded by the input's size and that limit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from struct import Struct, unpack_from
from struct import error as StructError  # noqa: N812
from typing import Any

from millbeck.wire.errors import DecodeError
from millbeck.wire.layout import FEW, TAGS_MAX, VersionLayout, length_size
from millbeck.wire.schema import Array, Field, Primitive
from millbeck.wire.varint import continue_varint


def skip_tags(buffer: bytes | memoryview, position: int, count: int) -> int:
    """Skip a section of ``count`` unknown tagged fields; return the position after it."""
    if count > 0x7F:
        count, position = continue_varint(buffer, position, count)
    if count > TAGS_MAX:
        raise DecodeError(f"too many tagged fields ({count}) at byte {position}")
    for _ in range(count):
        tag = buffer[position]
        position += 1
        if tag > 0x7F:
            tag, position = continue_varint(buffer, position, tag)
        size = buffer[position]
        position += 1
        if size > 0x7F:
            size, position = continue_varint(buffer, position, size)
        position += size
    return position


@cache
def _readers(letter: str) -> tuple[Callable[[bytes, int], tuple[Any, ...]], ...]:
    return tuple(Struct(f">{count}{letter}").unpack_from for count in range(FEW))


class DecoderSource:
    """Collects the lines of one decoder; ``source()`` and ``namespace`` are what exec needs."""

    def __init__(self, cls: type[Any], shape: VersionLayout, title: str, object_count_max: int) -> None:
        self.namespace: dict[str, Any] = {
            "DecodeError": DecodeError,
            "StructError": StructError,
            "continue_varint": continue_varint,
            "skip_tags": skip_tags,
            "unpack_from": unpack_from,
        }
        self._shape = shape
        self._title = title
        self._lines: list[str] = []
        self._depth = 2
        self._run: list[tuple[str, str]] = []
        self._names = 0
        self._object_count_max = object_count_max
        result = self._struct(cls, cls.__name__)
        self._flush()
        self._line(f"if p > end: raise DecodeError({title + ': cut off'!r})")
        self._line(f"return {result}, p")

    def source(self) -> str:
        body = "\n".join(self._lines)
        return (
            "def decode(b, p=0):\n"
            "    if b.__class__ is not bytes: b = bytes(b)\n"
            "    end = len(b)\n"
            f"    budget = {self._object_count_max}\n"
            "    try:\n"
            f"{body}\n"
            "    except (StructError, IndexError, UnicodeDecodeError) as error:\n"
            f"        raise DecodeError(f'{self._title}: {{error}} (at byte {{p}} of {{end}})') from None\n"
        )

    def _line(self, text: str) -> None:
        self._lines.append("    " * self._depth + text)

    def _name(self) -> str:
        self._names += 1
        return f"v{self._names}"

    def _constant(self, value: Any, prefix: str) -> str:
        for name, known in self.namespace.items():
            if known is value:
                return name
        name = f"{prefix}{len(self.namespace)}"
        self.namespace[name] = value
        return name

    def _refuse(self, where: str, what: str) -> str:
        return f"raise DecodeError({f'{self._title}: {where} {what}'!r})"

    # Fixed-width runs.

    def _read(self, letter: str) -> str:
        """Add a fixed-width value to the current run; the returned name holds it once the run is flushed."""
        name = self._name()
        self._run.append((name, letter))
        return name

    def _flush(self) -> None:
        if not self._run:
            return
        names = [name for name, _ in self._run]
        letters = "".join(letter for _, letter in self._run)
        self._run = []
        if letters == "B":
            self._line(f"{names[0]} = b[p]; p += 1")
            return
        reader = Struct(">" + letters)
        function = f"read_{letters.replace('?', 't')}"
        self.namespace.setdefault(function, reader.unpack_from)
        targets = ", ".join(names) if len(names) > 1 else f"{names[0]},"
        self._line(f"{targets} = {function}(b, p); p += {reader.size}")

    def _read_length(self, legacy: str, compact: bool) -> str:
        """Read the length or count of a value: null is negative in the legacy encoding, zero in the compact one."""
        name = self._read("B" if compact else legacy)
        self._flush()
        if compact:
            self._line(f"if {name} > 127: {name}, p = continue_varint(b, p, {name})")
        return name

    # Structs.

    def _struct(self, cls: type[Any], where: str) -> str:
        """Read a struct; returns an expression that creates the object, to be used once the run is flushed."""
        values = {field.name: self._field(field, f"{where}.{field.name}") for field in self._shape.plain_fields(cls)}
        if self._shape.flexible:
            values |= self._tagged_section(cls, where)
        arguments = [values.get(name, "") for name in cls.__slots__]
        while arguments and not arguments[-1]:
            arguments.pop()
        fields = {field.name: field for field in cls.__schema__.fields}
        filled = [value or self._default(fields[name]) for name, value in zip(cls.__slots__, arguments, strict=False)]
        return f"{self._constant(cls, cls.__name__)}({', '.join(filled)})"

    def _default(self, field: Field) -> str:
        if isinstance(field.type, Array) and field.has_mutable_default:
            return "[]"
        if field.has_mutable_default:
            return f"{self._constant(field.type, field.type.__name__)}()"  # type: ignore[union-attr]
        value = field.make_default()
        if isinstance(value, float):
            return self._constant(value, "default")
        return repr(value)

    def _tagged_section(self, cls: type[Any], where: str) -> dict[str, str]:
        count = self._read("B")
        self._flush()
        fields = self._shape.tagged_fields(cls)
        if not fields:
            self._line(f"if {count}: p = skip_tags(b, p, {count})")
            return {}
        values = {field.name: self._name() for field in fields}
        for field in fields:
            self._line(f"{values[field.name]} = {self._default(field)}")
        tag, size, stop = self._name(), self._name(), self._name()
        self._line(f"if {count}:")
        self._depth += 1
        self._line(f"if {count} > 127: {count}, p = continue_varint(b, p, {count})")
        self._line(f"if {count} > {TAGS_MAX}: {self._refuse(where, 'has too many tagged fields')}")
        self._line(f"for _ in range({count}):")
        self._depth += 1
        self._line(f"{tag} = b[p]; p += 1")
        self._line(f"if {tag} > 127: {tag}, p = continue_varint(b, p, {tag})")
        self._line(f"{size} = b[p]; p += 1")
        self._line(f"if {size} > 127: {size}, p = continue_varint(b, p, {size})")
        self._line(f"{stop} = p + {size}")
        for index, field in enumerate(fields):
            self._line(f"{'elif' if index else 'if'} {tag} == {field.tag}:")
            self._depth += 1
            value = self._field(field, f"{where}.{field.name}")
            self._flush()
            self._line(f"{values[field.name]} = {value}")
            self._line(f"if p != {stop}: {self._refuse(f'{where}.{field.name}', 'does not fill its tag')}")
            self._depth -= 1
        self._line("else:")
        self._line(f"    p = {stop}")
        self._depth -= 2
        return values

    # Fields.

    def _field(self, field: Field, where: str) -> str:
        compact = self._shape.is_compact(field)
        nullable = self._shape.version in field.nullable
        if isinstance(field.type, Array):
            return self._array(field.type.element, compact, nullable, where)
        if isinstance(field.type, Primitive):
            return self._primitive(field.type, compact, nullable, where)
        if not nullable:
            return self._struct(field.type, where)
        mark = self._read("b")
        self._flush()
        name = self._name()
        self._line(f"if {mark} {'== 0' if self._shape.is_tagged(field) else '< 0'}: {name} = None")
        self._line("else:")
        self._depth += 1
        value = self._struct(field.type, where)
        self._flush()
        self._line(f"{name} = {value}")
        self._depth -= 1
        return name

    def _primitive(self, primitive: Primitive, compact: bool, nullable: bool, where: str) -> str:
        if primitive.format:
            return self._read(primitive.format)
        length = self._read_length("h" if length_size(primitive) == 2 else "i", compact)
        name = self._name()
        stop = f"p + {length} - 1" if compact else f"p + {length}"
        decode = ".decode()" if primitive.name == "string" else ""
        take = f"{length} = {stop}; {name} = b[p:{length}]{decode}; p = {length}"
        is_null = f"not {length}" if compact else f"{length} < 0"
        if nullable:
            self._line(f"if {is_null}: {name} = None")
            self._line(f"else: {take}")
        else:
            self._line(f"if {is_null}: {self._refuse(where, 'must not be null')}")
            self._line(take)
        return name

    def _array(self, element: Primitive | type[Any], compact: bool, nullable: bool, where: str) -> str:
        count = self._read_length("i", compact)
        name = self._name()
        is_null = f"not {count}" if compact else f"{count} < 0"
        if nullable:
            self._line(f"if {is_null}: {name} = None")
            self._line("else:")
            self._depth += 1
        else:
            self._line(f"if {is_null}: {self._refuse(where, 'must not be null')}")
        if compact:
            self._line(f"{count} -= 1")
        self._elements(element, compact, count, name, where)
        if nullable:
            self._depth -= 1
        return name

    def _elements(self, element: Primitive | type[Any], compact: bool, count: str, name: str, where: str) -> None:
        size_min = self._shape.element_size_min(element, compact)
        left = count if size_min == 1 else f"{count} * {size_min}"
        self._line(f"if {left} > end - p: {self._refuse(where, 'counts more elements than there are bytes')}")
        weight = self._shape.object_count(element)
        self._line(f"budget -= {count if weight == 1 else f'{count} * {weight}'}")
        self._line(f"if budget < 0: {self._refuse(where, 'has too many elements')}")
        if isinstance(element, Primitive) and element.format and element.name != "uuid":
            self._numbers(element.format, count, name)
            self._line(f"p += {left}")
            return
        fixed = None if isinstance(element, Primitive) else self._shape.fixed_format(element)
        if fixed is not None and not isinstance(element, Primitive):
            self._fixed_structs(element, fixed, count, name)
            return
        self._line(f"{name} = []")
        self._line(f"for _ in range({count}):")
        self._depth += 1
        if isinstance(element, Primitive):
            value = self._primitive(element, compact, False, where)
        else:
            value = self._struct(element, where)
        self._flush()
        self._line(f"{name}.append({value})")
        self._depth -= 1

    def _numbers(self, letter: str, count: str, name: str) -> None:
        """Read numbers; short arrays, such as a partition's replicas, use a precompiled reader."""
        few = f"few_{letter.replace('?', 't')}"
        self.namespace.setdefault(few, _readers(letter))
        self._line(f"if {count} < {FEW}: {name} = list({few}[{count}](b, p))")
        self._line(f"else: {name} = list(unpack_from(f'>{{{count}}}{letter}', b, p))")

    def _fixed_structs(self, element: type[Any], letters: str, count: str, name: str) -> None:
        """Read an array of fixed-width structs with one call instead of a loop."""
        reader = Struct(">" + letters)
        function = f"iterate_{letters.replace('?', 't')}"
        self.namespace.setdefault(function, reader.iter_unpack)
        values = {field.name: self._name() for field in self._shape.plain_fields(element)}
        fields = {field.name: field for field in element.__schema__.fields}
        arguments = [values.get(slot) or self._default(fields[slot]) for slot in element.__slots__]
        targets = ", ".join(values.values()) + ("," if len(values) == 1 else "")
        made = f"{self._constant(element, element.__name__)}({', '.join(arguments)})"
        stop = self._name()
        self._line(f"{stop} = p + {count} * {reader.size}")
        self._line(f"{name} = [{made} for {targets} in {function}(b[p:{stop}])]; p = {stop}")
