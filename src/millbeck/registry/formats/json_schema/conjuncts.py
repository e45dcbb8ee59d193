"""A schema as conjuncts: parts that must all hold, with references resolved and allOf split.

A `Writer` has the known conditions of a written document: the conjuncts of one schema, or of several that all apply to
the same value. A schema that occurs twice is one conjunct, so a chain in which each schema refers to the next one twice
stays small.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from millbeck.registry.formats.json_schema.documents import Documents, Place
from millbeck.registry.formats.json_schema.drafts import Draft, Json, reference

TYPES: Final[tuple[str, ...]] = ("null", "boolean", "string", "number", "integer", "array", "object")
_COMBINING: Final = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "$ref", "$dynamicRef", "$recursiveRef")
_ANNOTATIONS: Final = (
    "title",
    "description",
    "default",
    "examples",
    "definitions",
    "$defs",
    "$schema",
    "$id",
    "$comment",
)


@dataclass(frozen=True, slots=True)
class Part:
    """One conjunct; ``kind`` is ``plain``, ``anyOf``, ``oneOf``, ``not``, ``if``, ``never`` or ``metaschema``."""

    kind: str
    place: Place
    words: Json
    """The keywords of a plain part."""
    branches: tuple[Place, ...] = ()
    """The alternatives of anyOf and oneOf."""

    @property
    def key(self) -> tuple[str, str]:
        return self.kind, self.place.location

    def child(self, *names: str) -> Place | None:
        """The schema at a keyword, or below it; None if there is none."""
        node: Any = self.words
        for name in names:
            node = node.get(name) if isinstance(node, dict) else None
        if not isinstance(node, dict | bool):
            return None
        return self.place.child("".join(f"/{name.replace('~', '~0').replace('/', '~1')}" for name in names), node)

    def listed(self, name: str) -> list[Place]:
        nodes = self.words.get(name)
        return [
            self.place.child(f"/{name}/{index}", node)
            for index, node in enumerate(nodes if isinstance(nodes, list) else ())
            if isinstance(node, dict | bool)
        ]

    def mapped(self, name: str) -> dict[str, Place]:
        nodes = self.words.get(name)
        found = {key: self.child(name, key) for key in (nodes if isinstance(nodes, dict) else ())}
        return {key: place for key, place in found.items() if place is not None}

    @property
    def draft(self) -> Draft:
        return self.place.document.draft


def parts_of(documents: Documents, places: Iterable[Place]) -> tuple[Part, ...]:
    """The conjuncts of schemas that all apply."""
    found: dict[tuple[str, str], Part] = {}
    seen: dict[str, None] = {}
    pending = list(places)[::-1]
    while pending:
        place = pending.pop()
        if place.location in seen:
            continue
        seen[place.location] = None
        node = place.node
        if isinstance(node, bool):
            if not node:
                found["never", ""] = Part("never", place, {})
            continue
        if reference(node) is not None:
            target = documents.target(place)
            if target is None:
                found["metaschema", str(reference(node))] = Part("metaschema", place, {})
            else:
                pending.append(target)
            if place.document.draft <= Draft.DRAFT_7:
                continue
        for part in _own(place, node):
            found[part.key] = part
        pending += reversed(Part("plain", place, node).listed("allOf"))
    return tuple(found.values())


def _own(place: Place, node: Json) -> Iterator[Part]:
    words = {name: value for name, value in node.items() if name not in _COMBINING and name not in _ANNOTATIONS}
    if words:
        yield Part("plain", place, words)
    whole = Part("plain", place, node)
    for kind in ("anyOf", "oneOf"):
        branches = whole.listed(kind)
        if branches:
            yield Part(kind, place, {}, tuple(branches))
    if "not" in node:
        yield Part("not", place, node)
    if "if" in node and place.document.draft >= Draft.DRAFT_7:
        yield Part("if", place, node)


@dataclass(frozen=True)
class Writer:
    """The conditions that a written document satisfies."""

    documents: Documents
    parts: tuple[Part, ...]
    kind: str | None = None
    """The only type that is examined, if types are compared separately."""

    @classmethod
    def of(cls, documents: Documents, places: Iterable[Place]) -> Writer:
        return cls(documents, parts_of(documents, places))

    @property
    def key(self) -> tuple[object, ...]:
        return (*(part.key for part in self.parts), self.kind)

    @cached_property
    def plains(self) -> tuple[Part, ...]:
        return tuple(part for part in self.parts if part.kind == "plain")

    @cached_property
    def choices(self) -> tuple[Part, ...]:
        return tuple(part for part in self.parts if part.branches)

    @property
    def is_nothing(self) -> bool:
        """Whether no document satisfies the conditions."""
        return any(part.kind == "never" for part in self.parts) or not self.types

    @cached_property
    def types(self) -> tuple[str, ...]:
        found: tuple[str, ...] = TYPES if self.kind is None else (self.kind,)
        for part in self.plains:
            if "type" in part.words:
                allowed = types_of(part.words)
                found = tuple(each for each in found if allows(allowed, each))
        return found

    def values(self, name: str) -> list[Any]:
        """The values of a keyword in all conjuncts."""
        return [part.words[name] for part in self.plains if name in part.words]

    def in_branch(self, branch: Place) -> Writer:
        """The same conditions, with one alternative of a choice instead of the whole choice."""
        own = parts_of(self.documents, [branch])
        known = {part.key: part for part in (*self.plains, *own)}
        return Writer(self.documents, tuple(known.values()), self.kind)


def types_of(words: Json) -> tuple[str, ...]:
    given = words.get("type")
    if isinstance(given, str):
        return (given,)
    return tuple(each for each in given if isinstance(each, str)) if isinstance(given, list) else TYPES


def allows(types: tuple[str, ...], kind: str) -> bool:
    return kind in types or (kind == "integer" and "number" in types)
