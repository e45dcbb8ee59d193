"""Finds cyclic references that never descend into the document; validators would not terminate on them.

A schema applies others to the same value by ``$ref``, allOf, anyOf, oneOf, not, if, then, else and dependencies; a
cycle of these alone is refused. A cycle through properties or items is a recursive schema, which is allowed.
"""

from __future__ import annotations

from typing import Final

from millbeck.registry.errors import InvalidSchema
from millbeck.registry.formats.json_schema.documents import Documents, Place
from millbeck.registry.formats.json_schema.drafts import children, reference

_SAME_VALUE: Final = ("/allOf/", "/anyOf/", "/oneOf/", "/dependencies/", "/dependentSchemas/")
_SAME_VALUE_WHOLE: Final = ("/not", "/if", "/then", "/else")


def check_no_circle(documents: Documents) -> None:
    """Check that references form no cycle without content; raises `InvalidSchema`."""
    done: dict[str, None] = {}
    for start in documents.main.places():
        _look(documents, start, done)


def _look(documents: Documents, start: Place, done: dict[str, None]) -> None:
    """A depth-first search with an explicit stack, since chains may be too long for recursion."""
    around: dict[str, None] = {}
    pending: list[tuple[Place, bool]] = [(start, True)]
    while pending:
        place, enters = pending.pop()
        if not enters:
            del around[place.location]
            done[place.location] = None
        elif place.location in around:
            raise InvalidSchema(
                f"Invalid schema: the schema at {place.pointer or '/'} refers to itself without descending into "
                "the document"
            )
        elif place.location not in done:
            around[place.location] = None
            pending.append((place, False))
            pending += [(each, True) for each in _on_the_same_value(documents, place)]


def _on_the_same_value(documents: Documents, place: Place) -> list[Place]:
    found = [
        place.child(pointer, node)
        for pointer, node in children(place.node)
        if pointer.startswith(_SAME_VALUE) or pointer in _SAME_VALUE_WHOLE
    ]
    if reference(place.node) is not None:
        target = documents.target(place)
        found += [] if target is None else [target]
    return found
