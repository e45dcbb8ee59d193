"""``meta.properties``: cluster, node and directory id of a log directory, in Java's properties format as in Kafka."""

from __future__ import annotations

import re
from dataclasses import dataclass

from millbeck.kernel.environment import Files
from millbeck.kernel.ids import Uuid, parse_uuid, uuid_text
from millbeck.storage.atomic_file import read_file, replace_file

FILE_NAME = "meta.properties"
VERSION = 1
_SIZE_BYTES_MAX = 64 * 1024
_ESCAPE = re.compile(r"\\(.)")


class MetaPropertiesError(Exception):
    """A meta.properties file that is malformed or lacks a property."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaProperties:
    cluster_id: str
    node_id: int
    directory_id: Uuid


def read_meta_properties(files: Files, directory: str) -> MetaProperties | None:
    """Read meta.properties; None when the directory was never formatted. Raises `MetaPropertiesError`."""
    content = read_file(files, f"{directory}/{FILE_NAME}", _SIZE_BYTES_MAX)
    if content is None:
        return None
    values = parse_properties(content.decode("utf-8", errors="replace"))
    try:
        version = int(values.get("version", "0"))
        if version != VERSION:
            raise MetaPropertiesError(f"{directory}/{FILE_NAME} has version {version}, not {VERSION}")
        return MetaProperties(
            cluster_id=values["cluster.id"],
            node_id=int(values["node.id"]),
            directory_id=parse_uuid(values["directory.id"]),
        )
    except (KeyError, ValueError) as error:
        raise MetaPropertiesError(f"{directory}/{FILE_NAME} is malformed or incomplete: {error}") from error


def write_meta_properties(files: Files, directory: str, meta: MetaProperties) -> None:
    lines = (
        f"cluster.id={meta.cluster_id}",
        f"directory.id={uuid_text(meta.directory_id)}",
        f"node.id={meta.node_id}",
        f"version={VERSION}",
        "",
    )
    replace_file(files, f"{directory}/{FILE_NAME}", "\n".join(lines).encode("utf-8"))


def parse_properties(text: str) -> dict[str, str]:
    """Parse simple Java properties: comments, ``=`` or ``:``, backslash escapes; no continuation lines."""
    values: dict[str, str] = {}
    for line in text.splitlines():
        stripped = line.strip()
        if not stripped or stripped[0] in "#!":
            continue
        key, _, value = re.sub(r"(?<!\\)\s*[=:]\s*", "\0", stripped, count=1).partition("\0")
        values[_ESCAPE.sub(r"\1", key)] = _ESCAPE.sub(r"\1", value)
    return values
