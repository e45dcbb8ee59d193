"""Register a schema: find its version, or create the next one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from millbeck.client.schemas.log_records import KeyType, LogKey, LogRecord, encode_key
from millbeck.registry.decision import IMPORT, Decision, check_writable
from millbeck.registry.errors import IdDoesNotMatch, IncompatibleSchema, InvalidVersion, OperationNotPermitted
from millbeck.registry.schema import Schema, json_text
from millbeck.registry.state import RegistryState, Version
from millbeck.registry.subjects import check, context_of

NONE: Final = "NONE"
ID_MAX: Final = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Register:
    """A request to register a schema, which has been parsed and converted to the stored form, and whose references
    exist."""

    subject: str
    schema: Schema
    schema_id: int | None = None
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of comparing a schema with earlier versions, and the list of these versions."""

    against: tuple[tuple[int, bytes], ...]
    """The number and content of each compared version."""
    problems: tuple[str, ...] = ()


class StateMoved(Exception):
    """The versions have changed since the schema was compared with them; compare again."""


def compared_with(state: RegistryState, subject: str, schema: Schema, *, default: str) -> list[Version]:
    """The earlier versions that a new schema must be compatible with, the newest first."""
    level = state.compatibility(subject, default)
    if level == NONE:
        return []
    versions = state.versions(subject)[::-1]
    group = state.setting(subject, "compatibilityGroup")
    if isinstance(group, str) and group:
        ours = with_data_of_subject(state, subject, schema).properties.get(group)
        versions = [each for each in versions if each.schema.properties.get(group) == ours]
    return versions if level.endswith("_TRANSITIVE") else versions[:1]


def stamp(versions: list[Version]) -> tuple[tuple[int, bytes], ...]:
    return tuple((each.version, each.schema.digest) for each in versions)


def with_data_of_subject(state: RegistryState, subject: str, schema: Schema) -> Schema:
    """The schema with its final metadata and rules.

    For both: the subject's default, overridden by the schema's own (or, if it has none, those of the latest version),
    overridden by the subject's override.
    """
    versions = state.versions(subject)
    latest = versions[-1].schema if versions else None
    metadata = schema.metadata or (latest.metadata if latest else None)
    rule_set = schema.rule_set or (latest.rule_set if latest else None)
    return schema.with_data(
        metadata=_merged(state, subject, "Metadata", metadata), rule_set=_merged(state, subject, "RuleSet", rule_set)
    )


def _merged(state: RegistryState, subject: str, what: str, own: str | None) -> str | None:
    layers = [state.setting(subject, f"default{what}"), json.loads(own) if own else None]
    layers.append(state.setting(subject, f"override{what}"))
    merged: dict[str, object] = {}
    for layer in layers:
        for name, value in (layer if isinstance(layer, dict) else {}).items():
            below = merged.get(name)
            if isinstance(below, dict) and isinstance(value, dict):
                merged[name] = {**below, **value}
            elif isinstance(below, list) and isinstance(value, list):
                merged[name] = _merged_rules(below, value)
            elif value is not None:
                merged[name] = value
    return json_text(merged)


def _merged_rules(below: list[object], above: list[object]) -> list[object]:
    """Merge two lists of rules; a rule of the upper list replaces the one with the same name."""
    names = [rule.get("name") for rule in above if isinstance(rule, dict)]
    kept = [rule for rule in below if not (isinstance(rule, dict) and rule.get("name") in names)]
    return kept + above


def find(state: RegistryState, subject: str, schema: Schema, *, deleted: bool = False) -> Version | None:
    """The newest version of the subject with this schema; metadata and rules are compared only if the schema has
    them."""
    for version in reversed(state.versions(subject, deleted=deleted)):
        theirs = version.schema
        if (
            theirs.same_text(schema)
            and schema.metadata in (None, theirs.metadata)
            and schema.rule_set in (None, theirs.rule_set)
        ):
            return version
    return None


def register(request: Register, state: RegistryState, checked: Checked, *, default: str) -> Decision[Version]:
    """The existing or new version with the schema. Raises `StateMoved` if ``checked`` is about other versions."""
    subject = check(request.subject)
    mode = check_writable(state, subject)
    if mode == IMPORT:
        return _import(request, subject, state)
    existing = find(state, subject, request.schema)
    if existing is not None and request.schema_id in (None, existing.schema_id):
        return Decision(existing)
    if request.schema_id is not None:
        raise OperationNotPermitted(
            f"Subject '{subject}' is not in import mode; registering a schema with an id needs mode IMPORT"
        )
    versions = compared_with(state, subject, request.schema, default=default)
    if stamp(versions) != checked.against:
        raise StateMoved
    if checked.problems:
        raise IncompatibleSchema(
            f'Schema being registered is incompatible with an earlier schema for subject "{subject}", details: '
            f"[{', '.join(checked.problems)}]"
        )
    number = max(state.subjects.get(subject, {0: None})) + 1
    if request.version not in (None, -1, 0, number):
        raise InvalidVersion(
            f"Version {request.version} is not the next version of subject '{subject}', which is {number}"
        )
    schema = with_data_of_subject(state, subject, request.schema)
    context = state.context(context_of(subject))
    known = context.ids.get(schema.digest)
    schema_id = min(known) if known else state.next_id(context_of(subject))
    if schema_id > ID_MAX:
        raise OperationNotPermitted(f"context {context_of(subject)} has used all ids")
    return _added(state, Version(subject, number, schema_id, schema))


def _import(request: Register, subject: str, state: RegistryState) -> Decision[Version]:
    """Register in IMPORT mode: the caller gives the id and optionally the version, and compatibility is not checked."""
    if request.schema_id is None:
        raise OperationNotPermitted(f"Subject '{subject}' is in import mode, in which a schema comes with its id")
    if not 0 < request.schema_id <= ID_MAX:
        raise IdDoesNotMatch(f"{request.schema_id} is not a valid id: ids are from 1 to {ID_MAX}")
    holder = state.by_id(context_of(subject), request.schema_id)
    if holder is not None and not holder.schema.same_text(request.schema):
        raise OperationNotPermitted(f"Overwrite new schema with id {request.schema_id} is not permitted.")
    versions = state.subjects.get(subject, {})
    number = request.version if request.version not in (None, -1, 0) else None
    if number is None:
        same = find(state, subject, request.schema)
        if same is not None and same.schema_id == request.schema_id:
            return Decision(same)
        number = max(versions, default=0) + 1
    if not 0 < number <= ID_MAX:
        raise InvalidVersion(f"{number} is not a valid version")
    there = versions.get(number)
    if there is not None:
        if there.schema_id != request.schema_id:
            raise IdDoesNotMatch(
                f"Version {number} of subject '{subject}' has the id {there.schema_id}, not {request.schema_id}"
            )
        if not there.is_deleted and there.schema == request.schema:
            return Decision(there)
    return _added(state, Version(subject, number, request.schema_id, request.schema))


def _added(state: RegistryState, version: Version) -> Decision[Version]:
    record = LogRecord(
        encode_key(LogKey(KeyType.SCHEMA, version.subject, version.version)), version.value(is_deleted=False)
    )
    return Decision(version, [*state.context_records(context_of(version.subject)), record])
