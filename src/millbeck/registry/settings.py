"""Settings and modes of the whole registry, of a context or of a subject."""

from __future__ import annotations

from typing import Final

from millbeck.client.schemas.log_records import Json, KeyType, LogKey
from millbeck.registry.decision import IMPORT, MODES, Decision
from millbeck.registry.errors import (
    InvalidCompatibility,
    InvalidMode,
    InvalidRuleSet,
    OperationNotPermitted,
    SubjectNotFound,
    UnreadableBody,
)
from millbeck.registry.state import BACKWARD, RegistryState
from millbeck.registry.subjects import context_of, split

LEVELS: Final = (
    "NONE",
    "BACKWARD",
    "BACKWARD_TRANSITIVE",
    "FORWARD",
    "FORWARD_TRANSITIVE",
    "FULL",
    "FULL_TRANSITIVE",
)
_MEMBERS: Final = {
    "alias": str,
    "aliasForDeks": str,
    "normalize": bool,
    "validateFields": bool,
    "validateNames": bool,
    "validateNewSchemas": bool,
    "validateRules": bool,
    "compatibilityGroup": str,
    "compatibilityPolicy": str,
    "defaultMetadata": dict,
    "overrideMetadata": dict,
    "defaultRuleSet": dict,
    "overrideRuleSet": dict,
}
_JSON_TYPES: Final = {str: "a string", bool: "true or false", dict: "a JSON object"}
"""The settings other than ``compatibility``, by their names in requests, answers and the log."""
_WRITING: Final = ("WRITE", "READ", "WRITEREAD")
_RULE_MODES: Final = {
    "migrationRules": ("UPGRADE", "DOWNGRADE", "UPDOWN"),
    "domainRules": _WRITING,
    "encodingRules": _WRITING,
}
"""The lists of rules, with the modes that their rules can have."""
_RULE_KINDS: Final = ("TRANSFORM", "CONDITION")


def check_level(level: object) -> str:
    name = level.upper() if isinstance(level, str) else ""
    if name not in LEVELS:
        raise InvalidCompatibility(
            "Invalid compatibility level. Valid values are none, backward, forward, full, backward_transitive, "
            "forward_transitive, and full_transitive"
        )
    return name


def set_config(state: RegistryState, subject: str | None, changes: Json) -> Decision[Json]:
    """Change settings: absent members are unchanged, null removes one. Returns the request with the stored values, or
    all settings if it has none."""
    _check_mutable(state, subject)
    members = dict(state.configs.get(subject, {}))
    answer: Json = {}
    if "compatibility" in changes:
        level = changes["compatibility"]
        if level is None:
            members.pop("compatibilityLevel", None)
        else:
            members["compatibilityLevel"] = answer["compatibility"] = check_level(level)
    for name, kind in _MEMBERS.items():
        if name not in changes:
            continue
        value = changes[name]
        if value is None:
            members.pop(name, None)
            continue
        if not isinstance(value, kind):
            raise UnreadableBody(f"{name} must be {_JSON_TYPES[kind]}")
        if name.endswith("RuleSet"):
            check_rule_set(value)
        members[name] = answer[name] = value
    if "compatibilityPolicy" in answer and answer["compatibilityPolicy"] not in ("STRICT", "LENIENT"):
        raise UnreadableBody("compatibilityPolicy must be STRICT or LENIENT")
    if members == state.configs.get(subject, {}):
        return Decision(answer or as_request(members))
    key = LogKey(KeyType.CONFIG, subject)
    context = [] if subject is None else state.context_records(context_of(subject))
    return Decision(answer, [*context, state.record(key, members)])


def as_request(members: Json) -> Json:
    """Settings as a request has them, in which the level has another name."""
    return {"compatibility" if name == "compatibilityLevel" else name: value for name, value in members.items()}


