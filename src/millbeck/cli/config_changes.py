"""Parse changes of settings given on the command line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from millbeck.client.admin.results import ConfigChange


def changes_of(added: Mapping[str, str], removed: Iterable[str]) -> list[ConfigChange]:
    """One list of changes: settings to set, and settings to reset to their defaults."""
    from millbeck.client.admin.results import ConfigChange, ConfigOperation

    return [
        *(ConfigChange(name=name, value=value) for name, value in added.items()),
        *(ConfigChange(name=name, operation=ConfigOperation.DELETE) for name in removed),
    ]


def parse_settings(text: str) -> dict[str, str]:
    """Parse Kafka's ``--add-config``: ``a=b,c=[d,e]`` is two settings, the second with a comma in its value."""
    settings: dict[str, str] = {}
    for entry in _split_outside_brackets(text):
        name, equals, value = entry.partition("=")
        if not (name.strip() and equals):
            raise click.UsageError(f"--add-config: {entry!r} is not KEY=VALUE (put a list in brackets: KEY=[a,b])")
        value = value.strip()
        if value.startswith("[") and value.endswith("]"):
            value = value[1:-1]
        settings[name.strip()] = value
    return settings


def _split_outside_brackets(text: str) -> list[str]:
    entries, start, depth = [], 0, 0
    for position, character in enumerate(text):
        if character == "[":
            depth += 1
        elif character == "]":
            depth = max(0, depth - 1)
        elif character == "," and not depth:
            entries.append(text[start:position])
            start = position + 1
    return [entry for entry in (*entries, text[start:]) if entry.strip()]
