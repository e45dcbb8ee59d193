"""Keywords of arrays: items by position and the rest, counts, uniqueness, contains."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from millbeck.registry.formats.interface import Incompatibility
from millbeck.registry.formats.json_schema.conjuncts import Part, Writer
from millbeck.registry.formats.json_schema.documents import Place
from millbeck.registry.formats.json_schema.drafts import Draft
from millbeck.registry.formats.json_schema.scalars import bound_problems, problem

if TYPE_CHECKING:
    from millbeck.registry.formats.json_schema.compatibility import Comparison

_POSITIONS_MAX: Final = 1000


def array_problems(comparison: Comparison, reader: Part, writer: Writer, path: str) -> Iterator[Incompatibility]:
    yield from bound_problems(reader, writer, "maxItems", path, _length_max(writer))
    yield from bound_problems(reader, writer, "minItems", path, None)
    if reader.words.get("uniqueItems") is True and True not in writer.values("uniqueItems"):
        yield problem("UNIQUE_ITEMS_ADDED", f"{path}/uniqueItems", "uniqueItems is new; remove it", True)
    yield from _item_problems(comparison, reader, writer, path)
    yield from _contains_problems(comparison, reader, writer, path)
    rest = reader.child("unevaluatedItems")
    if rest is not None and rest.node is not True and not writer.values("unevaluatedItems"):
        yield problem(
            "UNEVALUATED_ITEMS_ADDED", f"{path}/unevaluatedItems", "unevaluatedItems is new; remove it", rest.node
        )


def _items(part: Part) -> tuple[list[Place], Place | None]:
    """The schemas by position, and the schema of the other items."""
    if part.draft >= Draft.DRAFT_2020_12:
        return part.listed("prefixItems"), part.child("items")
    if isinstance(part.words.get("items"), list):
        return part.listed("items"), part.child("additionalItems")
    return [], part.child("items")


def _at(part: Part, position: int) -> Place | None:
    by_position, rest = _items(part)
    return by_position[position] if position < len(by_position) else rest


def _length_max(writer: Writer) -> int | None:
    found = [each for each in writer.values("maxItems") if isinstance(each, int)]
    for part in writer.plains:
        by_position, rest = _items(part)
        if rest is not None and rest.node is False:
            found.append(len(by_position))
    return min(found, default=None)


def _written(writer: Writer, position: int) -> Writer:
    places = [_at(part, position) for part in writer.plains]
    return Writer.of(writer.documents, [each for each in places if each is not None])


def _item_problems(comparison: Comparison, reader: Part, writer: Writer, path: str) -> Iterator[Incompatibility]:
    read_count = len(_items(reader)[0])
    written_count = max((len(_items(part)[0]) for part in writer.plains), default=0)
    positions = max(read_count, written_count)
    length_max = _length_max(writer)
    for position in range(min(positions, _POSITIONS_MAX, positions if length_max is None else length_max)):
        place = _at(reader, position)
        if place is None:
            continue
        written = _written(writer, position)
        where = f"{path}/items/{position}"
        found = comparison.accept(place, written, where)
        if not found:
            continue
        if position >= written_count:
            model = "OPEN_CONTENT_MODEL" if not written.parts else "PARTIALLY_OPEN_CONTENT_MODEL"
            kind = f"ITEM_ADDED_TO_{model}" if not written.parts else f"ITEM_ADDED_NOT_COVERED_BY_{model}"
            yield problem(
                kind,
                where,
                "an item at this position may have been written as any value that the schema of the other items allows",
                place.node,
            )
        elif position >= read_count and place.node is False:
            yield problem(
                "ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL", where, "an item may have been written at this position", False
            )
        elif position >= read_count:
            yield problem(
                "ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
                where,
                "the schema of the other items does not accept all values that may have been written at this position",
                place.node,
            )
        else:
            yield from found
    if length_max is None or length_max > positions:
        yield from _rest_problems(comparison, reader, _written(writer, positions), path, has_positions=read_count > 0)


def _rest_problems(
    comparison: Comparison, reader: Part, written: Writer, path: str, *, has_positions: bool
) -> Iterator[Incompatibility]:
    rest = _items(reader)[1]
    if rest is None:
        return
    where = f"{path}/{'additionalItems' if has_positions else 'items'}"
    found = comparison.accept(rest, written, where)
    if found and has_positions and rest.node is False:
        yield problem("ADDITIONAL_ITEMS_REMOVED", where, "more items may have been written; keep allowing them", False)
    elif found and has_positions and not written.parts:
        yield problem("ADDITIONAL_ITEMS_NARROWED", where, "more items of any kind may have been written", rest.node)
    else:
        yield from found


def _contains_problems(comparison: Comparison, reader: Part, writer: Writer, path: str) -> Iterator[Incompatibility]:
    wanted = reader.child("contains")
    if wanted is None:
        return
    least, most = reader.words.get("minContains", 1), reader.words.get("maxContains")
    for part in writer.plains:
        given = part.child("contains")
        if given is None or part.words.get("minContains", 1) < least:
            continue
        if comparison.accept(wanted, Writer.of(writer.documents, [given]), path):
            continue
        # With an upper bound the reader must not count more items than the writer did.
        if most is None or (given.node == wanted.node and part.words.get("maxContains", most + 1) <= most):
            return
    if least > 0 or most is not None:
        yield problem(
            "CONTAINS_CHANGED", f"{path}/contains", "contains is new or stricter; keep the old one", wanted.node
        )
