"""Records as text: kcat's format strings, the console consumer's properties, and JSON.

``%s`` value, ``%S`` its length, ``%R`` its length as four bytes, ``%k`` key, ``%K`` its length, ``%t`` topic, ``%p``
partition, ``%o`` offset, ``%T`` timestamp in milliseconds, ``%h`` headers, ``%%`` a percent sign; ``\\n``, ``\\t``,
``\\xNN`` and so on are escapes. A format is parsed once; it formats records as bytes, as keys and values are bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from struct import Struct
from typing import TYPE_CHECKING, Final

from millbeck.cli.output import document

if TYPE_CHECKING:
    from millbeck.kernel.ids import TopicPartition
    from millbeck.records.record import Record

RecordPrinter = Callable[["TopicPartition", "Record"], bytes]

FORMATTER_SETTINGS: Final = (
    "print.timestamp",
    "print.partition",
    "print.offset",
    "print.epoch",
    "print.headers",
    "print.key",
    "print.value",
    "key.separator",
    "line.separator",
    "headers.separator",
    "null.literal",
)
_LENGTH: Final = Struct(">i")
_ESCAPE: Final = re.compile(r"\\(x[0-9a-fA-F]{2}|.)", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}
_TOKEN: Final = re.compile(r"%(.)", re.DOTALL)


class FormatError(ValueError):
    """A format string with an unknown token."""


def kcat_formatter(text: str, *, null: bytes = b"") -> RecordPrinter:
    """A formatter for a kcat format string; raises `FormatError`."""
    pieces: list[bytes | RecordPrinter] = []
    position = 0
    for token in _TOKEN.finditer(text):
        if token.start() > position:
            pieces.append(_unescaped(text[position : token.start()]))
        pieces.append(_piece(token[1], null))
        position = token.end()
    if text.endswith("%") and not text.endswith("%%"):
        raise FormatError("a format must not end with a single %")
    pieces.append(_unescaped(text[position:]))

    def show(partition: TopicPartition, record: Record) -> bytes:
        return b"".join(piece if isinstance(piece, bytes) else piece(partition, record) for piece in pieces)

    return show


def property_formatter(properties: Mapping[str, str]) -> RecordPrinter:
    """A formatter like Kafka's console consumer; raises `FormatError` for an unknown property."""
    for name in properties:
        if name not in FORMATTER_SETTINGS:
            raise FormatError(f"{name} is not one of {', '.join(FORMATTER_SETTINGS)}")
    separator = _unescaped(properties.get("key.separator", "\t"))
    end = _unescaped(properties.get("line.separator", "\n"))
    null = properties.get("null.literal", "null").encode()
    headers_separator = _unescaped(properties.get("headers.separator", ","))

    def is_on(name: str, default: str = "false") -> bool:
        return properties.get(name, default).lower() == "true"

    parts: list[RecordPrinter] = []
    if is_on("print.timestamp"):
        parts.append(lambda partition, record: b"CreateTime:%d" % record.timestamp)
    if is_on("print.partition"):
        parts.append(lambda partition, record: b"Partition:%d" % partition.partition)
    if is_on("print.offset"):
        parts.append(lambda partition, record: b"Offset:%d" % record.offset)
    if is_on("print.headers"):
        parts.append(lambda partition, record: headers_text(record, b":", headers_separator, null) or b"NO_HEADERS")
    if is_on("print.key"):
        parts.append(lambda partition, record: null if record.key is None else record.key)
    if is_on("print.value", "true"):
        parts.append(lambda partition, record: null if record.value is None else record.value)

    def show(partition: TopicPartition, record: Record) -> bytes:
        return separator.join([part(partition, record) for part in parts]) + end

    return show


def document_formatter(output: str) -> RecordPrinter:
    """A JSON object in a line, or a YAML document. Bytes that are not UTF-8 are ``{"base64": ...}``, so that nothing is
    lost."""

    def show(partition: TopicPartition, record: Record) -> bytes:
        shown = {
            "topic": partition.topic,
            "partition": partition.partition,
            "offset": record.offset,
            "timestamp": record.timestamp,
            "key": _json_of(record.key),
            "value": _json_of(record.value),
            "headers": [
                [_json_of(name.encode("utf-8", "surrogateescape")), _json_of(value)] for name, value in record.headers
            ],
        }
        return document(shown, output).encode() + b"\n"

    return show


def headers_text(record: Record, equals: bytes, separator: bytes, null: bytes) -> bytes:
    return separator.join(
        name.encode("utf-8", "surrogateescape") + equals + (null if value is None else value)
        for name, value in record.headers
    )


def _piece(token: str, null: bytes) -> bytes | RecordPrinter:
    pieces: dict[str, RecordPrinter] = {
        "s": lambda partition, record: null if record.value is None else record.value,
        "S": lambda partition, record: b"%d" % (-1 if record.value is None else len(record.value)),
        "R": lambda partition, record: _LENGTH.pack(-1 if record.value is None else len(record.value)),
        "k": lambda partition, record: null if record.key is None else record.key,
        "K": lambda partition, record: b"%d" % (-1 if record.key is None else len(record.key)),
        "t": lambda partition, record: partition.topic.encode(),
        "p": lambda partition, record: b"%d" % partition.partition,
        "o": lambda partition, record: b"%d" % record.offset,
        "T": lambda partition, record: b"%d" % record.timestamp,
        "h": lambda partition, record: headers_text(record, b"=", b",", null),
    }
    if token == "%":
        return b"%"
    if token not in pieces:
        raise FormatError(f"%{token} is not one of {' '.join(f'%{each}' for each in pieces)} %%")
    return pieces[token]


def _unescaped(text: str) -> bytes:
    def meaning(escape: re.Match[str]) -> str:
        code = escape[1]
        # Surrogates carry single bytes through text.
        if len(code) == 3:
            return bytes.fromhex(code[1:]).decode("ascii", "surrogateescape")
        return _ESCAPES.get(code, code)

    return _ESCAPE.sub(meaning, text).encode("utf-8", "surrogateescape")


def _json_of(payload: bytes | None) -> object:
    if payload is None:
        return None
    try:
        return payload.decode("utf-8")
    except UnicodeDecodeError:
        from base64 import b64encode

        return {"base64": b64encode(payload).decode("ascii")}
