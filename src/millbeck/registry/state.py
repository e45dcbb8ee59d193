"""The state of a registry after the records of ``_schemas``.

Only `RegistryState.replay` changes it, on a leader as on any other instance, at start and later. Two instances that
have read the same records have equal states; the same holds for one that has read the compacted topic, which has only
the last record of each key.

Three things are kept after a delete. Ids are never assigned again: when the schema with the highest id of a context is
permanently deleted, that id is kept in a separate record (`id_floor_key`). Every byte form of a key that has a value is
remembered, because a delete must write a tombstone for each of them. And a key that was deleted in one byte form while
another form still has a value is a leftover: it would reappear after compaction, so the leader writes the missing
tombstone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from millbeck.client.schemas.log_records import (
    TENANT,
    Json,
    KeyType,
    LogKey,
    LogRecord,
    UnreadableRecord,
    decode_json,
    decode_key,
    encode_json,
    encode_key,
    is_usual_key,
    positive,
)
from millbeck.registry.errors import SubjectNotFound, VersionNotFound
from millbeck.registry.schema import Schema, digest_of
from millbeck.registry.subjects import DEFAULT_CONTEXT, GLOBAL_CONTEXT, context_of, context_prefix, qualify, split

ID_FLOOR_SUBJECT: Final = "__millbeck_ids"
"""The subject whose settings store the highest id of a context; Confluent's registry keeps the record unchanged."""
ID_FLOOR_PROPERTY: Final = "millbeck.id.max"
BACKWARD: Final = "BACKWARD"
READWRITE: Final = "READWRITE"
PROBLEMS_MAX: Final = 100
_USUAL_MEMBERS: Final = (
    "subject",
    "version",
    "id",
    "guid",
    "schemaType",
    "references",
    "metadata",
    "ruleSet",
    "schema",
    "deleted",
)


@dataclass(slots=True)
class Version:
    """One version of a subject."""

    subject: str
    version: int
    schema_id: int
    schema: Schema
    is_deleted: bool = False
    """Whether it is soft-deleted: it is then returned only by requests that include deleted versions, but its id still
    works."""
    original: Json | None = None
    """The value as it was read, if it has unknown members, which are kept when it is rewritten."""
    given_guid: str | None = None
    """The guid assigned by another registry, if it differs from the computed one."""

    def value(self, *, is_deleted: bool) -> bytes:
        """The value of its record."""
        if self.original is not None:
            return encode_json({**self.original, "deleted": is_deleted})
        identity = {"subject": self.subject, "version": self.version, "id": self.schema_id, "guid": self.guid}
        return encode_json({**identity, **self.schema.members(), "deleted": is_deleted})

    @property
    def key(self) -> LogKey:
        return LogKey(KeyType.SCHEMA, self.subject, self.version)

    @property
    def guid(self) -> str:
        return self.given_guid or self.schema.guid


@dataclass(slots=True)
class Context:
    """The ids of one context."""

    is_declared: bool = False
    """Whether it has a record."""
    id_max: int = 0
    """The highest id so far, including deleted ones."""
    id_floor: int = 0
    """The id that its separate record keeps (`id_floor_key`)."""
    holders: dict[int, list[Version]] = field(default_factory=dict)
    """The versions with each id."""
    ids: dict[bytes, tuple[int, ...]] = field(default_factory=dict)
    """The ids of each content; more than one only if ids were imported."""


