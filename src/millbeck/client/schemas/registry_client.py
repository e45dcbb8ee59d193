"""A client of a schema registry over HTTP: schemas by id, guid and subject, with a cache; thread-safe.

An id and a guid identify one schema forever, so these answers are cached without a time limit; the latest version of a
subject is requested again after a time, and "not found" after a shorter one. A pickled client is recreated with the
same settings, as Spark's workers need it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from millbeck.client.config import Value
from millbeck.client.schemas.caches import AnswerCache
from millbeck.client.schemas.errors import SchemaError
from millbeck.client.schemas.model import AVRO, RegisteredSchema, Schema
from millbeck.client.schemas.settings import RegistryClientConfig
from millbeck.client.schemas.transport import Transport

_REFERENCES_MAX = 1000


class RegistryClient:
    """The client; takes the settings of `RegistryClientConfig`, as a dictionary or as keyword arguments."""

    def __init__(self, settings: Mapping[str, Value] | None = None, **named: Value) -> None:
        given = {**(settings or {}), **{name.replace("_", "."): value for name, value in named.items()}}
        self._settings = given
        config = RegistryClientConfig.parse(given)
        self._transport = Transport(config)
        lasting: dict[str, Any] = {"ttl_s": None, "missing_ttl_s": config.missing_ttl_sec}
        self._schemas: AnswerCache[Schema] = AnswerCache(config.cache_capacity, **lasting)
        self._registered: AnswerCache[RegisteredSchema] = AnswerCache(config.cache_capacity, **lasting)
        self._latest: AnswerCache[RegisteredSchema] = AnswerCache(
            config.cache_capacity, ttl_s=config.latest_ttl_sec, missing_ttl_s=config.missing_ttl_sec
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return RegistryClient, (self._settings,)

    @property
    def name(self) -> str:
        return self._transport.name

    def close(self) -> None:
        self._transport.close()

    # schemas

    def by_id(self, schema_id: int) -> Schema:
        return self._schemas.get(("id", schema_id), lambda: self._fetched(["schemas", "ids", str(schema_id)]))

    def by_guid(self, guid: str) -> Schema:
        return self._schemas.get(("guid", guid), lambda: self._fetched(["schemas", "guids", guid]))

    def latest(self, subject: str) -> RegisteredSchema:
        return self._latest.get((subject, "latest"), lambda: self._version(subject, "latest"))

    def latest_with(self, subject: str, metadata: Mapping[str, str]) -> RegisteredSchema:
        """The latest version whose metadata has these properties."""
        query = {"key": list(metadata), "value": list(metadata.values())}

        def ask() -> RegisteredSchema:
            return self._of(self.call("GET", "subjects", subject, "metadata", query=query))

        return self._latest.get((subject, tuple(metadata.items())), ask)

    def lookup(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        """The version of the subject that has this schema; raises `UnknownSchema`."""

        def ask() -> RegisteredSchema:
            body = self._body(subject, schema, registers=False)
            return self._of(self.call("POST", "subjects", subject, query={"normalize": normalize}, body=body))

        return self._registered.get((subject, schema, normalize), ask)

    def register(self, subject: str, schema: Schema, *, normalize: bool = False) -> int:
        """The id of the schema under the subject; the schema and its references are registered if necessary."""
        body = self._body(subject, schema, registers=True)
        query = {"normalize": normalize}
        found = self.call("POST", "subjects", subject, "versions", query=query, body=body)
        self._registered.forget((subject, schema, normalize))
        self._latest.forget((subject, "latest"))
        return int(found["id"])

    def problems(self, subject: str, schema: Schema) -> list[str]:
        """The reasons why the schema is not compatible with the latest version by the subject's level; empty if it
        is."""
        body = self._body(subject, schema, registers=False)
        path = ("compatibility", "subjects", subject, "versions", "latest")
        found = self.call("POST", *path, query={"verbose": True}, body=body)
        if found.get("is_compatible"):
            return []
        return [str(each) for each in found.get("messages") or ["the schema is not compatible"]]

    def call(self, method: str, *path: str, query: dict[str, Any] | None = None, body: Any = None) -> Any:
        """Send any request of the registry's API. Raises `SchemaError`."""
        return self._transport.call(method, list(path), query, body)

    # decoding of answers

    def _fetched(self, path: list[str]) -> Schema:
        return self._schema(self._transport.call("GET", path, {"format": "serialized"}))

    def _version(self, subject: str, version: str) -> RegisteredSchema:
        query = {"format": "serialized", "deleted": version != "latest"}
        return self._of(self.call("GET", "subjects", subject, "versions", version, query=query))

    def _of(self, members: Any) -> RegisteredSchema:
        try:
            return RegisteredSchema(
                int(members["id"]), self._schema(members), int(members.get("version", 0)), str(members.get("guid", ""))
            )
        except (KeyError, TypeError, ValueError) as error:
            raise SchemaError(
                f"the registry's answer is not that of a schema registry: {type(error).__name__} {error}"
            ) from error

    def _schema(self, members: Any) -> Schema:
        texts: dict[str, str] = {}
        self._collect(members, texts)
        return Schema(str(members.get("schemaType") or AVRO), str(members["schema"]), tuple(texts.items()))

    def _collect(self, members: Any, texts: dict[str, str]) -> None:
        """The texts of a schema's references, in order of dependency."""
        for each in members.get("references") or ():
            name, subject, version = str(each["name"]), str(each["subject"]), str(each["version"])
            if name in texts:
                continue
            if len(texts) >= _REFERENCES_MAX:
                raise SchemaError(f"the schema has more than {_REFERENCES_MAX} references")
            query = {"format": "serialized", "deleted": True}
            found = self.call("GET", "subjects", subject, "versions", version, query=query)
            self._collect(found, texts)
            texts[name] = str(found["schema"])

    # bodies of requests

    def _body(self, subject: str, schema: Schema, *, registers: bool) -> dict[str, Any]:
        """The request body with the references, whose names are used as subjects."""
        references: list[dict[str, Any]] = []
        for index, (name, text) in enumerate(schema.references):
            if not _refers(schema.text, name):
                continue
            inner = Schema(schema.kind, text, schema.references[:index])
            if registers:
                self.register(name, inner)
            version = self.lookup(name, inner).version
            references.append({"name": name, "subject": name, "version": version})
        body: dict[str, Any] = {"schema": schema.text, "references": references}
        return body if schema.kind == AVRO else {**body, "schemaType": schema.kind}


def _refers(text: str, name: str) -> bool:
    """Whether a text names a reference; a text in base64 is not searched."""
    short = name.rpartition(".")[2] if "/" not in name else name
    return any(f'"{each}' in text for each in (name, short, quote(name))) or not any(mark in text for mark in '";')
