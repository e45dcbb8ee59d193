"""Serdes in TOML: a string is the type of a JSON value, a table selects another format.

value = "customer STRING, cents BIGINT"
value = { format = "long" }
value = { format = "avro", schema = "order.avsc" }
value = { format = "protobuf", schema = "order.proto", message = "Order" }
value = { format = "avro", registry = "schemas" }
value = { format = "avro", registry = "http://127.0.0.1:8081" }

Relative paths are relative to the pipeline file.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from millbeck.pipeline.errors import DefinitionError

if TYPE_CHECKING:
    from millbeck.client.schemas.model import SchemaRegistry
    from millbeck.pipeline.topology.serdes import Serde

_PLAIN: Final = ("string", "long", "integer", "raw")
_REGISTERED: Final = ("schema", "registry", "subject")
_ALLOWED: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(_PLAIN, ()),
    "json": _REGISTERED,
    "avro": _REGISTERED,
    "protobuf": ("message", *_REGISTERED),
}


def check_serde(given: Any, where: str) -> None:
    """Check a serde table; raises `DefinitionError`. Whether the schema exists is checked when the topology is
    built."""
    if isinstance(given, str):
        return
    if not isinstance(given, dict) or given.get("format") not in _ALLOWED:
        raise DefinitionError(
            f'{where} is the type of a JSON value, as in "n INT", or a table with a format: {", ".join(_ALLOWED)}'
        )
    name = given["format"]
    for part, value in given.items():
        if part != "format" and part not in _ALLOWED[name]:
            allowed = ", ".join(_ALLOWED[name]) or "none"
            raise DefinitionError(f"{where}: the format {name} has no {part!r}; allowed: {allowed}")
        if not isinstance(value, str):
            raise DefinitionError(f"{where}: {part} must be a text, not {value!r}")
    needs = () if name in _PLAIN else ("schema",) if name == "json" else ("schema", "registry")
    if needs and not any(part in given for part in needs):
        raise DefinitionError(f"{where}: the format {name} needs a schema")


def serde_of(given: Any, folder: Path) -> Serde:
    from millbeck.pipeline.topology import serdes

    if isinstance(given, str):
        return serdes.json(given)
    name = given["format"]
    if name in _PLAIN:
        made: Serde = getattr(serdes, name)()
        return made
    schema = given.get("schema")
    if schema is not None and schema.endswith((".avsc", ".proto", ".desc")):
        schema = folder / schema
    registry = _registry(given["registry"], folder) if "registry" in given else None
    if name == "json":
        return serdes.json(given["schema"], registry=registry, subject=given.get("subject"))
    if name == "avro":
        return serdes.avro(schema, registry=registry, subject=given.get("subject"))
    return serdes.protobuf(schema, given.get("message"), registry=registry, subject=given.get("subject"))


def _registry(given: str, folder: Path) -> SchemaRegistry:
    from millbeck.pipeline.topology.serdes import registry_of

    return registry_of(given if "://" in given else str(folder / given))
