"""The decision about a request: the records to write, and the answer when they are committed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from millbeck.client.schemas.log_records import LogRecord
from millbeck.registry.errors import OperationNotPermitted
from millbeck.registry.state import READWRITE, RegistryState

A = TypeVar("A")

READONLY = "READONLY"
READONLY_OVERRIDE = "READONLY_OVERRIDE"
IMPORT = "IMPORT"
FORWARD = "FORWARD"
MODES = (READWRITE, READONLY, READONLY_OVERRIDE, IMPORT, FORWARD)


@dataclass(frozen=True, slots=True)
class Decision(Generic[A]):
    """The records to write in one transaction (none if nothing changes), and the answer."""

    answer: A
    records: list[LogRecord] = field(default_factory=list)


def check_writable(state: RegistryState, subject: str | None) -> str:
    """Check that the subject's mode allows writes; returns the mode."""
    mode = READONLY_OVERRIDE if state.modes.get(None) == READONLY_OVERRIDE else state.mode(subject)
    if mode in (READONLY, READONLY_OVERRIDE, FORWARD):
        what = "The registry" if subject is None else f"Subject '{subject}'"
        raise OperationNotPermitted(f"{what} is in {mode} mode, which does not allow writes: see PUT /mode")
    return mode