def delete_config(state: RegistryState, subject: str | None) -> Decision[Json]:
    """Delete settings, so that those of the next level up apply; returns the deleted ones."""
    _check_mutable(state, subject)
    found = state.configs.get(subject)
    if found is None:
        if subject is None:
            return Decision({"compatibilityLevel": BACKWARD})
        raise SubjectNotFound(f"Subject '{subject}' not found: it has no settings of its own.")
    return Decision(found, state.tombstones(LogKey(KeyType.CONFIG, subject)))


def set_mode(state: RegistryState, subject: str | None, mode: object, *, force: bool) -> Decision[Json]:
    """Set a mode. IMPORT requires a subject, context or registry without schemas, unless forced."""
    name = mode.upper() if isinstance(mode, str) else ""
    if name not in MODES:
        raise InvalidMode(f"Invalid mode. Valid values are {', '.join(MODES)}")
    if name == IMPORT and not force and state.mode(subject) != IMPORT and _has_schemas(state, subject):
        where = "the registry" if subject is None else f"'{subject}'"
        raise OperationNotPermitted(
            f"Cannot import since found existing subjects in {where}; use force=true to allow it"
        )
    context = [] if subject is None else state.context_records(context_of(subject))
    return Decision({"mode": name}, [*context, state.record(LogKey(KeyType.MODE, subject), {"mode": name})])


def delete_mode(state: RegistryState, subject: str | None, *, recursive: bool = False) -> Decision[Json]:
    """Delete a mode, so that the mode of the next level up applies; with ``recursive`` also the modes of all levels
    below."""
    found = state.modes.get(subject)
    below = [each for each in state.modes if recursive and each != subject and _is_below(each, subject)]
    if found is None and not below and subject is not None:
        raise SubjectNotFound(f"Subject '{subject}' not found: it has no mode of its own.")
    removed = [*([] if found is None else [subject]), *below]
    records = [record for each in removed for record in state.tombstones(LogKey(KeyType.MODE, each))]
    return Decision({"mode": found or state.mode(subject)}, records)


def check_rule_set(value: object) -> None:
    """Check the form of a rule set; its rules are run by the serializers of clients."""
    if not isinstance(value, dict):
        raise InvalidRuleSet("a rule set must be an object with migrationRules, domainRules or encodingRules")
    for list_name, modes in _RULE_MODES.items():
        rules = value.get(list_name)
        if rules is None:
            continue
        if not isinstance(rules, list):
            raise InvalidRuleSet(f"{list_name} is not a list")
        names: list[str] = []
        for rule in rules:
            name = rule.get("name") if isinstance(rule, dict) else None
            if not isinstance(name, str) or not name:
                raise InvalidRuleSet(f"a rule of {list_name} has no name")
            if name in names:
                raise InvalidRuleSet(f"{list_name} has two rules named {name}")
            if not isinstance(rule.get("type"), str):
                raise InvalidRuleSet(f"rule {name} has no type")
            for member, allowed in (("kind", _RULE_KINDS), ("mode", modes)):
                if rule.get(member) is not None and rule[member] not in allowed:
                    raise InvalidRuleSet(f"the {member} of rule {name} in {list_name} must be {', '.join(allowed)}")
            names.append(name)


def _check_mutable(state: RegistryState, subject: str | None) -> None:
    mode = state.mode(subject)
    if mode.startswith("READONLY"):
        what = "The registry" if subject is None else f"Subject '{subject}'"
        raise OperationNotPermitted(f"{what} is in {mode} mode, which does not allow writes: see PUT /mode")


def _has_schemas(state: RegistryState, subject: str | None) -> bool:
    return any(_is_below(each, subject) or each == subject for each in state.subjects if state.versions(each))


def _is_below(each: str | None, subject: str | None) -> bool:
    """Whether settings of ``subject``, which may be a context's prefix or None, cover those of the other."""
    if subject is None:
        return each is not None
    context, name = split(subject)
    return each is not None and not name and context_of(each) == context
