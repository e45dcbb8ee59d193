"""JSON over HTTP to the instances of a registry, with the standard library.

One connection is kept open and used by one thread at a time. If an instance does not answer, the next one is tried. The
size of answers is limited, and redirects are not followed.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import threading
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from millbeck.client.schemas.errors import SchemaError, UnknownSchema
from millbeck.client.schemas.settings import RegistryClientConfig

CONTENT_TYPE: Final = "application/vnd.schemaregistry.v1+json"
ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024
_ATTEMPTS: Final = 2
_NOT_THERE: Final = range(40401, 40410)


class RegistryRefused(SchemaError):
    """The registry answered with an error; ``code`` is its error_code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Transport:
    def __init__(self, config: RegistryClientConfig) -> None:
        self._config = config
        self._urls = [urlsplit(each if "://" in each else f"http://{each}") for each in config.url]
        self._lock = threading.Lock()
        self._connection: http.client.HTTPConnection | None = None
        self._current = 0

    @property
    def name(self) -> str:
        return ",".join(each.geturl() for each in self._urls)

    def call(self, method: str, path: list[str], query: dict[str, Any] | None = None, body: Any = None) -> Any:
        """Send a request and return the JSON of the answer. Raises `UnknownSchema`, `RegistryRefused`, or `SchemaError`
        if no instance answers."""
        target = "/" + "/".join(quote(each, safe="") for each in path)
        given = {name: value for name, value in (query or {}).items() if value not in (None, False, "")}
        if given:
            shown = [(name, "true" if value is True else value) for name, value in given.items()]
            target += "?" + urlencode(shown, doseq=True)
        content = None if body is None else json.dumps(body).encode()
        with self._lock:
            status, answer = self._asked(method, target, content)
        return _read(status, answer)

    def close(self) -> None:
        with self._lock:
            self._disconnect()

    def _asked(self, method: str, target: str, content: bytes | None) -> tuple[int, bytes]:
        failures: dict[str, None] = {}
        for attempt in range(_ATTEMPTS * len(self._urls)):
            url = self._urls[self._current]
            try:
                return self._exchange(url, method, target, content)
            except (OSError, http.client.HTTPException) as error:
                failures[f"{url.geturl()}: {str(error) or type(error).__name__}"] = None
                self._disconnect()
                if attempt % _ATTEMPTS == _ATTEMPTS - 1:
                    self._current = (self._current + 1) % len(self._urls)
        raise SchemaError(
            f"no schema registry answers ({'; '.join(failures)}): check schema.registry.url, and "
            "whether the registry is running"
        )

    def _exchange(self, url: Any, method: str, target: str, content: bytes | None) -> tuple[int, bytes]:
        if self._connection is None:
            self._connection = self._connected(url)
        headers = {"Accept": CONTENT_TYPE, **self._credentials()}
        if content is not None:
            headers["Content-Type"] = CONTENT_TYPE
        self._connection.request(method, url.path.rstrip("/") + target, body=content, headers=headers)
        with self._connection.getresponse() as response:
            answer = response.read(ANSWER_BYTES_MAX + 1)
            if len(answer) > ANSWER_BYTES_MAX:
                raise http.client.HTTPException(f"the answer is longer than {ANSWER_BYTES_MAX} bytes")
            if response.status in (502, 503, 504):
                raise http.client.HTTPException(f"HTTP {response.status}")
            return response.status, answer

    def _connected(self, url: Any) -> http.client.HTTPConnection:
        timeout_s = self._config.request_timeout_ms / 1000
        if url.scheme != "https":
            return http.client.HTTPConnection(url.hostname, url.port or 80, timeout=timeout_s)
        context = ssl.create_default_context(cafile=self._config.ca_location)
        if self._config.certificate_location is not None:
            context.load_cert_chain(self._config.certificate_location, self._config.key_location)
        return http.client.HTTPSConnection(url.hostname, url.port or 443, timeout=timeout_s, context=context)

    def _credentials(self) -> dict[str, str]:
        if self._config.bearer_token is not None:
            return {"Authorization": f"Bearer {self._config.bearer_token.reveal()}"}
        if self._config.user_info is not None:
            pair = base64.b64encode(self._config.user_info.reveal().encode()).decode()
            return {"Authorization": f"Basic {pair}"}
        return {}

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _read(status: int, answer: bytes) -> Any:
    try:
        found = json.loads(answer) if answer else None
    except (ValueError, RecursionError):
        raise SchemaError(
            f"the registry answered HTTP {status} without JSON: is this the address of a schema registry?"
        ) from None
    if 200 <= status < 300:
        return found
    members = found if isinstance(found, dict) else {}
    code, message = members.get("error_code"), str(members.get("message", f"HTTP {status}"))[:2000]
    if isinstance(code, int) and code in _NOT_THERE:
        raise UnknownSchema(message)
    if status in (401, 403):
        message = f"{message}: check basic.auth.user.info or bearer.auth.token"
    raise RegistryRefused(code if isinstance(code, int) else status, message)
