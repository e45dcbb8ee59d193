"""``jdbc:`` URLs: which database, where, and with which parameters of the JDBC driver."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl, unquote

from millbeck.pipeline.connect.errors import ConfigError

_PORTS: Final = {"postgresql": 5432, "mariadb": 3306, "mysql": 3306}
_SHAPE: Final = re.compile(
    r"jdbc:(?P<kind>[a-z0-9]+):(?://(?P<hosts>[^/?]*))?/?(?P<database>[^/?]*)(?:\?(?P<query>.*))?"
)
_HOST: Final = re.compile(r"(?:\[(?P<six>[0-9a-fA-F:.]+)\]|(?P<name>[^:\[\]]*))(?::(?P<port>[0-9]{1,5}))?")
SETTING: Final = "connection.url"


@dataclass(frozen=True, slots=True)
class JdbcUrl:
    """A parsed URL. ``parameters`` may hold a password."""

    kind: str
    hosts: tuple[tuple[str, int], ...]
    database: str
    parameters: Mapping[str, str] = field(default_factory=dict, repr=False)


def parsed_url(url: str) -> JdbcUrl:
    """Raises `ConfigError` for what is no URL of a supported database. Messages never repeat it: it may hold a
    password."""
    kind = url.strip().removeprefix("jdbc:").partition(":")[0]
    if url.strip().startswith("jdbc:") and kind.isalnum() and kind not in _PORTS:
        raise ConfigError(
            f"{SETTING}: no driver for jdbc:{kind[:40]}: there are jdbc:postgresql, jdbc:mariadb and jdbc:mysql"
        )
    match = _SHAPE.fullmatch(url.strip())
    if match is None:
        raise ConfigError(f"{SETTING}: expected jdbc:postgresql://host:5432/database or jdbc:mariadb://host/database")
    hosts = tuple(_host(each, _PORTS[kind]) for each in (match["hosts"] or "localhost").split(","))
    if not match["database"]:
        raise ConfigError(f"{SETTING}: name the database, as in jdbc:{kind}://host/database")
    parameters = dict(parse_qsl(match["query"] or "", keep_blank_values=True))
    return JdbcUrl(kind, hosts, unquote(match["database"]), parameters)


def url_problem(url: str) -> str | None:
    try:
        parsed_url(url)
    except ConfigError as error:
        return str(error).removeprefix(f"{SETTING}: ")
    return None


def _host(text: str, default_port: int) -> tuple[str, int]:
    match = _HOST.fullmatch(text.strip())
    port = int(match["port"] or default_port) if match is not None else 0
    if match is None or not 0 < port < 65536:
        raise ConfigError(f"{SETTING}: expected hosts as host or host:port, separated by commas")
    return match["six"] or match["name"] or "localhost", port
