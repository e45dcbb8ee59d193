"""Serve the metrics of a run over HTTP, on a thread.

The setting ``metrics`` is the address, as ``host:port``; port 0 is any free one, and ``off`` disables it.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

from millbeck.kernel.metrics import CONTENT_TYPE, Registry
from millbeck.pipeline.errors import DefinitionError

OFF: Final = "off"
ANYWHERE: Final = "127.0.0.1:0"
_ANSWER_SECONDS_MAX: Final = 10
_LOOK_SECONDS: Final = 0.05
"""The poll interval of the server for its shutdown; the end of a run waits for it."""


def address_of(setting: str) -> tuple[str, int]:
    """Parse the address of the metrics server. Raises `DefinitionError`."""
    host, _, port = setting.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65_535:
        raise DefinitionError(f"metrics must be {OFF!r} or an address like 127.0.0.1:9405, not {setting!r}")
    return host.strip("[]"), int(port)


@contextmanager
def served(setting: str, registry: Registry) -> Iterator[str | None]:
    """Serve metrics within the block; yields their URL. Raises `DefinitionError` if the address cannot be used."""
    if setting == OFF:
        yield None
        return
    host, port = address_of(setting)
    try:
        server = _server_class(host)((host, port), _handler(registry))
    except OSError as error:
        raise DefinitionError(
            f"metrics cannot be served at {setting}: {error.strerror or error}. Set metrics to another address, to"
            f" {ANYWHERE} for any free port, or to {OFF!r}"
        ) from error
    thread = threading.Thread(target=server.serve_forever, args=(_LOOK_SECONDS,), name="metrics", daemon=True)
    thread.start()
    try:
        shown = f"[{host}]" if ":" in host else host
        yield f"http://{shown}:{server.server_address[1]}/metrics"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _server_class(host: str) -> type[ThreadingHTTPServer]:
    class Server(ThreadingHTTPServer):
        daemon_threads = True
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

    return Server


def _handler(registry: Registry) -> type[BaseHTTPRequestHandler]:
    # The registry is not thread-safe, so scrapes are serialized.
    turn = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        timeout = _ANSWER_SECONDS_MAX

        def do_GET(self) -> None:
            if self.path.split("?")[0] != "/metrics":
                self.send_error(404, "The metrics are at /metrics")
                return
            with turn:
                registry.advance(int(time.monotonic() * 1000))
                text = registry.render().encode()
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
            """Do not log scrapes."""

    return Handler
