"""Whether one JSON Schema accepts every document that another one accepts, and if not, why.

The reader's schema is split into conjuncts, and each must follow from the known conditions of a written document
(`conjuncts`). Rules and their names are those of Confluent's registry, which differ from containment in two places: a
property with a default may become required, and a oneOf may get another alternative, which is assumed to be disjoint
from the existing ones. Formats are annotations, and are not compared.

Undecidable cases are refused, so that "compatible" is reliable.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import jsonschema_rs

from millbeck.registry.errors import SchemaTooLarge
from millbeck.registry.formats.assumptions import PROBLEMS_MAX, Assumptions, Steps
from millbeck.registry.formats.interface import Incompatibility, Policy, Roles
from millbeck.registry.formats.json_schema.arrays import array_problems
from millbeck.registry.formats.json_schema.conjuncts import Part, Writer, parts_of
from millbeck.registry.formats.json_schema.documents import Documents, Place
from millbeck.registry.formats.json_schema.objects import object_problems
from millbeck.registry.formats.json_schema.scalars import (
    number_problems,
    problem,
    shown,
    string_problems,
    type_problems,
)
from millbeck.registry.formats.json_schema.validators import validator_at

STEPS_MAX: Final = 40_000
"""The maximum number of steps; each examines one conjunct of the writer."""
_VALUES_MAX: Final = 10_000
_TWO_VALUED: Final[dict[str, list[bool | None]]] = {"null": [None], "boolean": [False, True]}

Problems = list[Incompatibility]


def problems_reading(reader: Documents, writer: Documents, roles: Roles, policy: Policy) -> Problems:
    """The reasons why the reader refuses some documents of the writer, at most `PROBLEMS_MAX`; empty if it refuses
    none."""
    try:
        found = Comparison(reader, writer, is_lenient=policy is Policy.LENIENT, steps=Steps(STEPS_MAX)).problems()
    except RecursionError:
        raise SchemaTooLarge("the schema is nested too deeply to be compared") from None
    direction = f" ({roles.writer} documents, {roles.reader} schema)"
    return [each._replace(sentence=each.sentence + direction) for each in found[:PROBLEMS_MAX]]


class Comparison:
    def __init__(self, reader: Documents, writer: Documents, *, is_lenient: bool, steps: Steps) -> None:
        self.is_lenient = is_lenient
        self._reader = reader
        self._writer = writer
        self._assumptions = Assumptions(steps)
        self._validators: dict[str, Any] = {}

    def problems(self) -> Problems:
        written = Writer.of(self._writer, [self._writer.main.place])
        return self._assumptions.resolve(lambda: self.accept(self._reader.main.place, written, "#"))

    def accept(self, place: Place, written: Writer, path: str) -> Problems:
        """The reasons why the reader's schema at a place refuses some written values; empty if it refuses none."""
        if place.node is True or place.node == {} or written.is_nothing:
            return []
        key = (place.location, written.key)
        return self._assumptions.once(key, lambda: self._accept(place, written, path))

    def _accept(self, place: Place, written: Writer, path: str) -> Problems:
        values = _values(written)
        if values is not None and self._refused(place, values) == []:
            return []
        found = list(islice(self._parts_accept(place, written, path), PROBLEMS_MAX))
        if values is not None and not found:
            found = [problem("ENUM_ARRAY_CHANGED", f"{path}/enum", "values that were written are refused", values)]
        return found

    def _parts_accept(self, place: Place, written: Writer, path: str) -> Iterator[Incompatibility]:
        for part in parts_of(self._reader, [place]):
            yield from self._part(part, written, path)

    def _part(self, part: Part, written: Writer, path: str) -> Problems:
        return self._assumptions.once(
            (part.key, written.key), lambda: self._part_problems(part, written, path), steps=1 + len(written.parts)
        )

    def _part_problems(self, part: Part, written: Writer, path: str) -> Problems:
        match part.kind:
            case "plain":
                found = list(islice(self._plain(part, written, path), PROBLEMS_MAX))
            case "anyOf" | "oneOf":
                return self._choice(part, written, path)
            case "not":
                found = self._negation(part, written, path)
            case "if":
                found = self._condition(part, written, path)
            case "metaschema":
                is_same = any(each.key == part.key for each in written.parts)
                found = [] if is_same else [problem("TYPE_CHANGED", path, "a schema is expected here", part.key[1])]
            case _:
                found = [problem("TYPE_NARROWED", path, "nothing is accepted here any more", False)]
        return found and self._by_branches(part, written, path, found)

    def _by_branches(self, part: Part, written: Writer, path: str, found: Problems) -> Problems:
        """Compare each alternative of the writer on its own: what does not follow for all documents may follow for each
        alternative."""
        for choice in written.choices:
            by_branch = [
                each for branch in choice.branches for each in self._part(part, written.in_branch(branch), path)
            ]
            if not by_branch:
                return []
            if not written.plains:
                found = by_branch
        return found

    # keywords

    def _plain(self, part: Part, written: Writer, path: str) -> Iterator[Incompatibility]:
        types = type_problems(part, written, path)
        if types:
            yield from types
            return
        if "enum" in part.words or "const" in part.words:
            yield from self._values_problems(part, written, path)
        if "string" in written.types:
            yield from string_problems(part, written, path)
        if "number" in written.types or "integer" in written.types:
            yield from number_problems(part, written, path)
        if "array" in written.types:
            yield from array_problems(self, part, written, path)
        if "object" in written.types:
            yield from object_problems(self, part, written, path)

    def _values_problems(self, part: Part, written: Writer, path: str) -> Iterator[Incompatibility]:
        allowed = part.words["enum"] if "enum" in part.words else [part.words["const"]]
        values = _values(written)
        if values is None:
            yield problem(
                "ENUM_ARRAY_NARROWED", f"{path}/enum", "other values may have been written than those listed", allowed
            )
            return
        missing = [each for each in values if not any(_same(each, other) for other in allowed)]
        if missing:
            kind = "ENUM_ARRAY_NARROWED" if len(missing) < len(values) else "ENUM_ARRAY_CHANGED"
            shown_missing = ", ".join(shown(each) for each in missing[:20])
            yield problem(kind, f"{path}/enum", f"{shown_missing} may have been written; keep it", shown_missing)

    # combinations

    def _choice(self, part: Part, written: Writer, path: str) -> Problems:
        """Compare alternatives: one must accept everything, or there must be one for each alternative, or each type, of
        the writer."""
        if self._accepting(part, written, path) is not None:
            return []
        kinds = {choice.kind for choice in written.choices}
        for choice in written.choices:
            homes = [self._accepting(part, written.in_branch(branch), path) for branch in choice.branches]
            if None not in homes:
                if part.kind == "oneOf" and choice.kind == "anyOf" and not self._are_disjoint(part):
                    return [
                        problem(
                            "COMBINED_TYPE_CHANGED",
                            f"{path}/oneOf",
                            "a document that satisfied several alternatives of anyOf is refused by oneOf; keep anyOf",
                            "oneOf",
                        )
                    ]
                return []
        if written.kind is None and len(written.types) < 7 and len(written.types) > 1:
            by_type = [Writer(written.documents, written.parts, each) for each in written.types]
            if all(self._accepting(part, each, path) is not None for each in by_type):
                return []
        count = max((len(choice.branches) for choice in written.choices), default=0)
        kind = "COMBINED_TYPE_SUBSCHEMAS_CHANGED"
        if len(part.branches) < count:
            kind = "SUM_TYPE_NARROWED"
        elif not kinds:
            kind = "COMBINED_TYPE_CHANGED"
        return [
            problem(
                kind,
                f"{path}/{part.kind}",
                f"no alternative of {part.kind} accepts the values that may have been written; keep or add one "
                "that does",
                part.kind,
            )
        ]

    def _accepting(self, part: Part, written: Writer, path: str) -> int | None:
        """The alternative that accepts the written values; for oneOf it must be the only one."""
        if written.is_nothing:
            return 0
        values = _values(written)
        if values is not None:
            return 0 if self._refused(part.place, values) == [] else None
        found = [
            index
            for index, branch in enumerate(part.branches)
            if not self.accept(branch, written, f"{path}/{part.kind}/{index}")
        ]
        if not found or (part.kind == "oneOf" and len(found) > 1):
            return None
        return found[0]

    def _are_disjoint(self, part: Part) -> bool:
        seen: dict[str, None] = {}
        for branch in part.branches:
            types = Writer.of(self._reader, [branch]).types
            if any(each in seen for each in types):
                return False
            seen.update(dict.fromkeys(types))
        return True

    def _negation(self, part: Part, written: Writer, path: str) -> Problems:
        """Compare ``not``: values refused by the reader must have been refused by the writer."""
        refused = part.child("not")
        if refused is None:
            return []
        now = Writer.of(self._reader, [refused])
        if not any(_overlap(kind, now.types) for kind in written.types):
            return []
        for before in written.parts:
            given = before.child("not") if before.kind == "not" else None
            if given is None:
                continue
            inverse = Comparison(self._writer, self._reader, is_lenient=False, steps=self._assumptions.steps)
            if not inverse._settled(given, now):
                return []
        return [problem("NOT_TYPE_EXTENDED", f"{path}/not", "more values are refused than before", refused.node)]

    def _settled(self, place: Place, written: Writer) -> Problems:
        return self._assumptions.resolve(lambda: self.accept(place, written, "#"))

    def _condition(self, part: Part, written: Writer, path: str) -> Problems:
        """Compare ``if``: both outcomes must be accepted, or the writer must have the same condition with accepted
        outcomes."""
        outcomes = {name: part.child(name) for name in ("then", "else")}
        for before in written.parts:
            if before.kind != "if" or before.words.get("if") != part.words.get("if") or "$ref" in str(part.words["if"]):
                continue
            found = []
            for name, outcome in outcomes.items():
                given = before.child(name)
                known = (
                    written
                    if given is None
                    else Writer(written.documents, (*written.plains, *parts_of(self._writer, [given])), written.kind)
                )
                found += [] if outcome is None else self.accept(outcome, known, f"{path}/{name}")
            return found
        found = [
            each
            for name, outcome in outcomes.items()
            if outcome is not None
            for each in self.accept(outcome, written, f"{path}/{name}")
        ]
        return found and [
            problem(
                "CONDITION_CHANGED",
                f"{path}/if",
                "the condition is new or has changed; keep the old one",
                part.words["if"],
            )
        ]

    # values and names

    def _refused(self, place: Place, values: list[Any]) -> list[Any] | None:
        """The values that the reader's schema does not accept; None if it cannot be evaluated."""
        try:
            validator = self._validators.get(place.location)
            if validator is None:
                validator = self._validators[place.location] = validator_at(self._reader, place)
            return [each for each in values if not validator.is_valid(each)]
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError):
            return None

    def accepts_value(self, place: Place, value: Any) -> bool:
        return self._refused(place, [value]) == []

    def reader_names(self, part: Part) -> dict[str, None]:
        """The properties known to the schema that contains a part, in all its combinations."""
        return _names(self._reader, [part.place])

    def writer_names(self, written: Writer) -> dict[str, None]:
        return _names(self._writer, [part.place for part in written.parts])


