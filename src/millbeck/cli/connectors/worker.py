"""The connection of a command to a Connect worker: its REST interface, and errors as messages."""

from __future__ import annotations

import base64
import http.client
import json
import time
from collections.abc import Callable, Mapping
from functools import update_wrapper
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

import click

DEFAULT_URL: Final = "http://127.0.0.1:8083"
REQUEST_SECONDS_MAX: Final = 95.0
ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024
MESSAGE_MAX: Final = 4000
_REBALANCING: Final = 409
_ATTEMPTS: Final = 5
_WAIT_SECONDS: Final = 1.0


class Worker:
    """Asks one worker; others are forwarded to by itself. Errors become `click.ClickException`."""

    def __init__(self, url: str, user: str | None = None) -> None:
        self._url = url
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise click.ClickException(f"--url: {url} is no address of a worker, such as {DEFAULT_URL}")
        self._parts = parts
        self._headers = {"Accept": "application/json"}
        if user is not None:
            self._headers["Authorization"] = f"Basic {base64.b64encode(user.encode()).decode()}"

    def ask(
        self, method: str, *path: str, body: Any = None, query: Mapping[str, Any] | None = None, is_retried: bool = True
    ) -> Any:
        """The JSON of the answer; None when it has none. While the group rebalances, the question is asked again."""
        target = "/" + "/".join(quote(part, safe="") for part in path)
        if query:
            target += f"?{urlencode(query, doseq=True)}"
        for attempt in range(_ATTEMPTS):
            status, content = self._exchange(method, target, body)
            found = _parsed(content)
            message = str(found.get("message", "")) if isinstance(found, dict) else ""
            if status != _REBALANCING or "rebalance" not in message.lower() or not is_retried:
                break
            if attempt < _ATTEMPTS - 1:
                time.sleep(_WAIT_SECONDS)
        if 200 <= status < 300:
            if content and found is None:
                raise click.ClickException(
                    f"{self._url} answers without JSON: is this the address of a Connect worker?"
                )
            return found
        if not message and any("/" in part for part in path):
            message = f"{self._url} answers HTTP {status}: workers of Apache Kafka take no requests about names with /"
        raise click.ClickException(message[:MESSAGE_MAX] or f"{self._url} answers HTTP {status}")

    def _exchange(self, method: str, target: str, body: Any) -> tuple[int, bytes]:
        kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
        port = self._parts.port or (443 if self._parts.scheme == "https" else 80)
        connection = kind(self._parts.hostname or "", port, timeout=REQUEST_SECONDS_MAX)
        headers = dict(self._headers)
        content = None if body is None else json.dumps(body).encode()
        if content is not None:
            headers["Content-Type"] = "application/json"
        try:
            connection.request(method, self._parts.path.rstrip("/") + target, content, headers)
            response = connection.getresponse()
            answer = response.read(ANSWER_BYTES_MAX + 1)
        except (OSError, http.client.HTTPException) as error:
            raise click.ClickException(
                f"no Connect worker answers at {self._url} ({str(error) or type(error).__name__}): set --url"
            ) from error
        finally:
            connection.close()
        if len(answer) > ANSWER_BYTES_MAX:
            raise click.ClickException(f"the answer of {self._url} is longer than {ANSWER_BYTES_MAX} bytes")
        return response.status, answer


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content) if content else None
    except (ValueError, RecursionError):
        return None


def worker_command(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options ``--url`` and ``--user``, and pass a `Worker` as ``worker``. It is the innermost decorator."""

    @click.option(
        "--url",
        "-u",
        envvar="CONNECT_URL",
        default=DEFAULT_URL,
        show_default=True,
        metavar="URL",
        help="A worker's REST interface; can also be set by CONNECT_URL.",
    )
    @click.option(
        "--user",
        envvar="CONNECT_USER",
        metavar="NAME:PASSWORD",
        help="For workers that ask for a password; set CONNECT_USER instead to keep it off the command line.",
    )
    def command(*arguments: Any, url: str, user: str | None, **named: Any) -> Any:
        return function(*arguments, worker=Worker(url, user), **named)

    return update_wrapper(command, function)
