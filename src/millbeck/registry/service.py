"""The operations of a registry: parse, compare, find and register schemas, over one instance.

Parsing and comparing run off the event loop on immutable values, and are repeated if the versions have changed in
between. The `PARSED_MAX` most recently used parsed schemas are cached.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar, TypeVarTuple, Unpack

from millbeck.client.schemas.model import BASE64_TEXT
from millbeck.kernel.environment import Environment
from millbeck.registry.compatibility import messages_of, problems_between
from millbeck.registry.decision import Decision
from millbeck.registry.errors import InvalidSchema, SchemaTooLarge, StoreTimeout, SubjectNotFound, VersionNotFound
from millbeck.registry.formats.interface import Form, Imported, ParsedSchema, Policy, SchemaFormat
from millbeck.registry.instance import Instance
from millbeck.registry.registering import (
    Checked,
    Register,
    StateMoved,
    compared_with,
    find,
    register,
    stamp,
)
from millbeck.registry.schema import PROTOBUF, Reference, Schema
from millbeck.registry.state import RegistryState, Version
from millbeck.registry.subjects import check, context_of, qualify

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

PARSED_MAX: Final = 1000
REFERENCES_MAX: Final = 1000
VERSIONS_COMPARED_BY_MEANING: Final = 100
_ATTEMPTS: Final = 5
_NONE: Final = "NONE"
_POLICY: Final = "compatibilityPolicy"


@dataclass(frozen=True, slots=True)
class Resolved:
    """A schema with the texts of all its direct and indirect references, in order of dependency."""

    schema: Schema
    imported: tuple[Imported, ...]

    @property
    def key(self) -> tuple[str, str, tuple[Imported, ...]]:
        return self.schema.schema_type, self.schema.text, self.imported


class SchemaService:
    def __init__(self, environment: Environment, instance: Instance, formats: Sequence[SchemaFormat]) -> None:
        self.instance = instance
        self.formats = {each.name: each for each in formats}
        self._environment = environment
        self._parsed: OrderedDict[tuple[str, str, tuple[Imported, ...]], ParsedSchema] = OrderedDict()

    @property
    def state(self) -> RegistryState:
        return self.instance.state

    # parsing

    def resolve(self, subject: str, schema: Schema) -> Resolved:
        """Find the referenced schemas; raises `InvalidSchema` if one is missing."""
        found: dict[tuple[str, int], Imported] = {}
        pending: dict[tuple[str, int], None] = {}
        self._collect(context_of(subject), schema.references, found, pending)
        return Resolved(schema, tuple(found.values()))

    def _collect(
        self,
        context: str,
        references: Sequence[Reference],
        found: dict[tuple[str, int], Imported],
        pending: dict[tuple[str, int], None],
    ) -> None:
        for reference in references:
            where = (qualify(context, reference.subject), reference.version)
            if where in found:
                continue
            if where in pending:
                raise InvalidSchema(f"Invalid schema: version {where[1]} of {where[0]} refers to itself")
            if len(pending) + len(found) >= REFERENCES_MAX:
                raise SchemaTooLarge(f"the schema has more than {REFERENCES_MAX} references")
            pending[where] = None
            try:
                version = self.state.version(*where, deleted=True)
            except (SubjectNotFound, VersionNotFound):
                raise InvalidSchema(
                    f"Invalid schema: reference '{reference.name}' refers to version {where[1]} of subject "
                    f"'{where[0]}', which does not exist; register that version first"
                ) from None
            try:
                self._collect(context_of(where[0]), version.schema.references, found, pending)
            except RecursionError:
                raise SchemaTooLarge("the references of the schema are nested too deeply") from None
            found[where] = Imported(reference.name, version.schema.text)

    async def parse(self, resolved: Resolved, *, is_new: bool) -> ParsedSchema:
        known = self._parsed.get(resolved.key)
        if known is not None and not is_new:
            self._parsed.move_to_end(resolved.key)
            return known
        found = self.formats.get(resolved.schema.schema_type)
        if found is None:
            raise InvalidSchema(
                f"Invalid schema type {resolved.schema.schema_type[:100]}: this registry has {', '.join(self.formats)}"
            )
        parsed = await self._off_loop(_parse, found, resolved, is_new)
        self._parsed[resolved.key] = parsed
        if len(self._parsed) > PARSED_MAX:
            self._parsed.popitem(last=False)
        return parsed

    async def _off_loop(self, job: Callable[[Unpack[Ts]], T], *arguments: *Ts) -> T:
        try:
            return await self._environment.threads.run(job, *arguments)
        except BlockingIOError:
            raise StoreTimeout("too many schemas are being parsed; try again") from None

    async def parsed_version(self, version: Version) -> ParsedSchema:
        return await self.parse(self.resolve(version.subject, version.schema), is_new=False)

    async def canonical(self, subject: str, schema: Schema, *, normalize: bool) -> tuple[Schema, ParsedSchema]:
        """The schema with its text in the stored form; raises `InvalidSchema`."""
        is_normal = normalize or self.state.setting(subject, "normalize") is True
        if is_normal:
            schema = replace(schema, references=tuple(sorted(dict.fromkeys(schema.references))))
        is_checked = self.state.setting(subject, "validateNewSchemas") is not False
        parsed = await self.parse(self.resolve(subject, schema), is_new=is_checked)
        text = await self._off_loop(parsed.text, Form.NORMALIZED if is_normal else Form.CANONICAL)
        stored = replace(schema, text=text)
        return await self._as_stored(subject, stored, parsed, Form.NORMALIZED if is_normal else Form.COMPARED), parsed

    async def _as_stored(self, subject: str, schema: Schema, parsed: ParsedSchema, form: Form) -> Schema:
        """The schema with the text of an existing version that is equal in this form; unchanged if there is no such
        version."""
        if find(self.state, subject, schema, deleted=True) is not None:
            return schema
        for version in self.state.versions(subject, deleted=True)[: -VERSIONS_COMPARED_BY_MEANING - 1 : -1]:
            theirs = version.schema
            if theirs.schema_type == schema.schema_type and theirs.references == schema.references:
                try:
                    other = await self.parsed_version(version)
                    same = await self._off_loop(_are_equal, parsed, other, form)
                except (InvalidSchema, SchemaTooLarge):
                    continue
                if same:
                    return replace(schema, text=theirs.text)
        return schema

    async def text(self, version: Version, form: str) -> str:
        """The text in a form: ``serialized`` for Protobuf, ``resolved`` for other types; for any other value the stored
        text."""
        other = Form.SERIALIZED if version.schema.schema_type == PROTOBUF else Form.RESOLVED
        if form != other.value:
            return version.schema.text
        return await self._off_loop((await self.parsed_version(version)).text, other)

    async def text_for(self, sent: Schema, version: Version, form: str) -> str:
        """The text for the answer to a client that has sent a schema. A client that sends a descriptor gets a
        descriptor, since it stores the answer in place of its own schema."""
        if not form and sent.schema_type == PROTOBUF and BASE64_TEXT.match(sent.text):
            form = Form.SERIALIZED.value
        return await self.text(version, form)

    # registering

    async def register(
        self,
        subject: str,
        schema: Schema,
        *,
        normalize: bool = False,
        schema_id: int | None = None,
        version: int | None = None,
    ) -> tuple[Version, int]:
        """The existing or new version with the schema, and the offset that a reader must have read to see it."""
        await self.instance.wait_settled()
        subject = check(subject)
        default = self.instance.settings.compatibility
        for _ in range(_ATTEMPTS):
            stored, parsed = await self.canonical(subject, schema, normalize=normalize)
            request = Register(subject=subject, schema=stored, schema_id=schema_id, version=version)
            versions = compared_with(self.state, subject, stored, default=default)
            checked = Checked(stamp(versions))
            if versions and schema_id is None and find(self.state, subject, stored) is None:
                level = self.state.compatibility(subject, default)
                problems = await self.compare(subject, stored, parsed, versions, level)
                checked = Checked(stamp(versions), tuple(problems))
            try:
                return await self.instance.submit(_registering(request, checked, default))
            except StateMoved:
                continue
        raise StoreTimeout(f"the versions of subject '{subject}' change faster than a schema is checked; try again")

    async def lookup(self, subject: str, schema: Schema, *, normalize: bool, deleted: bool) -> Version | None:
        """The version of the subject with this schema."""
        stored, _ = await self.canonical(subject, schema, normalize=normalize)
        return find(self.state, subject, stored, deleted=deleted)

    # comparing

    async def compare(
        self, subject: str, schema: Schema, parsed: ParsedSchema, versions: list[Version], level: str
    ) -> list[str]:
        """The messages for the first version with which the schema is not compatible by the level."""
        policy = Policy.LENIENT if self.state.setting(subject, _POLICY) == Policy.LENIENT.value else Policy.STRICT
        for version in versions:
            if version.schema.schema_type != schema.schema_type:
                return [
                    f"{{errorType:'TYPE_CHANGED', description:'the new schema is of type {schema.schema_type}, the old "
                    f"one of type {version.schema.schema_type}; the type can change only with compatibility NONE'}}",
                    f"{{oldSchemaVersion: {version.version}}}",
                    f"{{compatibility: '{level}'}}",
                ]
            older = await self.parsed_version(version)
            problems = await self._off_loop(problems_between, parsed, older, level, policy)
            if problems:
                return messages_of(problems, version=version.version, old_text=version.schema.text, level=level)
        return []

    async def compatibility_problems(
        self, subject: str, schema: Schema, number: int | None, *, normalize: bool, all_versions: bool
    ) -> list[str]:
        """The problems of registering the schema beside one version (None means the latest), or beside all relevant
        ones. Any valid schema is compatible with a subject without versions; raises `VersionNotFound`."""
        default = self.instance.settings.compatibility
        level = self.state.compatibility(subject, default)
        if all_versions:
            versions = compared_with(self.state, subject, schema, default=default)
        elif number is None:
            versions = self.state.versions(subject)[-1:]
        else:
            versions = [each for each in self.state.versions(subject) if each.version == number]
            if not versions:
                raise VersionNotFound(f"Version {number} not found.")
        _, parsed = await self.canonical(subject, schema, normalize=normalize)
        return [] if level == _NONE else await self.compare(subject, schema, parsed, versions, level)

    # listing

    def listed_subjects(self, prefix: str, *, aliases: bool = False) -> Iterator[str]:
        """The subjects with a prefix: those of a context (``:.lab:``), of all contexts (``:*:``), or whose names begin
        with it; with ``aliases`` also the subjects whose alias has the prefix."""
        matching = self._matching(self.state.subjects, prefix)
        if not aliases:
            yield from matching
            return
        named = [each for each in self.state.configs if each is not None and self.state.aliased(each) != each]
        targets = (self.state.aliased(each) for each in self._matching(named, prefix))
        found = dict.fromkeys((*matching, *(each for each in targets if each in self.state.subjects)))
        yield from sorted(found)

    def _matching(self, names: Iterable[str], prefix: str) -> Iterator[str]:
        if prefix.startswith(":*:"):
            rest = prefix[3:]
            yield from (each for each in sorted(names) if _plain(each).startswith(rest))
            return
        context = context_of(prefix) if prefix.startswith(":.") else None
        for each in sorted(names):
            if (context is None or context_of(each) == context) and each.startswith(prefix.removeprefix(":.:")):
                yield each


def _plain(subject: str) -> str:
    return subject.partition(":.")[2].partition(":")[2] if subject.startswith(":.") else subject


def _registering(request: Register, checked: Checked, default: str) -> Callable[[RegistryState], Decision[Version]]:
    def decide(state: RegistryState) -> Decision[Version]:
        return register(request, state, checked, default=default)

    return decide


def _are_equal(one: ParsedSchema, other: ParsedSchema, form: Form) -> bool:
    return one.text(form) == other.text(form)


def _parse(found: SchemaFormat, resolved: Resolved, is_new: bool) -> ParsedSchema:
    return found.parse(resolved.schema.text, resolved.imported, is_new=is_new)
