"""The JSON Schema format: parsing with limits, and the forms of a text.

jsonschema-rs, configured to load nothing, checks the validity: it has the meta-schema of each draft, and compiles every
pattern. A text is stored without spaces, its members in their order; the normal form also sorts them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

import jsonschema_rs

from millbeck.client.schemas.log_records import encode_json
from millbeck.registry.errors import InvalidSchema, SchemaTooLarge
from millbeck.registry.formats.interface import Form, Imported, Incompatibility, Limits, Policy, Roles
from millbeck.registry.formats.json_schema.compatibility import problems_reading
from millbeck.registry.formats.json_schema.cycles import check_no_circle
from millbeck.registry.formats.json_schema.documents import Documents
from millbeck.registry.formats.json_schema.drafts import METASCHEMAS, Draft, Node, id_member, identifier
from millbeck.registry.formats.json_schema.validators import VALIDATORS, registry_of

_SETS: Final = ("required", "type")
"""The keywords whose lists have no significant order."""
_REASON_LENGTH_MAX: Final = 300


class JsonSchema:
    def __init__(self, documents: Documents) -> None:
        self.documents = documents

    def text(self, form: Form) -> str:
        match form:
            case Form.NORMALIZED:
                return _text(_sorted(self.documents.main.root))
            case Form.RESOLVED:
                return self._resolved
        return self._canonical

    @cached_property
    def _canonical(self) -> str:
        return _text(self.documents.main.root)

    @cached_property
    def _resolved(self) -> str:
        """The resolved form: the references are added to the definitions, with their ids."""
        root, draft = self.documents.main.root, self.documents.main.draft
        if not isinstance(root, dict) or not self.documents.imported:
            return self._canonical
        place = "definitions" if draft <= Draft.DRAFT_7 else "$defs"
        held = dict(root.get(place, {}))
        for each in self.documents.imported:
            held[each.name] = each.root
            if isinstance(each.root, dict) and identifier(each.root, draft) is None:
                held[each.name] = {id_member(draft): each.name, **each.root}
        return _text({**root, place: held})

    def problems_reading(
        self, writer: JsonSchema, roles: Roles, policy: Policy = Policy.STRICT
    ) -> list[Incompatibility]:
        return problems_reading(self.documents, writer.documents, roles, policy)


class JsonFormat:
    name = "JSON"

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()

    def parse(self, text: str, imported: Sequence[Imported], *, is_new: bool = True) -> JsonSchema:
        if len(imported) > self._limits.reference_count_max:
            raise SchemaTooLarge(f"the schema has more than {self._limits.reference_count_max} references")
        root = self._load(text)
        documents = Documents(root, [(each.name, self._load(each.text)) for each in imported], is_new=is_new)
        if is_new:
            documents.check_references()
            check_no_circle(documents)
            _check_valid(documents)
        return JsonSchema(documents)

    def _load(self, text: str) -> Node:
        if len(text) > self._limits.text_length_max:
            raise SchemaTooLarge(f"the schema has {len(text)} characters, the limit is {self._limits.text_length_max}")
        try:
            root = json.loads(text, parse_constant=_refuse_constant)
        except RecursionError:
            raise SchemaTooLarge("the schema is nested too deeply") from None
        except ValueError as error:
            raise InvalidSchema(f"Invalid schema: not JSON: {error}") from None
        if not isinstance(root, dict | bool):
            raise InvalidSchema("Invalid schema: a JSON Schema is an object, true or false")
        self._check_size(root)
        return root

    def _check_size(self, root: Node) -> None:
        pending: list[tuple[Any, int]] = [(root, 1)]
        count = 0
        while pending:
            value, depth = pending.pop()
            count += 1
            if count > self._limits.piece_count_max:
                raise SchemaTooLarge(f"the schema has more than {self._limits.piece_count_max} parts")
            if depth > self._limits.depth_max:
                raise SchemaTooLarge(f"the schema is nested more than {self._limits.depth_max} levels deep")
            if isinstance(value, dict):
                for name in value:
                    if len(name) > self._limits.name_length_max:
                        raise SchemaTooLarge(
                            f"a name has {len(name)} characters, the limit is {self._limits.name_length_max}"
                        )
                pending += [(each, depth + 1) for each in value.values()]
            elif isinstance(value, list):
                pending += [(each, depth + 1) for each in value]


def _check_valid(documents: Documents) -> None:
    main = documents.main
    root = main.root
    if isinstance(root, dict) and "$schema" in root:
        # In the library's spelling; schemas write it with http or https, with or without a fragment.
        root = {**root, "$schema": _metaschema_uri(main.draft)}
    try:
        VALIDATORS[main.draft].made(root, registry=registry_of(documents), base_uri=main.uri, offline=True)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        reason = getattr(error, "message", str(error)).partition("\n")[0][:_REASON_LENGTH_MAX]
        place = "/".join(map(str, getattr(error, "instance_path", ())))
        raise InvalidSchema(f"Invalid schema: {reason} (at /{place})") from None


def _metaschema_uri(draft: Draft) -> str:
    name = next(name for name, each in METASCHEMAS.items() if each is draft)
    return f"http{'' if draft <= Draft.DRAFT_7 else 's'}://{name}" + ("#" if draft <= Draft.DRAFT_7 else "")


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _text(node: Any) -> str:
    return encode_json(node).decode("utf-8", "surrogatepass")


def _sorted(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: _sorted(value[name], name) for name in sorted(value)}
    if isinstance(value, list):
        items = [_sorted(each) for each in value]
        return sorted(items) if key in _SETS and all(isinstance(each, str) for each in items) else items
    return value
