"""Serializes JSON documents validated by a schema, in the wire format of schema registries. Needs jsonschema-rs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from millbeck.client.config import Value
from millbeck.client.schemas.errors import BadRecord, SchemaInvalid
from millbeck.client.schemas.model import JSON, Schema
from millbeck.client.schemas.registry_client import RegistryClient
from millbeck.client.schemas.serde import RegistrySerde
from millbeck.kernel.extras import needs_extra
from millbeck.records.record import Header

with needs_extra("schemas"):
    import jsonschema_rs

_VALIDATORS_MAX: Final = 256
_REASON_MAX: Final = 300
_BACKTRACKS_MAX: Final = 100_000
_BASE: Final = "http://schema.invalid/"


class JsonSchemaSerde:
    """Documents of a JSON Schema, validated when written and when read unless json.fail.invalid.schema is false."""

    def __init__(
        self,
        settings: Mapping[str, Value] | None = None,
        *,
        schema: str | Mapping[str, Any] | Schema | None = None,
        is_key: bool = False,
        registry: RegistryClient | None = None,
    ) -> None:
        own = json.dumps(schema) if isinstance(schema, Mapping) else schema
        self._schema = Schema(JSON, own) if isinstance(own, str) else own
        self._serde = RegistrySerde(settings, schema=self._schema, is_key=is_key, registry=registry)
        self._name = "" if self._schema is None else title(self._schema)

    def serialize(self, topic: str, value: Any, headers: list[Header]) -> bytes:
        """Serialize a value. Raises `SchemaError` or `BadRecord`."""
        written = self._serde.writer(topic, self._name, self._schema)
        self._check(written.schema, value, "the value")
        payload = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
        return self._serde.marked(written, payload, headers)

    def deserialize(self, topic: str, data: bytes, headers: Iterable[Header]) -> Any:
        """Deserialize a record. Raises `SchemaError` or `BadRecord`."""
        schema, _, payload = self._serde.unmarked(data, headers)
        try:
            value = json.loads(payload)
        except (ValueError, RecursionError) as error:
            raise BadRecord(f"the record is not JSON: {error}"[:_REASON_MAX]) from error
        self._check(self._serde.reader(topic, title(schema), schema), value, "the record")
        return value

    def _check(self, schema: Schema, value: Any, what: str) -> None:
        if not self._serde.config.validates:
            return
        try:
            validator(schema).validate(value)
        except jsonschema_rs.ValidationError as error:
            place = "/".join(map(str, error.instance_path))
            raise BadRecord(f"{what} does not match the schema: {error.message[:_REASON_MAX]} (at /{place})") from None


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SchemaInvalid(f"the schema is not JSON: {error}"[:_REASON_MAX]) from None


@lru_cache(maxsize=_VALIDATORS_MAX)
def validator(schema: Schema) -> Any:
    """A validator that loads only the schema's references; raises `SchemaInvalid`."""
    if schema.kind != JSON:
        raise SchemaInvalid(f"the schema is {schema.kind}, not {JSON}")
    root = _loaded(schema.text)
    if isinstance(root, dict):
        root = {"$schema": "http://json-schema.org/draft-07/schema#", **root}
    base = str(root.get("$id") or root.get("id") or _BASE) if isinstance(root, dict) else _BASE
    resources: list[tuple[str, Any]] = []
    for name, text in schema.references:
        document = _loaded(text)
        names = [name if "://" in name else f"{root_of(base)}{name}"]
        if isinstance(document, dict) and isinstance(document.get("$id"), str):
            names.append(document["$id"])
        resources += [(each, document) for each in names]
    try:
        return jsonschema_rs.validator_for(
            root,
            registry=jsonschema_rs.Registry(resources),
            base_uri=base,
            offline=True,
            pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=_BACKTRACKS_MAX),
        )
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        raise SchemaInvalid(f"the schema is not valid JSON Schema: {str(error)[:_REASON_MAX]}") from None


def root_of(base: str) -> str:
    """The base of relative names."""
    return base.rpartition("/")[0] + "/" if "/" in base.partition("://")[2] else _BASE


def title(schema: Schema) -> str:
    root = _loaded(schema.text)
    return str(root.get("title", "")) if isinstance(root, dict) else ""
