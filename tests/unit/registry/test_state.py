"""The state machine against a plain model, over logs that are whole, compacted, or partly written by others.

Whatever is asked, in whatever order: the answers are those of a dictionary of lists; a second reader of the log and a
reader of the compacted log have the same state; an id belongs to one schema for ever.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from millbeck.client.schemas.log_records import KeyType, LogKey, LogRecord, decode_json, encode_key
from millbeck.registry.decision import Decision
from millbeck.registry.deleting import delete_context, delete_subject, delete_version
from millbeck.registry.errors import (
    ContextNotEmpty,
    IdDoesNotMatch,
    IncompatibleSchema,
    InvalidRuleSet,
    InvalidSubject,
    OperationNotPermitted,
    ReferenceExists,
    RegistryError,
    SubjectNotFound,
    SubjectNotSoftDeleted,
    SubjectSoftDeleted,
    VersionNotFound,
    VersionNotSoftDeleted,
    VersionSoftDeleted,
)
from millbeck.registry.registering import Checked, Register, StateMoved, compared_with, register, stamp
from millbeck.registry.schema import AVRO, Reference, Schema
from millbeck.registry.settings import check_rule_set, delete_config, delete_mode, set_config, set_mode
from millbeck.registry.state import RegistryState, Version

SUBJECTS = ("a", "b", ":.lab:a")
TEXTS = ('"int"', '"long"', '"string"', '"bytes"')


class Registry:
    """A state with the log it came from."""

    def __init__(self) -> None:
        self.state = RegistryState()
        self.log: list[LogRecord] = []

    def write(self, decision: Decision[Any]) -> Any:
        for record in decision.records:
            self.log.append(record)
            self.state.replay(*record)
        return decision.answer

    def register(self, subject: str, text: str, **more: Any) -> Version:
        data = {name: more.pop(name) for name in ("metadata", "rule_set", "references") if name in more}
        schema = Schema(AVRO, text, **data)
        versions = compared_with(self.state, subject, schema, default="NONE")
        request = Register(subject=subject, schema=schema, **more)
        found = self.write(register(request, self.state, Checked(stamp(versions)), default="NONE"))
        assert isinstance(found, Version)
        return found

    def compacted(self) -> list[LogRecord]:
        """The log as a complete compaction leaves it, tombstones gone."""
        last = {record.key: index for index, record in enumerate(self.log)}
        return [
            record for index, record in enumerate(self.log) if last[record.key] == index and record.value is not None
        ]

    def replayed(self, log: list[LogRecord] | None = None) -> RegistryState:
        state = RegistryState()
        for record in self.log if log is None else log:
            state.replay(*record)
        return state


class RegistryModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.registry = Registry()
        self.versions: dict[str, dict[int, tuple[int, str, bool]]] = {}
        """By subject and version: id, text, whether it is soft-deleted."""
        self.texts: dict[tuple[str, int], str] = {}
        """What every id that was ever given stands for."""
        self.highest: dict[str, int] = {}

    def _live(self, subject: str) -> dict[int, tuple[int, str, bool]]:
        return {number: each for number, each in self.versions.get(subject, {}).items() if not each[2]}

    @rule(subject=st.sampled_from(SUBJECTS), text=st.sampled_from(TEXTS))
    def register(self, subject: str, text: str) -> None:
        context = subject[:-1]
        found = self.registry.register(subject, text)
        known = [number for number, each in self._live(subject).items() if each[1] == text]
        if known:
            assert (found.version, found.schema_id) == (max(known), self.versions[subject][max(known)][0])
            return
        elsewhere = {
            each[0]
            for other in self.versions
            for each in self.versions[other].values()
            if other[:-1] == context and each[1] == text
        }
        expected_id = min(elsewhere) if elsewhere else self.highest.get(context, 0) + 1
        assert found.schema_id == expected_id
        assert found.version == max(self.versions.get(subject, {0: None})) + 1
        assert self.texts.setdefault((context, found.schema_id), text) == text
        self.highest[context] = max(self.highest.get(context, 0), found.schema_id)
        self.versions.setdefault(subject, {})[found.version] = (found.schema_id, text, False)

    @rule(subject=st.sampled_from(SUBJECTS), number=st.integers(1, 3), permanent=st.booleans())
    def delete_version(self, subject: str, number: int, permanent: bool) -> None:
        versions = self.versions.get(subject)
        error: type[RegistryError] | None = None
        if not versions:
            error = SubjectNotFound
        elif number not in versions:
            error = VersionNotFound
        elif not permanent and versions[number][2]:
            error = VersionSoftDeleted
        elif permanent and not versions[number][2]:
            error = VersionNotSoftDeleted
        if error is not None:
            with pytest.raises(error):
                delete_version(self.registry.state, subject, number, permanent=permanent)
            return
        assert versions is not None
        decision = delete_version(self.registry.state, subject, number, permanent=permanent)
        assert self.registry.write(decision) == number
        if permanent:
            del versions[number]
            if not versions:
                del self.versions[subject]
        else:
            versions[number] = (*versions[number][:2], True)

    @rule(subject=st.sampled_from(SUBJECTS), permanent=st.booleans())
    def delete_subject(self, subject: str, permanent: bool) -> None:
        versions = self.versions.get(subject)
        live = list(self._live(subject))
        error: type[RegistryError] | None = None
        if not versions:
            error = SubjectNotFound
        elif not permanent and not live:
            error = SubjectSoftDeleted
        elif permanent and live:
            error = SubjectNotSoftDeleted
        if error is not None:
            with pytest.raises(error):
                delete_subject(self.registry.state, subject, permanent=permanent)
            return
        assert versions is not None
        answer = self.registry.write(delete_subject(self.registry.state, subject, permanent=permanent))
        assert answer == (list(versions) if permanent else live)
        if permanent:
            del self.versions[subject]
        else:
            self.versions[subject] = {number: (*each[:2], True) for number, each in versions.items()}

    @precondition(lambda self: self.registry.log)
    @rule(data=st.data())
    def another_release_writes_again(self, data: st.DataObject) -> None:
        """A value is written once more under an older form of its key, as a registry of another release does."""
        live = [record for record in self.registry.compacted() if b'"SCHEMA"' in record.key]
        if live:
            record = data.draw(st.sampled_from(live))
            members = {**decode_json(record.key), "magic": data.draw(st.integers(0, 1))}
            key = json.dumps(dict(data.draw(st.permutations(list(members.items()))))).encode()
            last = next(each for each in reversed(self.registry.log) if _same_key(each.key, record.key))
            if last.value is not None and self._is_as_written(last):
                self.registry.write(Decision(None, [LogRecord(key, last.value)]))

    def _is_as_written(self, record: LogRecord) -> bool:
        """Not hidden by a later delete of its subject, which a rewrite would undo."""
        members = decode_json(record.value or b"{}")
        version = self.registry.state.subjects.get(members["subject"], {}).get(members["version"])
        return version is not None and version.is_deleted == members["deleted"]

    @invariant()
    def answers_are_the_models(self) -> None:
        state = self.registry.state
        found = {
            subject: {each.version: (each.schema_id, each.schema.text, each.is_deleted) for each in versions.values()}
            for subject, versions in state.subjects.items()
        }
        assert found == self.versions
        for (context, schema_id), text in self.texts.items():
            version = state.by_id(".lab" if context else ".", schema_id)
            assert version is None or version.schema.text == text

    @invariant()
    def every_reader_of_the_log_agrees(self) -> None:
        assert self.registry.replayed().image() == self.registry.state.image()

    @invariant()
    def compaction_changes_nothing(self) -> None:
        compacted = self.registry.replayed(self.registry.compacted())
        assert compacted.image() == self.registry.state.image()


def _same_key(one: bytes, other: bytes) -> bool:
    first, second = decode_json(one), decode_json(other)
    return {**first, "magic": 0} == {**second, "magic": 0}


RegistryModel.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
test_a_registry_is_a_dictionary_of_lists = RegistryModel.TestCase


@pytest.fixture
def registry() -> Registry:
    return Registry()


def test_an_id_is_not_given_again_after_its_schema_is_gone(registry: Registry) -> None:
    assert [registry.register("a", text).schema_id for text in TEXTS[:2]] == [1, 2]
    registry.write(delete_version(registry.state, "a", 2, permanent=False))
    registry.write(delete_version(registry.state, "a", 2, permanent=True))
    restarted = registry.replayed(registry.compacted())
    assert restarted.next_id(".") == 3


def test_a_soft_deleted_schema_answers_by_id(registry: Registry) -> None:
    registry.register("a", TEXTS[0])
    registry.write(delete_subject(registry.state, "a", permanent=False))
    found = registry.state.by_id(".", 1)
    assert found is not None
    assert found.is_deleted


def test_a_delete_covers_every_form_of_the_key(registry: Registry) -> None:
    registry.register("a", TEXTS[0])
    older = b'{"magic":0,"keytype":"SCHEMA","version":1,"subject":"a"}'
    assert registry.log[-1].value is not None
    registry.write(Decision(None, [LogRecord(older, registry.log[-1].value)]))
    registry.write(delete_subject(registry.state, "a", permanent=False))
    registry.write(delete_subject(registry.state, "a", permanent=True))
    assert "a" not in registry.replayed(registry.compacted()).subjects
    assert registry.state.leftovers == {}


def test_a_delete_under_one_form_only_is_completed(registry: Registry) -> None:
    registry.register("a", TEXTS[0])
    older = b'{"magic":0,"keytype":"SCHEMA","version":1,"subject":"a"}'
    value = registry.log[-1].value
    registry.write(Decision(None, [LogRecord(older, value), LogRecord(registry.log[-1].key, None)]))
    assert "a" in registry.replayed(registry.compacted()).subjects
    registry.write(Decision(None, registry.state.leftover_tombstones()))
    assert "a" not in registry.replayed(registry.compacted()).subjects


def test_unknown_members_are_kept_when_a_value_is_rewritten(registry: Registry) -> None:
    value = b'{"subject":"a","version":1,"id":7,"later":{"x":1},"schema":"\\"int\\"","deleted":false}'
    registry.write(Decision(None, [LogRecord(encode_key(LogKey(KeyType.SCHEMA, "a", 1)), value)]))
    registry.write(delete_version(registry.state, "a", 1, permanent=False))
    assert registry.log[-1].value == value.replace(b"false", b"true")
    assert registry.state.next_id(".") == 8


def test_the_guid_of_another_registry_is_kept(registry: Registry) -> None:
    value = b'{"subject":"a","version":1,"id":7,"guid":"g-1","schema":"\\"int\\"","deleted":false}'
    registry.write(Decision(None, [LogRecord(encode_key(LogKey(KeyType.SCHEMA, "a", 1)), value)]))
    registry.write(delete_version(registry.state, "a", 1, permanent=False))
    assert registry.log[-1].value == value.replace(b"false", b"true")
    assert list(registry.state.given_guids) == ["g-1"]


def test_a_value_has_its_members_in_confluents_order(registry: Registry) -> None:
    registry.register("b", TEXTS[0])
    version = registry.register(
        "a", TEXTS[1], references=(Reference("B", "b", 1),), metadata='{"properties":{"o":"x"}}'
    )
    assert registry.log[-1].value == (
        b'{"subject":"a","version":1,"id":2,"guid":"' + version.guid.encode() + b'","references":[{"name":"B",'
        b'"subject":"b","version":1}],"metadata":{"properties":{"o":"x"}},"schema":"\\"long\\"","deleted":false}'
    )


def test_what_is_referred_to_cannot_be_deleted(registry: Registry) -> None:
    registry.register("b", TEXTS[0])
    registry.register("a", TEXTS[1], references=(Reference("B", "b", 1),))
    for attempt in (delete_version, delete_subject):
        arguments: tuple[Any, ...] = (registry.state, "b", 1) if attempt is delete_version else (registry.state, "b")
        with pytest.raises(ReferenceExists, match="version 1 of a refers to it"):
            attempt(*arguments, permanent=False)
    registry.write(delete_subject(registry.state, "a", permanent=False))
    registry.write(delete_subject(registry.state, "b", permanent=False))
    registry.register("a", TEXTS[1], references=(Reference("B", "b", 1),))
    with pytest.raises(ReferenceExists):
        delete_subject(registry.state, "b", permanent=True)
    registry.write(delete_subject(registry.state, "a", permanent=False))
    assert registry.write(delete_subject(registry.state, "b", permanent=True)) == [1]


def test_contexts_number_their_schemas_apart(registry: Registry) -> None:
    assert registry.register("a", TEXTS[0]).schema_id == 1
    assert registry.register(":.lab:a", TEXTS[1]).schema_id == 1
    assert decode_json(registry.log[1].key)["keytype"] == "CONTEXT"
    with pytest.raises(ContextNotEmpty):
        delete_context(registry.state, ".lab")
    for permanent in (False, True):
        registry.write(delete_subject(registry.state, ":.lab:a", permanent=permanent))
    registry.write(delete_context(registry.state, ".lab"))
    assert not registry.state.contexts[".lab"].is_declared
    assert registry.register(":.lab:a", TEXTS[1]).schema_id == 2


def test_a_default_context_spelled_out_is_the_plain_subject(registry: Registry) -> None:
    assert registry.register(":.:a", TEXTS[0]).subject == "a"


def test_import_takes_the_callers_id_and_version(registry: Registry) -> None:
    registry.write(set_mode(registry.state, "a", "import", force=False))
    with pytest.raises(OperationNotPermitted, match="import mode"):
        registry.register("a", TEXTS[0])
    first = registry.register("a", TEXTS[0], schema_id=40, version=7)
    assert (first.schema_id, first.version) == (40, 7)
    assert registry.register("a", TEXTS[0], schema_id=40, version=7) is registry.state.subjects["a"][7]
    with pytest.raises(OperationNotPermitted, match="id 40"):
        registry.register("a", TEXTS[1], schema_id=40)
    with pytest.raises(IdDoesNotMatch, match="has the id 40"):
        registry.register("a", TEXTS[1], schema_id=41, version=7)
    registry.write(delete_mode(registry.state, "a"))
    assert registry.register("a", TEXTS[1]).schema_id == 41
    with pytest.raises(OperationNotPermitted, match="not in import mode"):
        registry.register("a", TEXTS[2], schema_id=50)
    with pytest.raises(OperationNotPermitted, match="force"):
        set_mode(registry.state, None, "IMPORT", force=False)
    registry.write(set_mode(registry.state, None, "IMPORT", force=True))


def test_a_mode_holds_for_what_is_below(registry: Registry) -> None:
    registry.write(set_mode(registry.state, ":.lab:", "READONLY", force=False))
    with pytest.raises(OperationNotPermitted, match="READONLY"):
        registry.register(":.lab:a", TEXTS[0])
    registry.register("a", TEXTS[0])
    registry.write(set_mode(registry.state, ":.lab:a", "READWRITE", force=False))
    registry.register(":.lab:a", TEXTS[0])
    registry.write(delete_mode(registry.state, None, recursive=True))
    assert registry.state.modes == {}


def test_settings_are_merged_and_removed_by_null(registry: Registry) -> None:
    assert registry.write(set_config(registry.state, "a", {"compatibility": "full"})) == {"compatibility": "FULL"}
    registry.write(set_config(registry.state, "a", {"normalize": True, "alias": "b"}))
    assert registry.state.configs["a"] == {"compatibilityLevel": "FULL", "normalize": True, "alias": "b"}
    assert registry.state.aliased("a") == "b"
    registry.write(set_config(registry.state, "a", {"alias": None}))
    assert registry.state.aliased("a") == "a"
    registry.write(set_config(registry.state, None, {"compatibility": "NONE"}))
    assert [registry.state.compatibility(each) for each in ("a", "b", None)] == ["FULL", "NONE", "NONE"]
    registry.write(delete_config(registry.state, "a"))
    assert registry.state.compatibility("a") == "NONE"


def test_only_a_permanent_delete_removes_the_settings_of_a_subject(registry: Registry) -> None:
    registry.register("a", TEXTS[0])
    registry.write(set_config(registry.state, "a", {"compatibility": "FULL"}))
    registry.write(set_mode(registry.state, "a", "READWRITE", force=False))
    registry.write(delete_subject(registry.state, "a", permanent=False))
    assert registry.state.compatibility("a") == "FULL"
    registry.write(delete_subject(registry.state, "a", permanent=True))
    assert "a" not in registry.state.configs
    assert "a" not in registry.state.modes


def test_a_settings_request_that_changes_nothing_writes_nothing(registry: Registry) -> None:
    registry.write(set_config(registry.state, "a", {"compatibility": "FULL", "normalize": True}))
    nothing = set_config(registry.state, "a", {})
    assert (nothing.answer, nothing.records) == ({"compatibility": "FULL", "normalize": True}, [])
    assert set_config(registry.state, "a", {"compatibility": "full"}).answer == {"compatibility": "FULL"}


def test_the_global_context_applies_to_contexts_without_settings(registry: Registry) -> None:
    registry.write(set_config(registry.state, ":.__GLOBAL:", {"compatibility": "FULL"}))
    assert registry.state.compatibility(":.lab:a") == registry.state.compatibility("a") == "FULL"
    registry.write(set_config(registry.state, None, {"compatibility": "NONE"}))
    assert (registry.state.compatibility(":.lab:a"), registry.state.compatibility("a")) == ("FULL", "NONE")
    registry.write(set_config(registry.state, ":.lab:", {"compatibility": "FORWARD"}))
    assert registry.state.compatibility(":.lab:a") == "FORWARD"
    registry.write(set_mode(registry.state, ":.__GLOBAL:", "READONLY", force=False))
    assert registry.state.mode(":.lab:a") == registry.state.mode("a") == "READONLY"
    assert not registry.state.context(".__GLOBAL").is_declared
    with pytest.raises(InvalidSubject):
        registry.register(":.__GLOBAL:a", TEXTS[0])


RULES: dict[str, tuple[Any, str]] = {
    "a kind that does not exist": ({"domainRules": [{"name": "r", "type": "CEL", "kind": "FILTER"}]}, "kind of rule r"),
    "a mode of other rules": ({"domainRules": [{"name": "r", "type": "CEL", "mode": "UPGRADE"}]}, "WRITEREAD"),
    "a mode of domain rules": ({"migrationRules": [{"name": "r", "type": "CEL", "mode": "READ"}]}, "UPDOWN"),
    "no type": ({"encodingRules": [{"name": "r"}]}, "no type"),
    "two of one name": ({"domainRules": [{"name": "r", "type": "CEL"}, {"name": "r", "type": "CEL"}]}, "two rules"),
}


@pytest.mark.parametrize(("rules", "text"), RULES.values(), ids=RULES.keys())
def test_rules_are_checked_for_their_form(rules: Any, text: str) -> None:
    with pytest.raises(InvalidRuleSet, match=text):
        check_rule_set(rules)


def test_metadata_comes_from_default_schema_latest_and_override(registry: Registry) -> None:
    defaults = {"defaultMetadata": {"properties": {"team": "x", "tier": "1"}}}
    registry.write(set_config(registry.state, "a", {**defaults, "overrideMetadata": {"properties": {"tier": "9"}}}))
    first = registry.register("a", TEXTS[0], metadata='{"properties":{"team":"y"}}')
    assert first.schema.properties == {"team": "y", "tier": "9"}
    assert registry.register("a", TEXTS[1]).schema.properties == {"team": "y", "tier": "9"}
    found = registry.state.latest_with("a", {"team": "y"})
    assert found is not None
    assert found.version == 2


def test_versions_of_another_compatibility_group_are_not_compared(registry: Registry) -> None:
    registry.write(set_config(registry.state, "a", {"compatibility": "FULL_TRANSITIVE", "compatibilityGroup": "major"}))
    for text, major in zip(TEXTS[:3], "112", strict=True):
        registry.register("a", text, metadata=f'{{"properties":{{"major":"{major}"}}}}')
    schema = Schema(AVRO, TEXTS[3], metadata='{"properties":{"major":"1"}}')
    versions = compared_with(registry.state, "a", schema, default="NONE")
    assert [each.version for each in versions] == [2, 1]


def test_an_incompatible_schema_is_refused_with_its_problems(registry: Registry) -> None:
    registry.register("a", TEXTS[0])
    schema = Schema(AVRO, TEXTS[2])
    versions = compared_with(registry.state, "a", schema, default="BACKWARD")
    request = Register(subject="a", schema=schema)
    with pytest.raises(StateMoved):
        register(request, registry.state, Checked(()), default="BACKWARD")
    with pytest.raises(IncompatibleSchema, match="'int' cannot be read"):
        register(request, registry.state, Checked(stamp(versions), ("'int' cannot be read",)), default="BACKWARD")


@pytest.mark.parametrize("name", ["", "  ", "a\nb", ":.lab:", "x" * 9000])
def test_a_subject_needs_a_name(registry: Registry, name: str) -> None:
    with pytest.raises(InvalidSubject):
        registry.register(name, TEXTS[0])
