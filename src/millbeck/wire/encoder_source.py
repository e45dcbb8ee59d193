"""Generates the Python source of an encoder for one message at one version.

The function traverses the message once and appends parts to a list that is joined at the end. Consecutive fixed-width
fields, with the length or count after them and the empty tagged section, are packed by one call. A value of a wrong
type or out of range raises struct.error, TypeError or AttributeError, which are converted to `EncodeError`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from struct import Struct, pack
from struct import error as StructError  # noqa: N812
from typing import Any

from millbeck.wire.errors import EncodeError
from millbeck.wire.layout import FEW, VersionLayout, length_size
from millbeck.wire.schema import Array, Field, Primitive
from millbeck.wire.varint import SMALL, unsigned_varint


@cache
def _packers(letter: str) -> tuple[Callable[..., bytes], ...]:
    return tuple(Struct(f">{count}{letter}").pack for count in range(FEW))


class EncoderSource:
    """Collects the lines of one encoder; ``source()`` and ``namespace`` are what exec needs."""

    def __init__(self, cls: type[Any], shape: VersionLayout, title: str) -> None:
        self.namespace: dict[str, Any] = {
            "EncodeError": EncodeError,
            "StructError": StructError,
            "SMALL": SMALL,
            "pack": pack,
            "unsigned_varint": unsigned_varint,
        }
        self._shape = shape
        self._title = title
        self._lines: list[str] = []
        self._depth = 2
        self._run: list[tuple[str, str]] = []
        self._names = 0
        self._add = "add"
        self._struct(cls, "m", cls.__name__)
        self._flush()

    def source(self) -> str:
        body = "\n".join(self._lines) or "        pass"
        return (
            "def encode(m):\n"
            "    parts = []\n"
            "    add = parts.append\n"
            "    try:\n"
            f"{body}\n"
            "        return b''.join(parts)\n"
            "    except (StructError, AttributeError, TypeError, UnicodeEncodeError) as error:\n"
            f"        raise EncodeError(f'{self._title}: {{error}}') from error\n"
        )

    def _line(self, text: str) -> None:
        self._lines.append("    " * self._depth + text)

    def _name(self) -> str:
        self._names += 1
        return f"v{self._names}"

    def _refuse(self, where: str, what: str) -> str:
        return f"raise EncodeError({f'{self._title}: {where} {what}'!r})"

    # Fixed-width runs.

    def _write(self, letter: str, expression: str = "") -> None:
        """Add a fixed-width value to the current run; ``x`` is a zero byte without a value."""
        self._run.append((letter, expression))

    def _flush(self) -> None:
        if not self._run:
            return
        letters = "".join(letter for letter, _ in self._run)
        values = [value for _, value in self._run if value]
        self._run = []
        if not values:
            self._line(f"{self._add}({bytes(len(letters))!r})")
            return
        function = f"pack_{letters}"
        self.namespace.setdefault(function, Struct(">" + letters).pack)
        self._line(f"{self._add}({function}({', '.join(values)}))")

    def _write_varint(self, expression: str) -> None:
        self._flush()
        self._line(f"{self._add}(SMALL[{expression}] if {expression} < 1024 else unsigned_varint({expression}))")

    # Structs.

    def _struct(self, cls: type[Any], source: str, where: str) -> None:
        for field in self._shape.absent_fields(cls):
            self._check_absent(field, source, where)
        for field in self._shape.plain_fields(cls):
            self._field(field, f"{source}.{field.name}", f"{where}.{field.name}")
        if self._shape.flexible:
            self._tagged_section(cls, source, where)

    def _check_absent(self, field: Field, source: str, where: str) -> None:
        if not field.ignorable:
            refusal = self._refuse(f"{where}.{field.name}", "does not exist in this version but is not at its default")
            self._line(f"if {self._differs(field, f'{source}.{field.name}')}: {refusal}")

    def _differs(self, field: Field, source: str) -> str:
        """Return an expression that is true if the field differs from its default."""
        default = field.make_default()
        if default is None:
            return f"{source} is not None"
        if isinstance(default, bool | int | str | bytes | list):
            return f"{source} != {default!r}"
        name = f"default_{field.name}_{len(self.namespace)}"
        self.namespace[name] = default
        return f"{source} != {name}"

    def _tagged_section(self, cls: type[Any], source: str, where: str) -> None:
        fields = self._shape.tagged_fields(cls)
        if not fields:
            self._write("x")
            return
        self._flush()
        tagged, count = self._name(), self._name()
        self._line(f"{tagged} = []; {count} = 0")
        outer = self._add
        for field in fields:
            inside = self._name()
            self._line(f"if {self._differs(field, f'{source}.{field.name}')}:")
            self._depth += 1
            self._line(f"{inside} = []; {count} += 1")
            self._add = f"{inside}.append"
            self._field(field, f"{source}.{field.name}", f"{where}.{field.name}")
            self._flush()
            self._line(f"{inside} = b''.join({inside})")
            self._line(f"{tagged} += ({unsigned_varint(field.tag or 0)!r}, unsigned_varint(len({inside})), {inside})")
            self._depth -= 1
        self._add = outer
        self._line(f"{self._add}(SMALL[{count}])")
        self._line(f"if {count}: {self._add}(b''.join({tagged}))")

    # Fields.

    def _field(self, field: Field, source: str, where: str) -> None:
        compact = self._shape.is_compact(field)
        nullable = self._shape.version in field.nullable
        if isinstance(field.type, Array):
            self._array(field.type.element, source, compact, nullable, where)
        elif isinstance(field.type, Primitive):
            self._primitive(field.type, source, compact, nullable, where)
        elif not nullable:
            self._struct(field.type, self._local(source), where)
        else:
            self._flush()
            name = self._local(source)
            null = b"\0" if self._shape.is_tagged(field) else b"\xff"
            self._line(f"if {name} is None: {self._add}({null!r})")
            self._line("else:")
            self._depth += 1
            self._line(f"{self._add}(b'\\x01')")
            self._struct(field.type, name, where)
            self._flush()
            self._depth -= 1

    def _local(self, source: str) -> str:
        name = self._name()
        self._line(f"{name} = {source}")
        return name

    def _primitive(self, primitive: Primitive, source: str, compact: bool, nullable: bool, where: str) -> None:
        if primitive.name == "uuid":
            name = self._local(source)
            self._line(f"if len({name}) != 16: {self._refuse(where, 'is not 16 bytes')}")
            self._write("16s", name)
        elif primitive.format:
            # A boolean is packed as a number, so that None raises instead of becoming false.
            self._write("b" if primitive.name == "boolean" else primitive.format, source)
        elif nullable:
            self._nullable_sized(primitive, source, compact)
        else:
            name = self._local(f"{source}.encode()" if primitive.name == "string" else source)
            self._sized(primitive, name, compact)

    def _sized(self, primitive: Primitive, name: str, compact: bool) -> None:
        if compact:
            length = self._local(f"len({name}) + 1")
            self._write_varint(length)
        else:
            self._write("h" if length_size(primitive) == 2 else "i", f"len({name})")
            self._flush()
        self._line(f"{self._add}({name})")

    def _nullable_sized(self, primitive: Primitive, source: str, compact: bool) -> None:
        self._flush()
        name = self._local(source)
        null = b"\0" if compact else b"\xff" * length_size(primitive)
        self._line(f"if {name} is None: {self._add}({null!r})")
        self._line("else:")
        self._depth += 1
        if primitive.name == "string":
            self._line(f"{name} = {name}.encode()")
        self._sized(primitive, name, compact)
        self._depth -= 1

    def _array(self, element: Primitive | type[Any], source: str, compact: bool, nullable: bool, where: str) -> None:
        name = self._local(source)
        if nullable:
            self._flush()
            null = b"\0" if compact else b"\xff" * 4
            self._line(f"if {name} is None: {self._add}({null!r})")
            self._line("else:")
            self._depth += 1
        if compact:
            count = self._local(f"len({name}) + 1")
            self._write_varint(count)
        else:
            self._write("i", f"len({name})")
        self._elements(element, name, compact, where)
        if nullable:
            self._flush()
            self._depth -= 1

    def _elements(self, element: Primitive | type[Any], name: str, compact: bool, where: str) -> None:
        self._flush()
        if isinstance(element, Primitive) and element.format and element.name != "uuid":
            letter = "b" if element.name == "boolean" else element.format
            few = f"few_{letter}"
            self.namespace.setdefault(few, _packers(letter))
            self._line(f"if len({name}) < {FEW}: {self._add}({few}[len({name})](*{name}))")
            self._line(f"else: {self._add}(pack(f'>{{len({name})}}{letter}', *{name}))")
            return
        item = self._name()
        self._line(f"for {item} in {name}:")
        self._depth += 1
        if isinstance(element, Primitive):
            self._primitive(element, item, compact, False, where)
        else:
            self._struct(element, item, where)
        self._flush()
        self._depth -= 1
