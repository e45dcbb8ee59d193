"""Connectors' configurations in files: the JSON of `POST /connectors`, of `PUT .../config`, or Java's properties."""

from __future__ import annotations

import json
from typing import Any

from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.properties import parse_properties
from millbeck.pipeline.connect.errors import ConfigError


def settings_of_text(text: str) -> dict[str, str | None]:
    """The settings with ``name`` among them. Raises `ConfigError`.

    Values may be texts, numbers and booleans, as Kafka Connect takes them, or null.
    """
    if not text.lstrip().startswith(("{", "[")):
        try:
            return dict(parse_properties(text))
        except InvalidConfig as error:
            raise ConfigError(str(error)) from None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"not JSON: {error}") from None
    return settings_of_json(found)


def settings_of_json(found: Any) -> dict[str, str | None]:
    """The settings of ``{"name": ..., "config": {...}}`` or of the configuration alone. Raises `ConfigError`."""
    if not isinstance(found, dict):
        raise ConfigError("a connector is a JSON object")
    if not isinstance(found.get("config"), dict):
        return {name: _text(name, value) for name, value in found.items()}
    unknown = sorted(found.keys() - {"name", "config", "initial_state"})
    if unknown:
        raise ConfigError(f"{unknown[0]}: no such member; there are name, config and initial_state")
    settings = {name: _text(name, value) for name, value in found["config"].items()}
    name = found.get("name")
    if name is None:
        return settings
    inner = settings.setdefault("name", str(name))
    if inner != str(name):
        raise ConfigError(f"name in config ({inner}) differs from name ({name})")
    return settings


def _text(name: str, value: Any) -> str | None:
    if isinstance(value, (dict, list)):
        raise ConfigError(
            f"{name}: a setting's value is a text, not {'an object' if isinstance(value, dict) else 'a list'}"
        )
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else str(value)
