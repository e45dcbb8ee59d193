"""A registry without a network, for the client: calls go to the HTTP application itself."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from millbeck.client.schemas import transport
from millbeck.client.schemas.errors import SchemaError
from tests.unit.registry.rest.in_memory import Client


class RegistryInMemory:
    """Stands for every registry while the test runs; ``asked`` are the paths of the calls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.client = Client()
        self.asked: list[str] = []
        self.is_down = False
        monkeypatch.setattr(transport.Transport, "_asked", lambda _, *arguments: self._answer(*arguments))

    def _answer(self, method: str, target: str, content: bytes | None) -> tuple[int, bytes]:
        if self.is_down:
            raise SchemaError("no schema registry answers")
        self.asked.append(f"{method} {target}")
        found = self.client(method, target, content)
        return found.status, found.body

    def __call__(self, method: str, *path: str, body: Any = None, **query: Any) -> Any:
        target = "/" + "/".join(quote(each, safe="") for each in path)
        return self.client(method, f"{target}?{urlencode(query)}", body).json

    def register(self, subject: str, schema: Any, **more: Any) -> int:
        text = schema if isinstance(schema, str) else json.dumps(schema)
        return int(self("POST", "subjects", subject, "versions", body={"schema": text, **more})["id"])
