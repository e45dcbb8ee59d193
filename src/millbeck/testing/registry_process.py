"""A schema registry in a child process, for tests of code that uses one. Needs the extra ``millbeck[registry]``.

The child ends when its standard input does, so it does not outlive its parent, even a killed one.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Final

STOP_SECONDS_MAX: Final = 20.0
READY: Final = "listening on "


class RegistryFailed(RuntimeError):
    """The registry did not start; the message has the reason."""


@contextmanager
def registry(bootstrap: str) -> Iterator[str]:
    """The URL of a new registry within a ``with`` block; it stores its topic on these brokers."""
    if find_spec("uvicorn") is None or find_spec("starlette") is None:
        raise RegistryFailed("the schema registry is not installed: pip install 'millbeck[registry]'")
    settings = {
        "listeners": "http://127.0.0.1:0",
        "kafkastore.bootstrap.servers": bootstrap,
        "kafkastore.topic.replication.factor": "1",
    }
    arguments = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
    process = subprocess.Popen(
        [sys.executable, "-m", "millbeck.cli.main", "registry", "start", "--stops-with-input", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        line = process.stdout.readline().strip()
        if not line.startswith(READY):
            raise RegistryFailed("the registry did not start; its error is on standard error")
        yield line.removeprefix(READY)
    finally:
        process.stdin.close()
        try:
            process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
