"""A schema with the schemas that it refers to.

A ``$ref`` is resolved inside the schema, among its references (by their names, relative or absolute), and by ``$id``;
never elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote, urldefrag, urljoin

from millbeck.registry.errors import InvalidSchema
from millbeck.registry.formats.json_schema.drafts import (
    Draft,
    Node,
    anchors,
    children,
    draft_of,
    escaped,
    identifier,
    metaschema,
    reference,
)

BASE: Final = "http://schema.invalid/"
"""The base for relative names; a name that can never be looked up."""
_HOPS_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class Place:
    """A schema within a document."""

    node: Node
    document: Document
    pointer: str
    base: str
    """The base of relative references in the document."""

    def child(self, pointer: str, node: Node) -> Place:
        own = identifier(node, self.document.draft)
        return Place(node, self.document, self.pointer + pointer, self.base if own is None else _joined(self.base, own))

    @property
    def location(self) -> str:
        return f"{self.document.uri}#{self.pointer}"


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    name: str
    uri: str
    root: Node
    draft: Draft

    @property
    def place(self) -> Place:
        own = identifier(self.root, self.draft)
        return Place(self.root, self, "", self.uri if own is None else _joined(self.uri, own))

    def places(self) -> Iterator[Place]:
        """Every schema in the document."""
        pending = [self.place]
        while pending:
            place = pending.pop()
            yield place
            pending += [place.child(pointer, node) for pointer, node in children(place.node)]


class Documents:
    def __init__(self, root: Node, imported: Sequence[tuple[str, Node]], *, is_new: bool) -> None:
        draft = draft_of(root, is_new=is_new)
        own = identifier(root, draft)
        main_uri = _joined(BASE, own or "").partition("#")[0]
        self.main = Document("", main_uri, root, draft)
        self.imported = [
            Document(name, _joined(main_uri, name).partition("#")[0], node, draft_of(node, is_new=False))
            for name, node in imported
        ]
        self._by_uri: dict[str, Place] = {}
        for document in (*self.imported, self.main):
            self._index(document)

    def _index(self, document: Document) -> None:
        self._by_uri.setdefault(document.uri, document.place)
        self._by_uri.setdefault(_joined(BASE, document.name), document.place)
        for place in document.places():
            if identifier(place.node, document.draft) is not None:
                self._by_uri.setdefault(place.base.partition("#")[0], place)
            for anchor in anchors(place.node, document.draft):
                self._by_uri.setdefault(f"{place.base.partition('#')[0]}#{anchor}", place)

    def target(self, place: Place) -> Place | None:
        """Resolve the reference of a schema; None for a metaschema. Raises `InvalidSchema` if the target does not
        exist."""
        given = reference(place.node)
        assert given is not None
        uri, fragment = urldefrag(_joined(place.base, given))
        fragment = unquote(fragment)
        document = self._by_uri.get(uri) or self._by_uri.get(_joined(BASE, urldefrag(given)[0]))
        if document is None:
            if metaschema(uri) is not None:
                return None
            raise InvalidSchema(
                f'Invalid schema: $ref "{given[:200]}" (at {place.pointer or "/"}) is not in the schema nor among its '
                "references, and nothing is loaded from elsewhere"
            )
        found = self._within(document, uri, fragment)
        if found is None:
            raise InvalidSchema(f'Invalid schema: $ref "{given[:200]}" (at {place.pointer or "/"}) has no target')
        return found

    def _within(self, place: Place, uri: str, fragment: str) -> Place | None:
        if fragment and not fragment.startswith("/"):
            return self._by_uri.get(f"{uri}#{fragment}") or self._by_uri.get(f"{place.base}#{fragment}")
        node: Any = place.node
        for part in fragment.split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            if isinstance(node, dict) and key in node:
                node = node[key]
            elif isinstance(node, list) and key.isdecimal() and int(key[:9]) < len(node):
                node = node[int(key[:9])]
            else:
                return None
            if isinstance(node, dict | bool):
                place = place.child(f"/{escaped(key)}", node)
            else:
                place = Place(place.node, place.document, f"{place.pointer}/{escaped(key)}", place.base)
        return place if isinstance(node, dict | bool) else None

    def resources(self) -> list[tuple[str, Node]]:
        """All documents by their names, for a validator."""
        found = {place.document.uri: place.document.root for place in self._by_uri.values()}
        for document in (*self.imported, self.main):
            found.setdefault(_joined(BASE, document.name), document.root)
            found.setdefault(document.uri, document.root)
        return list(found.items())

    def check_references(self) -> None:
        """Check the references within the schema; raises `InvalidSchema` for one without a target."""
        for place in self.main.places():
            if reference(place.node) is not None:
                self.target(place)


def _joined(base: str, name: str) -> str:
    try:
        return urljoin(base, name)
    except ValueError:
        raise InvalidSchema(f"Invalid schema: {name[:200]!r} is not a URI") from None
