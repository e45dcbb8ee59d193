"""Parses, selects and formats audit events."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import click

from millbeck.cli.output import printable
from millbeck.security.audit.events import KINDS

Event = Mapping[str, Any]

_AGO: Final = re.compile(r"(?P<number>\d{1,9})(?P<unit>[smhd])")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_KIND_WIDTH: Final = max(map(len, KINDS))
_SHOWN_APART: Final = ("time", "node", "event", "repeated", "seconds")


def parse_event(line: str) -> Event | None:
    """Parse a line; None if it is not an event, such as an incomplete last line."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) and "event" in found and "time" in found else None


def parse_events(lines: Iterable[str]) -> Iterator[Event]:
    return (event for line in lines if (event := parse_event(line)) is not None)


def parse_time(text: str, now: datetime, option: str) -> str:
    """Parse ``2h`` (ago) or an ISO time to the audit's time format; raises `click.UsageError`."""
    match = _AGO.fullmatch(text)
    if match is not None:
        try:
            moment = now - timedelta(**{_UNITS[match["unit"]]: int(match["number"])})
        except OverflowError as error:
            raise click.UsageError(f"{option}: {text} is too long ago") from error
    else:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError as error:
            raise click.UsageError(
                f"{option}: {text!r} is neither a time such as 2026-11-19T14:00 nor as long ago as 90s, 15m, 2h or 7d"
            ) from error
    if moment.tzinfo is None:
        moment = moment.astimezone()
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Decides which events to show."""

    kinds: tuple[str, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)
    """The conditions by field: each value must be equal, or begin with the text before a final ``*``."""
    since: str = ""
    until: str = ""

    def takes(self, event: Event) -> bool:
        return (
            (not self.kinds or event["event"] in self.kinds)
            and (not self.since or str(event["time"]) >= self.since)
            and (not self.until or str(event["time"]) < self.until)
            and all(_matches(event.get(name), wanted) for name, wanted in self.fields.items())
        )


def _matches(value: object, wanted: str) -> bool:
    text = "" if value is None else str(value)
    return text.startswith(wanted[:-1]) if wanted.endswith("*") else text == wanted


def shown(event: Event) -> str:
    """Format an event as one line; texts from clients are escaped."""
    time = str(event["time"])[:19].replace("T", " ")
    return f"{time}  node {event.get('node', '?')}  {event['event']!s:<{_KIND_WIDTH}}  {_said(event)}{_repeated(event)}"


def _said(event: Event) -> str:
    who = event.get("principal") or event.get("user") or event.get("others") or event.get("listener") or ""
    where = f" from {event['host']}" if event.get("host") else ""
    match event["event"]:
        case "denied":
            rule = f", by {event['rule']}" if event.get("rule") else ""
            dry = " (dry run)" if event.get("dry_run") else ""
            what = f"{event.get('operation')} on {event.get('resource')} for {event.get('api')}{rule}{dry}"
        case "changed":
            before, after = (json.dumps(event.get(name)) for name in ("before", "after"))
            what = f"{event.get('kind')} {event.get('name')}: {before} -> {after} ({event.get('api')})"
        case "login" | "login-failed":
            reason = f": {event['reason']}" if event.get("reason") else ""
            what = f"{event.get('mechanism')} on {event.get('listener')}{reason}"
        case _:
            others = {
                name: value
                for name, value in event.items()
                if name not in (*_SHOWN_APART, "principal", "host", "listener") and value != who
            }
            what = " ".join(f"{name}={value}" for name, value in others.items())
    return printable(f"{who}{where}: {what}")


def _repeated(event: Event) -> str:
    if "repeated" not in event:
        return ""
    return f"  [{event['repeated']:,} times in {event.get('seconds', 0):g} s]"
