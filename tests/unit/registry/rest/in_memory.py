"""A registry without a network and without a log: its HTTP application, called as a server would call it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from millbeck.client.schemas.log_records import LogRecord
from millbeck.host import real_environment
from millbeck.registry.decision import Decision
from millbeck.registry.election import Identity
from millbeck.registry.formats.every import every_format
from millbeck.registry.instance import InstanceSettings, NotLeader
from millbeck.registry.rest.app import RegistryApp
from millbeck.registry.service import SchemaService
from millbeck.registry.state import RegistryState

CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"


@dataclass
class InstanceInMemory:
    """An instance whose log is a list."""

    settings: InstanceSettings = field(default_factory=lambda: InstanceSettings(client={}))
    state: RegistryState = field(default_factory=RegistryState)
    log: list[LogRecord] = field(default_factory=list)
    leader: Identity | None = field(default_factory=lambda: Identity("r1", 8081))
    is_leading: bool = True
    failure: BaseException | None = None
    replay_lag: int = 0

    @property
    def offset(self) -> int:
        return len(self.log) - 1

    async def wait_settled(self) -> None:
        if not self.is_leading:
            assert self.leader is not None
            raise NotLeader(self.leader)

    async def submit(self, decide: Callable[[RegistryState], Decision[Any]]) -> tuple[Any, int]:
        await self.wait_settled()
        decision = decide(self.state)
        for record in decision.records:
            self.log.append(record)
            self.state.replay(*record)
        return decision.answer, self.offset

    async def has_seen(self, offset: int, timeout_s: float) -> bool:
        return self.offset >= offset


@dataclass
class Answered:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    def __init__(self) -> None:
        self.instance = InstanceInMemory()
        self.app = RegistryApp(body_bytes_max=100_000)
        self.app.service = SchemaService(real_environment(), self.instance, every_format())  # type: ignore[arg-type]

    def __call__(self, method: str, target: str, body: Any = None, headers: dict[str, str] | None = None) -> Answered:
        return asyncio.run(self._call(method, target, body, {"content-type": CONTENT_TYPE, **(headers or {})}))

    async def _call(self, method: str, target: str, body: Any, headers: dict[str, str]) -> Answered:
        path, _, query = target.partition("?")
        raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            "server": ("r1", 8081),
            "scheme": "http",
        }
        sent: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": raw, "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        answered = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return Answered(sent[0]["status"], answered, sent[1]["body"])

    def register(self, subject: str, schema: Any, **more: Any) -> Answered:
        return self("POST", f"/subjects/{quote(subject, safe='')}/versions", {"schema": json.dumps(schema), **more})