class RegistryState:
    def __init__(self) -> None:
        self.subjects: dict[str, dict[int, Version]] = {}
        self.contexts: dict[str, Context] = {DEFAULT_CONTEXT: Context(is_declared=True)}
        self.configs: dict[str | None, Json] = {}
        """The settings by subject; the key None has the global settings."""
        self.modes: dict[str | None, str] = {}
        self.forms: dict[LogKey, tuple[bytes, ...]] = {}
        """Every byte form of a key that has a value in the log; see `forms_of` for what is left out."""
        self.leftovers: dict[LogKey, None] = {}
        """Deleted keys that still have a value in another byte form."""
        self.referrers: dict[tuple[str, int], dict[tuple[str, int], None]] = {}
        """The versions that refer to each version of a subject."""
        self.given_guids: dict[str, dict[tuple[str, int], None]] = {}
        """The versions with guids of another registry."""
        self.unreadable_count = 0
        self.problems: list[str] = []
        """The first records that could not be read."""

    # replay

    def replay(self, key: bytes | None, value: bytes | None) -> None:
        """Apply the next record. A record that cannot be decoded is counted and skipped, so that it does not stop an
        instance."""
        try:
            self._replay(key, value)
        except UnreadableRecord as error:
            self.unreadable_count += 1
            if len(self.problems) < PROBLEMS_MAX:
                self.problems.append(str(error))

    def _replay(self, raw: bytes | None, value: bytes | None) -> None:
        if raw is None:
            raise UnreadableRecord("a record without a key")
        key = decode_key(raw)
        if key.keytype is KeyType.NOOP:
            return
        before = self.forms_of(key)
        if value is None:
            self._forget(key)
            forms = tuple(form for form in before if form != raw)
            if forms:
                self.forms[key] = forms
                self.leftovers[key] = None
            else:
                self.forms.pop(key, None)
                self.leftovers.pop(key, None)
            return
        members = decode_json(value)
        self._keep(key, members)
        if raw not in before and (before or not is_usual_key(raw)):
            self.forms[key] = (*before, raw)
        self.leftovers.pop(key, None)

    def _keep(self, key: LogKey, members: Json) -> None:
        subject = key.subject
        match key.keytype:
            case KeyType.SCHEMA:
                assert subject is not None
                self._keep_version(subject, key.version, members)
            case KeyType.CONFIG:
                self.configs[subject] = members
                if subject is not None and split(subject)[1] == ID_FLOOR_SUBJECT:
                    self._raise_floor(context_of(subject), members)
            case KeyType.MODE:
                mode = members.get("mode")
                if not isinstance(mode, str):
                    raise UnreadableRecord("the mode must be a string")
                self.modes[subject] = mode
            case KeyType.CONTEXT:
                assert subject is not None
                self._context(subject).is_declared = True
            case KeyType.DELETE_SUBJECT:
                assert subject is not None
                last = positive(members.get("version"), "version")
                for version in self.subjects.get(subject, {}).values():
                    if version.version <= last:
                        version.is_deleted = True
                        if version.original is not None:
                            version.original["deleted"] = True
            case KeyType.CLEAR_SUBJECT:
                assert subject is not None
                for number in list(self.subjects.get(subject, {})):
                    cleared = LogKey(KeyType.SCHEMA, subject, number)
                    self.forms[cleared] = self.forms_of(cleared)
                    self.leftovers[cleared] = None
                    self._forget_version(subject, number)

    def _keep_version(self, subject: str, number: int, members: Json) -> None:
        schema = Schema.from_members(members)
        schema_id = positive(members.get("id"), "id")
        deleted = members.get("deleted", False)
        if not isinstance(deleted, bool | None):
            raise UnreadableRecord("deleted is neither true nor false")
        self._forget_version(subject, number)
        context = self._context(context_of(subject))
        holders = context.holders.setdefault(schema_id, [])
        known = next((each.schema for each in holders if each.schema == schema), schema)
        is_usual = all(name in _USUAL_MEMBERS for name in members)
        guid = members.get("guid")
        versions = self.subjects.get(subject)
        if versions:
            # One name for all versions of a subject.
            subject = next(iter(versions.values())).subject
        version = Version(subject, number, schema_id, known, bool(deleted), None if is_usual else members)
        version.given_guid = guid if isinstance(guid, str) and guid != known.guid else None
        where = (subject, number)
        versions = self.subjects.setdefault(subject, {})
        versions[number] = version
        if next(reversed(versions)) != max(versions):
            self.subjects[subject] = dict(sorted(versions.items()))
        holders.append(version)
        context.id_max = max(context.id_max, schema_id)
        ids = context.ids.get(known.digest, ())
        if schema_id not in ids:
            context.ids[known.digest] = (*ids, schema_id)
        if version.given_guid is not None:
            self.given_guids.setdefault(version.given_guid, {})[where] = None
        for target in self.targets(version):
            self.referrers.setdefault(target, {})[where] = None

    def targets(self, version: Version) -> list[tuple[str, int]]:
        """The versions that a version refers to."""
        context = context_of(version.subject)
        return [(qualify(context, each.subject), each.version) for each in version.schema.references]

    def _forget(self, key: LogKey) -> None:
        subject = key.subject
        match key.keytype:
            case KeyType.SCHEMA:
                assert subject is not None
                self._forget_version(subject, key.version)
            case KeyType.CONFIG:
                self.configs.pop(subject, None)
            case KeyType.MODE:
                self.modes.pop(subject, None)
            case KeyType.CONTEXT:
                assert subject is not None
                if subject in self.contexts and subject != DEFAULT_CONTEXT:
                    self.contexts[subject].is_declared = False

    def _forget_version(self, subject: str, number: int) -> None:
        versions = self.subjects.get(subject, {})
        version = versions.pop(number, None)
        if version is None:
            return
        if not versions:
            del self.subjects[subject]
        where = (subject, number)
        context = self._context(context_of(subject))
        holders = context.holders[version.schema_id]
        holders[:] = [each for each in holders if each is not version]
        if not any(each.schema == version.schema for each in holders):
            digest = version.schema.digest
            ids = tuple(each for each in context.ids[digest] if each != version.schema_id)
            if ids:
                context.ids[digest] = ids
            else:
                del context.ids[digest]
        if not holders:
            del context.holders[version.schema_id]
        if version.given_guid is not None:
            named = self.given_guids[version.given_guid]
            del named[where]
            if not named:
                del self.given_guids[version.given_guid]
        for target in self.targets(version):
            referrers = self.referrers.get(target, {})
            referrers.pop(where, None)
            if not referrers:
                self.referrers.pop(target, None)

    def _raise_floor(self, name: str, members: Json) -> None:
        metadata = members.get("overrideMetadata")
        properties = metadata.get("properties") if isinstance(metadata, dict) else None
        text = properties.get(ID_FLOOR_PROPERTY) if isinstance(properties, dict) else None
        if isinstance(text, str) and text.isascii() and text.isdecimal() and len(text) <= len(str(2**31)):
            context = self._context(name)
            context.id_floor = int(text)
            context.id_max = max(context.id_max, context.id_floor)

    def _context(self, name: str) -> Context:
        return self.contexts.setdefault(name, Context())

    # questions

    def context(self, name: str) -> Context:
        return self.contexts.get(name, Context())

    def versions(self, subject: str, *, deleted: bool = False) -> list[Version]:
        """The versions of a subject in order; with ``deleted`` also soft-deleted ones."""
        return [each for each in self.subjects.get(subject, {}).values() if deleted or not each.is_deleted]

    def version(self, subject: str, number: int | None, *, deleted: bool = False) -> Version:
        """One version; None means the latest. Raises `SubjectNotFound` or `VersionNotFound`."""
        versions = self.versions(subject, deleted=deleted)
        if not versions:
            raise SubjectNotFound(f"Subject '{subject}' not found.")
        if number is None:
            return versions[-1]
        found = self.subjects[subject].get(number)
        if found is None or (found.is_deleted and not deleted):
            raise VersionNotFound(f"Version {number} not found.")
        return found

    def by_id(self, context: str, schema_id: int) -> Version | None:
        """A version with the id, preferably one that is not deleted."""
        holders = self.context(context).holders.get(schema_id)
        if not holders:
            return None
        return next((each for each in holders if not each.is_deleted), holders[0])

    def by_guid(self, guid: str) -> list[Version]:
        """The versions with the guid, in all contexts."""
        found = [self.subjects[subject][number] for subject, number in self.given_guids.get(guid, ())]
        digest = digest_of(guid)
        for context in self.contexts.values():
            for schema_id in context.ids.get(digest, ()):
                holders = context.holders[schema_id]
                found += [each for each in holders if each.given_guid is None and each.schema.digest == digest]
        return found

    def forms_of(self, key: LogKey) -> tuple[bytes, ...]:
        """Every byte form of a key that has a value in the log. If a version's key has the usual form alone, it is not
        stored."""
        forms = self.forms.get(key)
        if forms is not None:
            return forms
        is_version = key.keytype is KeyType.SCHEMA and key.version in self.subjects.get(key.subject or "", {})
        return (encode_key(key),) if is_version else ()

    def latest_with(self, subject: str, properties: dict[str, str], *, deleted: bool = False) -> Version | None:
        """The latest version whose metadata has all these properties."""
        for version in reversed(self.versions(subject, deleted=deleted)):
            if properties.items() <= dict(version.schema.properties).items():
                return version
        return None

    def next_id(self, context: str) -> int:
        return self.context(context).id_max + 1

    def settings_chain(self, subject: str | None) -> Iterator[str | None]:
        """The sources of a subject's settings in order of precedence: the subject, its context, the context
        ``.__GLOBAL``, the global settings, which are those of the default context."""
        context = DEFAULT_CONTEXT
        if subject is not None:
            yield subject
            context, name = split(subject)
            if context != DEFAULT_CONTEXT and name:
                yield context_prefix(context)
        everywhere = context_prefix(GLOBAL_CONTEXT)
        yield from (None, everywhere) if context == DEFAULT_CONTEXT else (everywhere, None)

    def setting(self, subject: str | None, name: str) -> object:
        """The effective value of a setting, or None."""
        chain = self.settings_chain(subject)
        return next((self.configs[each][name] for each in chain if name in self.configs.get(each, {})), None)

    def compatibility(self, subject: str | None, default: str = BACKWARD) -> str:
        found = self.setting(subject, "compatibilityLevel")
        return found if isinstance(found, str) else default

    def mode(self, subject: str | None) -> str:
        return next((self.modes[each] for each in self.settings_chain(subject) if each in self.modes), READWRITE)

    def aliased(self, subject: str) -> str:
        """The subject with aliases resolved."""
        alias = self.configs.get(subject, {}).get("alias")
        return qualify(context_of(subject), alias) if isinstance(alias, str) and alias else subject

    # records

    def record(self, key: LogKey, members: Json) -> LogRecord:
        return LogRecord(encode_key(key), encode_json(members))

    def tombstones(self, key: LogKey) -> list[LogRecord]:
        """The records that delete a key: a tombstone for every byte form that has a value."""
        return [LogRecord(raw, None) for raw in self.forms_of(key)]

    def leftover_tombstones(self) -> list[LogRecord]:
        """Tombstones for leftovers, so that deleted keys do not reappear after compaction."""
        return [record for key in self.leftovers for record in self.tombstones(key)]

    def context_records(self, name: str) -> list[LogRecord]:
        """The record of a context that has none yet."""
        if self.context(name).is_declared or name in (DEFAULT_CONTEXT, GLOBAL_CONTEXT):
            return []
        key = LogKey(KeyType.CONTEXT, name)
        return [self.record(key, {"tenant": TENANT, "context": name})]

    def id_floor_records(self, removed: list[Version]) -> list[LogRecord]:
        """The records that keep the highest id of a context when these versions are permanently deleted."""
        records: list[LogRecord] = []
        for name in dict.fromkeys(context_of(each.subject) for each in removed):
            highest = self.context(name).id_max
            if any(each.schema_id == highest and context_of(each.subject) == name for each in removed):
                records.append(self._id_floor_record(name, highest))
        return records

    def missing_id_floor_records(self) -> list[LogRecord]:
        """The records that keep the highest id of contexts in which another registry has permanently deleted it: this
        state has seen that, and one that is read after compaction would not."""
        return [
            self._id_floor_record(name, each.id_max)
            for name, each in self.contexts.items()
            if each.id_max > max(each.id_floor, max(each.holders, default=0))
        ]

    def _id_floor_record(self, context: str, highest: int) -> LogRecord:
        properties = {"properties": {ID_FLOOR_PROPERTY: str(highest)}}
        members = {"compatibilityLevel": BACKWARD, "overrideMetadata": properties}
        return self.record(id_floor_key(context), members)

    def image(self) -> object:
        """All content that answers depend on, for comparing states."""
        return (
            {
                subject: [(each.version, each.schema_id, each.schema, each.is_deleted) for each in versions.values()]
                for subject, versions in sorted(self.subjects.items())
            },
            {name: (each.id_max, each.is_declared) for name, each in sorted(self.contexts.items()) if each.id_max},
            self.configs,
            self.modes,
            sorted((key, sorted(referrers)) for key, referrers in self.referrers.items()),
        )


def id_floor_key(context: str) -> LogKey:
    return LogKey(KeyType.CONFIG, qualify(context, ID_FLOOR_SUBJECT))
