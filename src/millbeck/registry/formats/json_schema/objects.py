"""Keywords of objects: properties under open, closed and partially open content models.

A model is open if a document may have any other property, closed if it may have none, and partially open if other
properties must satisfy a schema. Under the policy LENIENT writers write only declared properties, and readers ignore
undeclared ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import re2

from millbeck.registry.formats.interface import Incompatibility
from millbeck.registry.formats.json_schema.conjuncts import Part, Writer
from millbeck.registry.formats.json_schema.documents import Place
from millbeck.registry.formats.json_schema.scalars import bound_problems, problem, shown

if TYPE_CHECKING:
    from millbeck.registry.formats.json_schema.compatibility import Comparison

_ADDED_TO_OPEN: Final = "PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL"
_ADDED_NOT_COVERED: Final = "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
_REMOVED_FROM_CLOSED: Final = "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL"
_REMOVED_NOT_COVERED: Final = "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"


def object_problems(comparison: Comparison, reader: Part, writer: Writer, path: str) -> Iterator[Incompatibility]:
    model = _Objects(comparison, reader, writer, path)
    yield from model.properties()
    yield from model.required()
    yield from model.others()
    yield from model.counts()
    yield from model.names()
    yield from model.dependencies()
    yield from model.unevaluated()


@lru_cache(maxsize=1000)
def _compiled(pattern: str) -> re2._Regexp | None:
    """Compile a pattern; None if RE2 does not support it, such as a look-ahead."""
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error:
        return None


def _matches(pattern: str, name: str) -> bool | None:
    """Whether a name matches a pattern; None if that is unknown."""
    compiled = _compiled(pattern)
    return None if compiled is None else compiled.search(name) is not None


class _Objects:
    def __init__(self, comparison: Comparison, reader: Part, writer: Writer, path: str) -> None:
        self._comparison = comparison
        self._reader = reader
        self._writer = writer
        self._path = path
        self._read = reader.mapped("properties")
        self._read_patterns = reader.mapped("patternProperties")
        self._declared = {name: None for part in writer.plains for name in part.mapped("properties")}
        self._rest = self._written_as([part.child("additionalProperties") for part in writer.plains])
        """The writer's schema of properties that no keyword names or matches."""
        self._written_patterns = {
            pattern: place for part in writer.plains for pattern, place in part.mapped("patternProperties").items()
        }
        self._is_open = not self._rest.parts and not self._written_patterns

    def _written_as(self, places: list[Place | None]) -> Writer:
        return Writer.of(self._writer.documents, [each for each in places if each is not None])

    def _written(self, name: str) -> Writer:
        """The writer's schema of the property with this name."""
        places: list[Place | None] = []
        for part in self._writer.plains:
            own = part.child("properties", name)
            matching = [_matches(pattern, name) for pattern in part.mapped("patternProperties")]
            places.append(own)
            places += [
                place
                for place, matches in zip(part.mapped("patternProperties").values(), matching, strict=True)
                if matches
            ]
            if own is None and not any(each is not False for each in matching):
                places.append(part.child("additionalProperties"))
        return self._written_as(places)

    def _readers(self, name: str) -> list[Place]:
        """The reader's schemas of a property with this name."""
        own = self._read.get(name)
        matching = {pattern: _matches(pattern, name) for pattern in self._read_patterns}
        found = [] if own is None else [own]
        found += [self._read_patterns[pattern] for pattern, matches in matching.items() if matches is not False]
        rest = self._reader.child("additionalProperties")
        if own is None and True not in matching.values() and rest is not None:
            found.append(rest)
        return found

    def properties(self) -> Iterator[Incompatibility]:
        for name in dict.fromkeys((*self._read, *self._declared)):
            written = self._written(name)
            if written.is_nothing:
                continue
            where = f"{self._path}/properties/{name}"
            readers = self._readers(name)
            found = [each for place in readers for each in self._comparison.accept(place, written, where)]
            if not found:
                continue
            if name in self._read and name in self._declared:
                yield from found
            elif name in self._read:
                yield from self._added(name, written, where)
            else:
                yield from self._removed(name, readers, where)

    def _added(self, name: str, written: Writer, where: str) -> Iterator[Incompatibility]:
        if not written.parts:
            if not self._comparison.is_lenient:
                yield problem(
                    _ADDED_TO_OPEN,
                    where,
                    f"the property {shown(name)} is new in an open content model, in which it may have been written as "
                    "anything; close the model before (additionalProperties: false), accept any value, or set "
                    "compatibilityPolicy to LENIENT",
                    name,
                )
            return
        yield problem(
            _ADDED_NOT_COVERED,
            where,
            f"the property {shown(name)} is new, and does not accept all that additionalProperties or "
            "patternProperties have accepted for it; widen its schema",
            name,
        )

    def _removed(self, name: str, readers: list[Place], where: str) -> Iterator[Incompatibility]:
        if any(place.node is False for place in readers):
            if not self._comparison.is_lenient:
                yield problem(
                    _REMOVED_FROM_CLOSED,
                    where,
                    f"the property {shown(name)} was removed and the content model is closed, so that a document "
                    "with it is refused; keep it, open the model, or set compatibilityPolicy to LENIENT",
                    name,
                )
            return
        yield problem(
            _REMOVED_NOT_COVERED,
            where,
            f"the property {shown(name)} was removed, and additionalProperties or patternProperties do not accept "
            "what it has accepted; widen them, or keep it",
            name,
        )

    def required(self) -> Iterator[Incompatibility]:
        known = {name: None for names in self._writer.values("required") if isinstance(names, list) for name in names}
        wanted = self._reader.words.get("required")
        for name in wanted if isinstance(wanted, list) else ():
            if name in known or not isinstance(name, str):
                continue
            own = self._read.get(name)
            if own is not None and isinstance(own.node, dict) and "default" in own.node:
                continue
            is_new = name in self._read and name not in self._declared and not self._is_open
            kind = "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL" if is_new else "REQUIRED_ATTRIBUTE_ADDED"
            yield problem(
                kind,
                f"{self._path}/required",
                f"the property {shown(name)} is required and may not have been written; do not require it, or give it "
                "a default",
                name,
            )

    def others(self) -> Iterator[Incompatibility]:
        """Compare the properties that neither schema names."""
        rest = self._reader.child("additionalProperties")
        where = f"{self._path}/additionalProperties"
        if rest is not None and not self._is_ignored(rest):
            found = self._comparison.accept(rest, self._rest, where)
            if found and rest.node is False:
                yield problem(
                    "ADDITIONAL_PROPERTIES_REMOVED",
                    where,
                    "other properties may have been written, and are refused; keep allowing them",
                    False,
                )
            elif found and not self._rest.parts:
                yield problem(
                    "ADDITIONAL_PROPERTIES_NARROWED",
                    where,
                    "other properties may have been written with any value; keep allowing that",
                    rest.node,
                )
            else:
                yield from found
        yield from self._written_by_pattern(rest)
        yield from self._read_by_pattern()

    def _is_ignored(self, rest: Place) -> bool:
        """Whether no writer writes the properties to which the reader's remaining rules apply."""
        return self._comparison.is_lenient and self._is_open and rest.node is False

    def _written_by_pattern(self, rest: Place | None) -> Iterator[Incompatibility]:
        for pattern, place in self._written_patterns.items():
            by = self._read_patterns.get(pattern, rest)
            where = f"{self._path}/patternProperties/{shown(pattern)}"
            if by is None or not self._comparison.accept(by, self._written_as([place]), where):
                continue
            if pattern in self._read_patterns:
                yield from self._comparison.accept(by, self._written_as([place]), where)
            else:
                kind = _REMOVED_FROM_CLOSED if by.node is False else _REMOVED_NOT_COVERED
                yield problem(
                    kind, where, f"properties that match {shown(pattern)} may have been written; keep them", pattern
                )

    def _read_by_pattern(self) -> Iterator[Incompatibility]:
        for pattern, place in self._read_patterns.items():
            where = f"{self._path}/patternProperties/{shown(pattern)}"
            if pattern in self._written_patterns or (self._is_open and self._comparison.is_lenient):
                continue
            overlapping = [self._written_as([each]) for each in self._written_patterns.values()]
            if any(self._comparison.accept(place, each, where) for each in (self._rest, *overlapping)):
                yield problem(
                    _ADDED_TO_OPEN if self._is_open else _ADDED_NOT_COVERED,
                    where,
                    f"properties that match {shown(pattern)} may have been written as something else",
                    pattern,
                )

    def counts(self) -> Iterator[Incompatibility]:
        is_closed = self._rest.is_nothing and not self._written_patterns
        known = len(self._declared) if is_closed else None
        yield from bound_problems(self._reader, self._writer, "maxProperties", self._path, known)
        required = {name: None for names in self._writer.values("required") for name in names}
        yield from bound_problems(self._reader, self._writer, "minProperties", self._path, len(required) or None)

    def names(self) -> Iterator[Incompatibility]:
        wanted = self._reader.child("propertyNames")
        if wanted is None:
            return
        written = self._written_as([part.child("propertyNames") for part in self._writer.plains])
        where = f"{self._path}/propertyNames"
        strings = Writer(written.documents, written.parts, "string")
        if not self._comparison.accept(wanted, strings, where):
            return
        is_closed = self._rest.is_nothing and not self._written_patterns
        if is_closed and all(self._comparison.accepts_value(wanted, name) for name in self._declared):
            return
        yield problem(
            "PROPERTY_NAMES_CHANGED",
            where,
            "names that were allowed are refused; keep propertyNames unchanged",
            wanted.node,
        )

    def dependencies(self) -> Iterator[Incompatibility]:
        always = {name: None for names in self._writer.values("required") for name in names}
        for keyword in ("dependentRequired", "dependencies"):
            lists = self._reader.words.get(keyword)
            for name, wanted in lists.items() if isinstance(lists, dict) else ():
                if isinstance(wanted, list):
                    yield from self._dependency(keyword, name, wanted, always)
        for keyword in ("dependentSchemas", "dependencies"):
            for name, place in self._reader.mapped(keyword).items():
                given = [
                    part.child(each, name)
                    for part in self._writer.plains
                    for each in ("dependentSchemas", "dependencies")
                ]
                together = self._written_as(given)
                where = f"{self._path}/{keyword}/{name}"
                known = Writer(together.documents, (*self._writer.parts, *together.parts), "object")
                if self._comparison.accept(place, known, where):
                    yield problem(
                        "DEPENDENCY_SCHEMA_ADDED" if not together.parts else "DEPENDENCY_SCHEMA_CHANGED",
                        where,
                        f"documents with {shown(name)} may not satisfy its dependency; keep it unchanged",
                        name,
                    )

    def _dependency(
        self, keyword: str, name: str, wanted: list[object], always: dict[str, None]
    ) -> Iterator[Incompatibility]:
        given = [
            each
            for other in ("dependentRequired", "dependencies")
            for lists in self._writer.values(other)
            if isinstance(lists, dict) and isinstance(lists.get(name), list)
            for each in lists[name]
        ]
        missing = [each for each in wanted if each not in given and each not in always and each != name]
        if missing and not self._written(name).is_nothing:
            yield problem(
                "DEPENDENCY_ARRAY_EXTENDED" if given else "DEPENDENCY_ARRAY_ADDED",
                f"{self._path}/{keyword}/{name}",
                f"documents with {shown(name)} may not have {shown(missing[0])}; do not require it",
                missing[0],
            )

    def unevaluated(self) -> Iterator[Incompatibility]:
        rest = self._reader.child("unevaluatedProperties")
        if rest is None or rest.node is True or self._is_ignored(rest):
            return
        where = f"{self._path}/unevaluatedProperties"
        given = [part.child("unevaluatedProperties") for part in self._writer.plains]
        written = self._written_as([*given, *(part.child("additionalProperties") for part in self._writer.plains)])
        if self._comparison.accept(rest, written, where):
            yield problem("UNEVALUATED_PROPERTIES_REMOVED", where, "other properties may have been written", rest.node)
            return
        known = self._comparison.reader_names(self._reader)
        for name in self._comparison.writer_names(self._writer):
            if name not in known and not self._comparison.is_lenient:
                yield problem(
                    _REMOVED_FROM_CLOSED,
                    f"{self._path}/properties/{name}",
                    f"the property {shown(name)} was removed and no other property is accepted; keep it",
                    name,
                )
