"""The drafts of JSON Schema: the draft of a schema, and the keyword names of each draft."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

from millbeck.registry.errors import InvalidSchema

Json = dict[str, Any]
Node = Json | bool
"""A schema, or a part of one that is itself a schema."""


class Draft(IntEnum):
    """The drafts in chronological order."""

    DRAFT_4 = 4
    DRAFT_6 = 6
    DRAFT_7 = 7
    DRAFT_2019_09 = 19
    DRAFT_2020_12 = 20


METASCHEMAS: Final = {
    "json-schema.org/draft-04/schema": Draft.DRAFT_4,
    "json-schema.org/draft-06/schema": Draft.DRAFT_6,
    "json-schema.org/draft-07/schema": Draft.DRAFT_7,
    "json-schema.org/draft/2019-09/schema": Draft.DRAFT_2019_09,
    "json-schema.org/draft/2020-12/schema": Draft.DRAFT_2020_12,
    "json-schema.org/schema": Draft.DRAFT_2020_12,
}
DEFAULT: Final = Draft.DRAFT_7
"""The default draft, as in Confluent's registry."""

_SCHEMA_MEMBERS: Final = (
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
)
_LISTS: Final = ("allOf", "anyOf", "oneOf", "items", "prefixItems")
_MAPS: Final = ("properties", "patternProperties", "definitions", "$defs", "dependencies", "dependentSchemas")


def metaschema(name: str) -> Draft | None:
    return METASCHEMAS.get(name.partition("://")[2].rstrip("#"))


def draft_of(root: Node, *, is_new: bool) -> Draft:
    """The draft of a schema. An unknown ``$schema`` means the default draft; in a new schema it raises
    `InvalidSchema`."""
    name = root.get("$schema") if isinstance(root, dict) else None
    if name is None:
        return DEFAULT
    found = metaschema(name) if isinstance(name, str) else None
    if found is None and is_new:
        shown = ", ".join(f"http://{each}" for each in METASCHEMAS)
        raise InvalidSchema(f"Invalid schema: $schema is {str(name)[:200]!r}; it can be {shown}")
    return DEFAULT if found is None else found


def id_member(draft: Draft) -> str:
    return "id" if draft is Draft.DRAFT_4 else "$id"


def identifier(node: Node, draft: Draft) -> str | None:
    """The ``$id`` of a schema; None if it is only a fragment, as in old drafts, since that names a place and not a
    document."""
    found = node.get(id_member(draft)) if isinstance(node, dict) else None
    return found if isinstance(found, str) and not found.startswith("#") else None


def anchors(node: Node, draft: Draft) -> list[str]:
    """The names under which a fragment finds the schema."""
    if not isinstance(node, dict):
        return []
    found = [node.get("$anchor"), node.get("$dynamicAnchor")] if draft >= Draft.DRAFT_2019_09 else []
    if draft <= Draft.DRAFT_7:
        old = node.get(id_member(draft))
        found.append(old[1:] if isinstance(old, str) and old.startswith("#") else None)
    return [each for each in found if isinstance(each, str)]


def children(node: Node) -> list[tuple[str, Node]]:
    """The schemas directly in a schema, each with its pointer from there."""
    if not isinstance(node, dict):
        return []
    found: list[tuple[str, Any]] = [(f"/{name}", node.get(name)) for name in _SCHEMA_MEMBERS]
    for name in _LISTS:
        listed = node.get(name)
        found += [(f"/{name}/{index}", each) for index, each in enumerate(listed if isinstance(listed, list) else ())]
    for name in _MAPS:
        held = node.get(name)
        found += [(f"/{name}/{escaped(key)}", each) for key, each in (held.items() if isinstance(held, dict) else ())]
    return [(pointer, each) for pointer, each in found if isinstance(each, dict | bool)]


def escaped(name: str) -> str:
    """A member's name in a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def reference(node: Node) -> str | None:
    if not isinstance(node, dict):
        return None
    found = next((node[name] for name in ("$ref", "$dynamicRef", "$recursiveRef") if name in node), None)
    return found if isinstance(found, str) else None
