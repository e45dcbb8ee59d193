"""Tags of a schema's parts: found in its text and its metadata, and changed in its metadata.

A tag belongs to a record or to a field, named by a path: the full name of the record, a dot and the name of the field.
Tags stand in the metadata, by path, or in the text, as ``confluent:tags`` beside the part. Rules of clients, such as
field encryption, go by both.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from millbeck.client.schemas.log_records import Json
from millbeck.registry.errors import UnreadableBody
from millbeck.registry.schema import JSON, PROTOBUF, Schema, json_text
from millbeck.registry.settings import check_rule_set

RECORD: Final = "sr_record"
FIELD: Final = "sr_field"
ANY: Final = "*"
_IN_TEXT: Final = "confluent:tags"
_NAMED: Final = ("record", "error", "enum", "fixed")
_RULE_LISTS: Final = ("migrationRules", "domainRules", "encodingRules")

Entity = tuple[str, str]
"""The path and the type of a tagged part."""


def tagged_parts(schema: Schema, wanted: list[str]) -> list[Json]:
    """The tagged parts that have any of these tags, ``*`` for any tag, in the form of answers."""
    entities: dict[Entity, list[str]] = {}
    for entity, tags in (*_of_metadata(json.loads(schema.metadata or "{}")), *_of_text(schema)):
        kept = entities.setdefault(entity, [])
        kept += [tag for tag in tags if tag not in kept]
    return [
        {"schemaEntity": {"entityPath": path, "entityType": kind}, "tags": tags}
        for (path, kind), tags in entities.items()
        if tags and (ANY in wanted or not set(wanted).isdisjoint(tags))
    ]


def with_changes(schema: Schema, body: Json) -> Schema:
    """The schema with tags, metadata and rules changed as a request says; raises `UnreadableBody`."""
    metadata = _dictionary(body, "metadata") or json.loads(schema.metadata or "{}")
    tags = {path: list(names) for (path, _), names in _of_metadata(metadata)}
    for path, names in _listed(body, "tagsToAdd"):
        kept = tags.setdefault(path, [])
        kept += [name for name in names if name not in kept]
    for path, names in _listed(body, "tagsToRemove"):
        tags[path] = [name for name in tags.get(path, []) if name not in names]
    if tags:
        metadata = {**metadata, "tags": {path: names for path, names in tags.items() if names}}
    return replace(schema, metadata=json_text(metadata), rule_set=json_text(_changed_rules(schema, body)))


def _changed_rules(schema: Schema, body: Json) -> Json:
    rules: Json = _dictionary(body, "ruleSet") or json.loads(schema.rule_set or "{}")
    merged = _dictionary(body, "rulesToMerge") or {}
    removed = body.get("rulesToRemove") or []
    if not isinstance(removed, list):
        raise UnreadableBody("rulesToRemove must be a list of names of rules")
    for each in (rules, merged):
        check_rule_set(each)
    for name in _RULE_LISTS:
        added = merged.get(name) or []
        dropped = [*removed, *(rule["name"] for rule in added)]
        kept = [rule for rule in rules.get(name) or [] if rule["name"] not in dropped]
        if kept or added:
            rules[name] = [*kept, *added]
        else:
            rules.pop(name, None)
    return rules


def _dictionary(body: Json, name: str) -> Json | None:
    value = body.get(name)
    if not isinstance(value, dict | None):
        raise UnreadableBody(f"{name} must be a JSON object")
    return value


def _listed(body: Json, name: str) -> Iterator[tuple[str, list[str]]]:
    listed = [] if body.get(name) is None else body[name]
    if not isinstance(listed, list):
        raise UnreadableBody(f"{name} must be a list")
    for each in listed:
        entity = each.get("schemaEntity") if isinstance(each, dict) else None
        path = entity.get("entityPath") if isinstance(entity, dict) else None
        tags = each.get("tags") if isinstance(each, dict) else None
        if not isinstance(path, str) or not path or not isinstance(tags, list) or not all(map(_is_text, tags)):
            raise UnreadableBody(
                f'{name} must have entries such as {{"schemaEntity": {{"entityPath": "Order.id"}}, "tags": ["PII"]}}'
            )
        yield path, tags


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _of_metadata(metadata: Json) -> Iterator[tuple[Entity, list[str]]]:
    tags = metadata.get("tags")
    for path, names in (tags if isinstance(tags, dict) else {}).items():
        if isinstance(names, list):
            yield (path, FIELD), [name for name in names if isinstance(name, str)]


def _of_text(schema: Schema) -> Iterator[tuple[Entity, list[str]]]:
    """The tags in a text of Avro or JSON Schema; in a .proto they are options, which are not looked at."""
    if schema.schema_type == PROTOBUF or _IN_TEXT not in schema.text:
        return
    node = json.loads(schema.text)
    yield from _of_document(node, _title(node)) if schema.schema_type == JSON else _of_avro(node, "")


def _tags_of(node: Json) -> list[str]:
    tags = node.get(_IN_TEXT)
    return [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else []


def _of_avro(node: Any, namespace: str) -> Iterator[tuple[Entity, list[str]]]:
    if isinstance(node, list):
        for each in node:
            yield from _of_avro(each, namespace)
    if not isinstance(node, dict):
        return
    kind = node.get("type")
    if kind not in _NAMED:
        for inner in (kind, node.get("items"), node.get("values")):
            yield from _of_avro(inner, namespace)
        return
    name, space = str(node.get("name")), node.get("namespace", namespace)
    full_name = name if "." in name or not space else f"{space}.{name}"
    yield (full_name, RECORD), _tags_of(node)
    for member in node.get("fields") or []:
        yield (f"{full_name}.{member['name']}", FIELD), _tags_of(member)
        yield from _of_avro(member["type"], full_name.rpartition(".")[0])


def _title(node: Any) -> str:
    title = node.get("title") if isinstance(node, dict) else None
    return title if isinstance(title, str) else "object"


def _of_document(node: Any, path: str) -> Iterator[tuple[Entity, list[str]]]:
    """A JSON Schema is a record with the name of its title, and its properties are the fields."""
    if not isinstance(node, dict):
        return
    if _tags_of(node):
        yield (path, RECORD if "properties" in node else FIELD), _tags_of(node)
    properties = node.get("properties")
    for name, each in (properties if isinstance(properties, dict) else {}).items():
        yield from _of_document(each, f"{path}.{name}")
    yield from _of_document(node.get("items"), path)
