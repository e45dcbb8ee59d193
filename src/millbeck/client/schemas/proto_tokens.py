"""Scans the tokens of a .proto before it is compiled: checks depth, names and comments, and finds its imports.

protoc decides whether a schema is valid. This only limits the input of protoc; it knows comments, strings and braces.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from millbeck.client.schemas.errors import SchemaInvalid, SchemaTooLarge

_TOKEN: Final = re.compile(
    r"""(?P<blank>\s+|//[^\n]*|/\*.*?(?:\*/|\Z))"""
    r"""|(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')"""
    r"""|(?P<word>[\w.]+)"""
    r"""|(?P<other>.)""",
    re.DOTALL,
)
_OPENING: Final = "{[(<"
_CLOSING: Final = "}])>"
_IMPORT_MODIFIERS: Final = ("public", "weak", "option")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtoLimits:
    """The limits of a .proto file and its compilation."""

    text_length_max: int = 1024 * 1024
    depth_max: int = 100
    name_length_max: int = 1000
    token_count_max: int = 200_000
    import_count_max: int = 1000
    seconds_max: float = 10.0
    processor_seconds_max: int = 2
    memory_bytes_max: int = 512 * 1024 * 1024
    output_bytes_max: int = 16 * 1024 * 1024


def imports_of(text: str, limits: ProtoLimits) -> list[str]:
    """The names that the text imports; raises `SchemaTooLarge` if it exceeds a limit, and `SchemaInvalid`."""
    if len(text) > limits.text_length_max:
        raise SchemaTooLarge(f"the schema has {len(text)} characters, the limit is {limits.text_length_max}")
    imports: list[str] = []
    depth = count = 0
    before: list[str] = []
    for found in _TOKEN.finditer(text):
        kind, token = found.lastgroup, found.group()
        if kind == "blank":
            if token.startswith("/*") and "/*" in token[2:]:
                # protoc would report each of them, which takes seconds.
                raise SchemaInvalid('"/*" is inside a block comment: such comments cannot be nested')
            continue
        count += 1
        if count > limits.token_count_max:
            raise SchemaTooLarge(f"the schema has more than {limits.token_count_max} tokens")
        if kind == "word" and len(token) > limits.name_length_max:
            raise SchemaTooLarge(f"a name has {len(token)} characters, the limit is {limits.name_length_max}")
        if kind == "other":
            if token in _OPENING:
                depth += 1
            elif token in _CLOSING:
                depth -= 1
            if depth > limits.depth_max:
                raise SchemaTooLarge(f"the schema is nested more than {limits.depth_max} levels deep")
        if kind == "string" and depth == 0 and _is_import(before):
            imports.append(token[1:-1])
        before = [*before[-1:], token]
    if len(imports) > limits.import_count_max:
        raise SchemaTooLarge(f"the schema has more than {limits.import_count_max} imports")
    return imports


def _is_import(before: list[str]) -> bool:
    return before[-1:] == ["import"] or (before[:1] == ["import"] and before[-1] in _IMPORT_MODIFIERS)


def check_import_name(name: str, limits: ProtoLimits) -> None:
    """Check an import name; raises `SchemaInvalid` unless it is a relative path of a file."""
    parts = name.split("/")
    if len(name) > limits.name_length_max or not all(
        0 < len(part) < 256 and part not in (".", "..") and part.isprintable() and "\\" not in part for part in parts
    ):
        raise SchemaInvalid(f"{name[:200]!r} is not a valid name of an imported file")
