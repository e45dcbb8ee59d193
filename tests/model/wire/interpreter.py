"""A slow codec that walks the declaration for every message: the second opinion on the generated ones.

It shares nothing with them but the declarations, and prefers the obvious to the fast.
"""

from __future__ import annotations

import io
import struct
from typing import Any

from millbeck.wire.schema import Array, Field, Primitive, schema_of


class Malformed(Exception):
    """The bytes are no message."""


class Writer:
    def __init__(self, version: int, flexible: bool) -> None:
        self.version = version
        self.flexible = flexible

    def struct(self, message: Any) -> bytes:
        plain = b""
        tagged: list[tuple[int, bytes]] = []
        for field in schema_of(type(message)).fields:
            if self.version not in field.versions:
                continue
            value = getattr(message, field.name)
            if self.flexible and field.tag is not None and self.version in field.tagged:
                if value != field.make_default():
                    tagged.append((field.tag, self.field(field, value)))
            else:
                plain += self.field(field, value)
        if self.flexible:
            plain += self.varint(len(tagged))
            for tag, content in sorted(tagged):
                plain += self.varint(tag) + self.varint(len(content)) + content
        return plain

    def field(self, field: Field, value: Any) -> bytes:
        compact = self.flexible if field.flexible is None else self.version in field.flexible
        assert value is not None or self.version in field.nullable
        if isinstance(field.type, Array):
            count = self.varint(0 if value is None else len(value) + 1) if compact else self.count(value)
            return count + b"".join(self.element(field.type.element, item, compact) for item in value or ())
        if not isinstance(field.type, Primitive) and self.version in field.nullable:
            null = b"\0" if self.flexible and self.version in field.tagged else b"\xff"
            return null if value is None else b"\x01" + self.struct(value)
        return self.element(field.type, value, compact)

    def element(self, type_: Primitive | type[Any], value: Any, compact: bool) -> bytes:
        if not isinstance(type_, Primitive):
            return self.struct(value)
        if type_.name == "uuid":
            return bytes(value)
        if type_.format:
            return struct.pack(">" + type_.format, value)
        if value is None:
            return b"\0" if compact else b"\xff" * (2 if type_.name == "string" else 4)
        encoded = value.encode() if type_.name == "string" else bytes(value)
        if compact:
            return self.varint(len(encoded) + 1) + encoded
        return struct.pack(">h" if type_.name == "string" else ">i", len(encoded)) + encoded

    def count(self, value: list[Any] | None) -> bytes:
        return struct.pack(">i", -1 if value is None else len(value))

    def varint(self, value: int) -> bytes:
        groups = [value & 0x7F]
        while value := value >> 7:
            groups.append(value & 0x7F)
        return bytes([group | 0x80 for group in groups[:-1]] + groups[-1:])


class Reader:
    def __init__(self, version: int, flexible: bool, data: bytes) -> None:
        self.version = version
        self.flexible = flexible
        self.stream = io.BytesIO(data)

    def take(self, size: int) -> bytes:
        taken = self.stream.read(size)
        if size < 0 or len(taken) < size:
            raise Malformed("cut off")
        return taken

    def number(self, letter: str) -> Any:
        return struct.unpack(">" + letter, self.take(struct.calcsize(">" + letter)))[0]

    def varint(self) -> int:
        value = 0
        for shift in range(0, 35, 7):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise Malformed("varint too long")

    def struct(self, cls: type[Any]) -> Any:
        values: dict[str, Any] = {}
        tagged: dict[int, Field] = {}
        for field in schema_of(cls).fields:
            if self.version not in field.versions:
                continue
            if self.flexible and field.tag is not None and self.version in field.tagged:
                tagged[field.tag] = field
            else:
                values[field.name] = self.field(field)
        if self.flexible:
            tag_count = self.varint()
            if tag_count > 1024:
                raise Malformed("too many tags")
            for _ in range(tag_count):
                tag, size = self.varint(), self.varint()
                start = self.stream.tell()
                if tag in tagged:
                    values[tagged[tag].name] = self.field(tagged[tag])
                else:
                    self.take(size)
                if self.stream.tell() != start + size:
                    raise Malformed("tag not filled")
        return cls(**values)

    def field(self, field: Field) -> Any:
        compact = self.flexible if field.flexible is None else self.version in field.flexible
        nullable = self.version in field.nullable
        if isinstance(field.type, Array):
            count = self.varint() - 1 if compact else self.number("i")
            if count < 0:
                return self.null(nullable)
            if count > len(self.stream.getbuffer()):
                raise Malformed("too many elements")
            return [self.element(field.type.element, compact, False) for _ in range(count)]
        if not isinstance(field.type, Primitive) and nullable:
            is_tagged = self.flexible and self.version in field.tagged
            mark = self.number("b")
            return None if (mark == 0 if is_tagged else mark < 0) else self.struct(field.type)
        return self.element(field.type, compact, nullable)

    def element(self, type_: Primitive | type[Any], compact: bool, nullable: bool) -> Any:
        if not isinstance(type_, Primitive):
            return self.struct(type_)
        if type_.format:
            return self.number(type_.format)
        size = self.varint() - 1 if compact else self.number("h" if type_.name == "string" else "i")
        if size < 0:
            return self.null(nullable)
        taken = self.take(size)
        if type_.name != "string":
            return taken
        try:
            return taken.decode()
        except UnicodeDecodeError:
            raise Malformed("not utf-8") from None

    def null(self, nullable: bool) -> None:
        if not nullable:
            raise Malformed("null where none is allowed")


def encode(message: Any, version: int) -> bytes:
    return Writer(version, schema_of(type(message)).is_flexible(version)).struct(message)


def decode(cls: type[Any], version: int, data: bytes) -> tuple[Any, int]:
    """The message and how many bytes it took; Malformed for anything else."""
    reader = Reader(version, schema_of(cls).is_flexible(version), data)
    return reader.struct(cls), reader.stream.tell()
