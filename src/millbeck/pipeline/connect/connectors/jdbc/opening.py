"""The dialect and the connections of a connector's settings."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from millbeck.pipeline.connect.connectors.jdbc.dialect import Dialect
from millbeck.pipeline.connect.connectors.jdbc.urls import parsed_url
from millbeck.pipeline.connect.errors import ConfigError, ConnectError


def dialect_of(values: Mapping[str, Any]) -> Dialect:
    """The dialect that connection.url names; its driver is imported here. Raises `ConfigError`."""
    url = parsed_url(values["connection.url"])
    zone = zone_of(values["db.timezone"])
    try:
        if url.kind == "postgresql":
            from millbeck.pipeline.connect.connectors.jdbc.postgresql import PostgreSql

            return PostgreSql(url, zone)
        from millbeck.pipeline.connect.connectors.jdbc.mariadb import MariaDb

        return MariaDb(url, zone)
    except ModuleNotFoundError as error:
        raise ConfigError(f"connection.url: {error}") from error


def connected(dialect: Dialect, values: Mapping[str, Any], connector: str) -> Any:
    password = values["connection.password"]
    secret = None if password is None else password.reveal()
    return dialect.connect(values["connection.user"], secret, f"millbeck {connector}"[:60])


def zone_of(name: str) -> tzinfo:
    if name.upper() in ("UTC", "GMT", "Z", "ETC/UTC"):
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ConfigError.of("db.timezone", name, "no such time zone; UTC and Europe/Berlin are examples") from None


def meaning(dialect: Dialect, error: Exception) -> Exception:
    """What an exception in the middle of a turn means to the worker."""
    return error if isinstance(error, ConnectError) else dialect.failure(error)