def _names(documents: Documents, places: list[Place]) -> dict[str, None]:
    found: dict[str, None] = {}
    seen: dict[str, None] = {}
    pending = list(places)
    while pending:
        place = pending.pop()
        if place.location in seen:
            continue
        seen[place.location] = None
        for part in parts_of(documents, [place]):
            found.update(dict.fromkeys(part.mapped("properties")))
            pending += part.branches
            pending += [each for each in map(part.child, ("then", "else")) if part.kind == "if" and each is not None]
    return found


def _values(written: Writer) -> list[Any] | None:
    """All values that may have been written, if they are listed."""
    for part in written.plains:
        listed = [part.words["const"]] if "const" in part.words else part.words.get("enum")
        if isinstance(listed, list) and len(listed) <= _VALUES_MAX:
            return [each for each in listed if any(_is_a(each, kind) for kind in written.types)]
    if written.types and all(kind in _TWO_VALUED for kind in written.types):
        return [value for kind in written.types for value in _TWO_VALUED[kind]]
    return None


def _is_a(value: Any, kind: str) -> bool:
    match kind:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "string":
            return isinstance(value, str)
        case "integer":
            return not isinstance(value, bool) and (
                isinstance(value, int) or (isinstance(value, float) and value.is_integer())
            )
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "array":
            return isinstance(value, list)
    return isinstance(value, dict)


def _same(one: Any, other: Any) -> bool:
    """Equality of JSON values: true is not equal to 1."""
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _overlap(kind: str, types: tuple[str, ...]) -> bool:
    return kind in types or (kind in ("integer", "number") and ("integer" in types or "number" in types))
