"""Delete versions, subjects and contexts: soft deletes and permanent deletes.

A soft delete hides versions, but their ids still work: data written with them stays readable. A permanent delete
removes soft-deleted versions from the log, with a tombstone for every byte form of the key.
"""

from __future__ import annotations

from typing import Final

from millbeck.client.schemas.log_records import KeyType, LogKey, LogRecord, encode_key
from millbeck.registry.decision import Decision, check_writable
from millbeck.registry.errors import (
    ContextNotEmpty,
    OperationNotPermitted,
    ReferenceExists,
    SubjectNotFound,
    SubjectNotSoftDeleted,
    SubjectSoftDeleted,
    VersionNotFound,
    VersionNotSoftDeleted,
    VersionSoftDeleted,
)
from millbeck.registry.state import RegistryState, Version, id_floor_key
from millbeck.registry.subjects import DEFAULT_CONTEXT, context_of

_OWN_KEYS: Final = (KeyType.CONFIG, KeyType.MODE, KeyType.DELETE_SUBJECT, KeyType.CLEAR_SUBJECT)
"""The keys of a subject other than those of its versions."""


def delete_version(state: RegistryState, subject: str, number: int | None, *, permanent: bool) -> Decision[int]:
    """Delete one version, by default the latest; returns its number."""
    if number is None:
        number = state.version(subject, None, deleted=permanent).version
    check_writable(state, subject)
    versions = state.subjects.get(subject)
    if versions is None:
        raise SubjectNotFound(f"Subject '{subject}' not found.")
    version = versions.get(number)
    if version is None:
        raise VersionNotFound(f"Version {number} not found.")
    if not permanent:
        if version.is_deleted:
            raise VersionSoftDeleted(
                f"Subject '{subject}' Version {number} was soft deleted. Set permanent=true to delete permanently"
            )
        _check_unreferenced(state, [version])
        return Decision(number, [*_other_forms(state, version), _value(version)])
    if not version.is_deleted:
        raise VersionNotSoftDeleted(
            f"Subject '{subject}' Version {number} was not deleted first before being permanently deleted"
        )
    _check_unreferenced(state, [version])
    return Decision(number, [*state.id_floor_records([version]), *state.tombstones(version.key)])


def delete_subject(state: RegistryState, subject: str, *, permanent: bool) -> Decision[list[int]]:
    """Delete all versions of the subject, and if permanent also its settings and its mode; returns the version
    numbers."""
    check_writable(state, subject)
    everything = state.versions(subject, deleted=True)
    if not everything:
        raise SubjectNotFound(f"Subject '{subject}' not found.")
    live = [each for each in everything if not each.is_deleted]
    if not permanent:
        if not live:
            raise SubjectSoftDeleted(f"Subject '{subject}' was soft deleted.Set permanent=true to delete permanently")
        _check_unreferenced(state, live)
        key = LogKey(KeyType.DELETE_SUBJECT, subject)
        return Decision(
            [each.version for each in live], [state.record(key, {"subject": subject, "version": live[-1].version})]
        )
    if live:
        raise SubjectNotSoftDeleted(f"Subject '{subject}' was not deleted first before being permanently deleted")
    _check_unreferenced(state, everything)
    own = [LogKey(each, subject) for each in _OWN_KEYS]
    records = state.id_floor_records(everything)
    records += [record for each in everything for record in state.tombstones(each.key)]
    records += [record for each in own for record in state.tombstones(each)]
    return Decision([each.version for each in everything], records)


def delete_context(state: RegistryState, name: str) -> Decision[None]:
    """Remove an empty context; its ids are not assigned again."""
    if name == DEFAULT_CONTEXT:
        raise OperationNotPermitted("the default context cannot be deleted")
    if any(context_of(subject) == name for subject in state.subjects):
        raise ContextNotEmpty(f"The specified context '{name}' is not empty.")
    floor = id_floor_key(name)
    owned = [key for key in state.forms if _belongs_to(key, name) and key != floor]
    return Decision(None, [record for key in owned for record in state.tombstones(key)])


def _belongs_to(key: LogKey, context: str) -> bool:
    if key.keytype is KeyType.CONTEXT:
        return key.subject == context
    return key.subject is not None and context_of(key.subject) == context


def _value(version: Version) -> LogRecord:
    return LogRecord(encode_key(version.key), version.value(is_deleted=True))


def _other_forms(state: RegistryState, version: Version) -> list[LogRecord]:
    """Tombstones for older byte forms of a key that is rewritten, so that only one form remains."""
    return [record for record in state.tombstones(version.key) if record.key != encode_key(version.key)]


def _check_unreferenced(state: RegistryState, versions: list[Version]) -> None:
    for version in versions:
        holders = state.referrers.get((version.subject, version.version), {})
        referring = {where: state.subjects[where[0]][where[1]] for where in holders}
        blocking = [where for where, each in referring.items() if each not in versions and not each.is_deleted]
        if blocking:
            raise ReferenceExists(
                "One or more references exist to the schema "
                f"{{magic=1,keytype=SCHEMA,subject={version.subject},version={version.version},id={version.schema_id}}}:"
                f" version {blocking[0][1]} of {blocking[0][0]} refers to it"
            )
