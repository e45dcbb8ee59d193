"""A worker of ours in a thread of this process, and requests to it."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

from millbeck.host import real_environment
from millbeck.pipeline.connect.worker.config import parse
from millbeck.pipeline.connect.worker.serving import serve
from tests.interop.connect.inline_engine import InlineEngine
from tests.interop.connect.record_worker import HOST, PORT
from tests.interop.connect.requests import Request

SECONDS_MAX = 60.0


@contextmanager
def served(bootstrap: str, **settings: str) -> Iterator[None]:
    """Serve on the port of the recording, with tasks in this process."""
    ready = threading.Event()
    stop: list[Any] = []
    errors: list[BaseException] = []

    async def main() -> None:
        stop.extend((asyncio.get_running_loop(), asyncio.Event()))
        given = {"bootstrap.servers": bootstrap, "listeners": f"http://{HOST}:{PORT}", **settings}
        await serve(
            real_environment(),
            parse(given),
            on_ready=lambda port: ready.set(),
            engine=InlineEngine(),
            stop=stop[1],
        )

    def run() -> None:
        try:
            asyncio.run(main())
        except BaseException as error:
            errors.append(error)
            ready.set()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert ready.wait(SECONDS_MAX)
        if errors:
            raise errors[0]
        yield
    finally:
        if thread.is_alive():
            stop[0].call_soon_threadsafe(stop[1].set)
        thread.join(SECONDS_MAX)


def ask(request: Request) -> tuple[int, str, Any]:
    """Status, location and body of the answer."""
    connection = http.client.HTTPConnection(HOST, PORT, timeout=SECONDS_MAX)
    content = request.body if request.is_text else None if request.body is None else json.dumps(request.body)
    headers = {} if content is None else {"Content-Type": "application/json"}
    connection.request(request.method, quote(request.path, safe="/?=&"), content, headers)
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    try:
        body = json.loads(text)
    except ValueError:
        body = text
    return response.status, response.headers.get("location") or "", body
