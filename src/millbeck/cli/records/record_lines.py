"""Parse lines into records: headers, key and value, and the marker of null.

The settings are those of Kafka's console producer (``parse.key``, ``key.separator``, ``parse.headers``, ...) and of
kcat's ``-K`` and ``-Z``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

Header = tuple[str, bytes | None]

_ESCAPES: Final = {"\\t": "\t", "\\n": "\n", "\\r": "\r", "\\0": "\0", "\\\\": "\\"}
READER_SETTINGS: Final = (
    "parse.key",
    "key.separator",
    "parse.headers",
    "headers.delimiter",
    "headers.separator",
    "headers.key.separator",
    "null.marker",
    "ignore.error",
)


class LineError(ValueError):
    """A line without the headers, key or header value that the format requires."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineReader:
    key_separator: bytes | None = None
    """The separator of key and value; None means that the whole line is the value."""
    key_is_required: bool = False
    headers_delimiter: bytes | None = None
    """The separator of the headers; None means that lines have no headers."""
    headers_separator: bytes = b","
    header_key_separator: bytes = b":"
    null_marker: bytes | None = None
    """A key or value equal to this is null."""

    def parse(self, line: bytes) -> tuple[bytes | None, bytes | None, tuple[Header, ...]]:
        """Split a line into key, value and headers; raises `LineError`."""
        headers: tuple[Header, ...] = ()
        if self.headers_delimiter is not None:
            text, delimiter, line = line.partition(self.headers_delimiter)
            if not delimiter:
                raise LineError("the line has no headers")
            headers = tuple(self._headers(text))
        key: bytes | None = None
        if self.key_separator is not None:
            before, separator, after = line.partition(self.key_separator)
            if separator:
                key, line = before, after
            elif self.key_is_required:
                raise LineError("the line has no key")
        return self._or_null(key), self._or_null(line), headers

    def _headers(self, text: bytes) -> Iterator[Header]:
        if not text or text == self.null_marker:
            return
        for entry in text.split(self.headers_separator):
            name, separator, value = entry.partition(self.header_key_separator)
            if not separator:
                raise LineError(f"header {entry[:40]!r} has no value")
            yield name.decode("utf-8", "surrogateescape"), self._or_null(value)

    def _or_null(self, part: bytes | None) -> bytes | None:
        return None if part is None or part == self.null_marker else part


def line_format(properties: Mapping[str, str], *, key_separator: str | None, null_is_empty: bool) -> LineReader:
    """Build a reader from the console producer's properties and kcat's options; ``ValueError`` if one is unknown."""
    for name in properties:
        if name not in READER_SETTINGS:
            raise ValueError(f"{name} is not one of {', '.join(READER_SETTINGS)}")
    parses_key = _is_true(properties, "parse.key")
    separator = key_separator if key_separator is not None else properties.get("key.separator", "\t")
    marker = properties.get("null.marker")
    return LineReader(
        key_separator=unescaped(separator).encode() if parses_key or key_separator is not None else None,
        key_is_required=parses_key and not _is_true(properties, "ignore.error"),
        headers_delimiter=(
            unescaped(properties.get("headers.delimiter", "\t")).encode()
            if _is_true(properties, "parse.headers")
            else None
        ),
        headers_separator=unescaped(properties.get("headers.separator", ",")).encode(),
        header_key_separator=unescaped(properties.get("headers.key.separator", ":")).encode(),
        null_marker=b"" if null_is_empty else None if marker is None else marker.encode(),
    )


def unescaped(text: str) -> str:
    """Decode escapes in a separator as typed in a shell: ``\\t`` is a tab."""
    for escape, meaning in _ESCAPES.items():
        text = text.replace(escape, meaning)
    return text


def _is_true(properties: Mapping[str, str], name: str) -> bool:
    return properties.get(name, "false").lower() == "true"
