"""Signals: rows that somebody inserts into a table, and what they change about incremental snapshots.

The state is a part of the connector's offset, so it changes together with the changes that the signal came with.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from millbeck.pipeline.connect.postgres.filters import CaptureFilter, matches, patterns_of
from millbeck.pipeline.connect.postgres.pgoutput import Insert, message_of
from millbeck.pipeline.connect.postgres.tables import Table, TableId

STATE: Final = "millbeck.incremental"
_TABLES_MAX: Final = 10_000
_LOG: Final = logging.getLogger(__name__)

State = Mapping[str, Any]
"""``tables``: names with the filter of each or None, in their order; ``id``: that of the signal; ``paused``."""


class Signal(NamedTuple):
    id: str
    type: str
    settings: Mapping[str, Any]


def signal_of(table: Table, message: bytes) -> Signal | None:
    """The signal of a change of the table of signals; None for a change that is none, or one that cannot be read."""
    change = message_of(message)
    if not isinstance(change, Insert):
        return None
    row = {
        column.name: cell.decode(errors="replace") if isinstance(cell, bytes) else None
        for column, cell in zip(table.columns, change.new, strict=False)
    }
    kind = row.get("type")
    if not kind:
        return None
    try:
        settings = json.loads(row.get("data") or "{}")
    except (ValueError, RecursionError):
        settings = None
    if not isinstance(settings, dict):
        _LOG.warning("the signal %s has no JSON object in its data, and is left out", row.get("id"))
        return None
    return Signal(row.get("id") or "", kind, settings)


def state_after(
    state: State | None, signal: Signal, captured: Iterable[TableId], capture: CaptureFilter, *, lsn: int
) -> State | None:
    """What is to be read after a signal at this position; None for nothing."""
    own_id = f"{signal.id}@{lsn}"  # signals may repeat their ids
    now: dict[str, Any] = dict(state) if state else {"tables": [], "id": own_id, "paused": False}
    if signal.settings.get("type", "incremental").lower() not in ("incremental", ""):
        _LOG.warning("the signal %s asks for a snapshot that is not incremental, and is left out", signal.id)
        return state
    match signal.type:
        case "execute-snapshot":
            wanted = _tables(signal, captured, capture)
            if not wanted:
                _LOG.warning("the signal %s names no captured table", signal.id)
            known = {name for name, _ in now["tables"]}
            now["tables"] = [*now["tables"], *(each for each in wanted if each[0] not in known)][:_TABLES_MAX]
            now["id"] = now["id"] if known else own_id
        case "stop-snapshot":
            names = _patterns(signal)
            now["tables"] = [each for each in now["tables"] if names and not matches(names, each[0])]
        case "pause-snapshot":
            now["paused"] = True
        case "resume-snapshot":
            now["paused"] = False
        case "log":
            _LOG.info("signal %s: %s", signal.id, signal.settings.get("message"))
    return now if now["tables"] else None


def _patterns(signal: Signal) -> Sequence[Any]:
    named = signal.settings.get("data-collections")
    try:
        return [pattern for name in named or () if isinstance(name, str) for pattern in patterns_of(_without_db(name))]
    except ValueError as error:
        _LOG.warning("the signal %s: %s", signal.id, error)
        return []


def _without_db(name: str) -> str:
    """Tables may be named with their database before the schema; names in quotes are names without them."""
    return name.replace('"', "")


def _tables(signal: Signal, captured: Iterable[TableId], capture: CaptureFilter) -> list[list[str | None]]:
    patterns = _patterns(signal)
    filters: dict[str, str] = {}
    for each in signal.settings.get("additional-conditions") or ():
        if isinstance(each, dict) and isinstance(each.get("filter"), str):
            filters[_without_db(str(each.get("data-collection")))] = each["filter"]
    return [
        [str(table), filters.get(str(table))]
        for table in captured
        if capture.has_table(table) and matches(patterns, str(table))
    ]
