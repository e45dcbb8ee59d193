"""Audit events and their JSON form.

    {"time":"2026-11-19T14:00:00.123Z","node":1,"event":"denied","principal":"User:bob","host":"10.0.0.7",
     "operation":"WRITE","resource":"TOPIC:orders","api":"Produce","rule":"DefaultDeny"}

(on one line). Events with the same kind and ``subject`` are repetitions of each other, which `folding` counts.
``details`` are written, but not compared.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final, Protocol

TEXT_LENGTH_MAX: Final = 512
"""The maximum length of texts from clients, such as topic names; longer ones are cut."""
LINE_LENGTH_MAX: Final = 65_536
"""The length above which a line shows its details as cut texts. What is cut by then still fits in it."""


class AuditKind(StrEnum):
    LOGIN = "login"
    LOGIN_FAILED = "login-failed"
    DENIED = "denied"
    CHANGED = "changed"
    RELOADED = "reloaded"
    RELOAD_FAILED = "reload-failed"
    THROTTLED = "throttled"
    DISCONNECTED = "disconnected"


KINDS: Final = tuple(kind.value for kind in AuditKind)


@dataclass(frozen=True, slots=True)
class AuditEvent:
    kind: AuditKind
    subject: tuple[tuple[str, str], ...]
    """The fields that identify the event (principal, host, operation ...) as pairs of name and value, in the order of
    output."""
    details: Mapping[str, object] = field(default_factory=dict, compare=False)


class AuditTrail(Protocol):
    """The interface to which components of a node report events."""

    def record(self, event: AuditEvent) -> None: ...


def event_of(kind: AuditKind, details: Mapping[str, object] | None = None, /, **subject: str) -> AuditEvent:
    """An event whose subject has these fields; empty ones are omitted."""
    shown = tuple((name, text[:TEXT_LENGTH_MAX]) for name, text in subject.items() if text)
    return AuditEvent(kind, shown, details or {})


def line_of(event: AuditEvent, *, wall_ms: int, node_id: int, more: Mapping[str, object] | None = None) -> str:
    """The event as one line of JSON, without the line break. Control characters in names from clients are escaped by
    JSON."""
    line = _line(event, event.details, wall_ms, node_id, more or {})
    if len(line) > LINE_LENGTH_MAX:
        cut = {name: _json(state)[:TEXT_LENGTH_MAX] for name, state in event.details.items()}
        line = _line(event, cut, wall_ms, node_id, {"cut": True, **(more or {})})
    return line


def _line(
    event: AuditEvent, details: Mapping[str, object], wall_ms: int, node_id: int, more: Mapping[str, object]
) -> str:
    first = {"time": time_text(wall_ms), "node": node_id, "event": event.kind.value}
    return _json({**first, **dict(event.subject), **details, **more})


def _json(content: object) -> str:
    # `default`: no request fails because a detail is of a type that JSON lacks.
    return json.dumps(content, separators=(",", ":"), default=str)


def time_text(wall_ms: int) -> str:
    moment = datetime.fromtimestamp(wall_ms // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{wall_ms % 1000:03d}Z"
