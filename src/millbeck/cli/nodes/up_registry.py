"""The schema registry of ``millbeck up``: a separate process, started by the first connection.

`up` holds the listening socket. On the first connection it starts ``millbeck registry start`` with that socket, which
also answers the waiting connection. Then it waits until that process ends (after ten idle minutes) before it accepts
again. The registry parses input of untrusted clients; in a separate process it never delays the node's requests.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from millbeck.server.local.secured import SecuredCluster

PORT: Final = 8081
IDLE_SECONDS: Final = 600
RETRY_SECONDS: Final = 2.0
STOP_SECONDS_MAX: Final = 10.0
EXTRA: Final = "pip install 'millbeck[registry]'"
_BACKLOG: Final = 128


REPLICAS_MAX: Final = 3


def is_installed() -> bool:
    return all(find_spec(name) is not None for name in ("starlette", "uvicorn", "httptools"))


class RegistryOnDemand:
    """Create it inside a running event loop; `close` it at the end."""

    def __init__(
        self, host: str, port: int, bootstrap: str, *, replica_count: int = 1, config_file: str | None = None
    ) -> None:
        """``replica_count`` is the number of replicas of the registry's topic; with a ``config_file``, which has
        certificates and users, clients connect by TLS."""
        self._config_file = config_file
        self._scheme = "http" if config_file is None else "https"
        self._bootstrap = bootstrap
        self._replica_count = replica_count
        self._loop = asyncio.get_running_loop()
        self._socket = _listen(host, port)
        self.host = host
        self.port: int = self._socket.getsockname()[1]
        self._running: asyncio.Task[None] | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._watch()

    def _watch(self) -> None:
        self._loop.add_reader(self._socket.fileno(), self._connected)

    def _connected(self) -> None:
        """Called when a connection is waiting to be accepted: start the registry, which accepts it."""
        self._loop.remove_reader(self._socket.fileno())
        self._running = self._loop.create_task(self._run())

    async def _run(self) -> None:
        number = self._socket.fileno()
        settings = {
            "listeners": self.url,
            "kafkastore.bootstrap.servers": self._bootstrap,
            "kafkastore.topic.replication.factor": str(self._replica_count),
        }
        arguments = [] if self._config_file is None else ["--config", self._config_file]
        arguments += [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
        arguments += ["--socket", str(number), "--idle-seconds", str(IDLE_SECONDS), "--stops-with-input"]
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "millbeck.cli.main",
            "registry",
            "start",
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            pass_fds=[number],
            start_new_session=True,
        )
        if await self._process.wait():
            # The connection is still waiting: do not restart a failing process without a delay.
            await asyncio.sleep(RETRY_SECONDS)
        self._process = None
        self._watch()

    async def close(self) -> None:
        """End the process, and stop listening."""
        self._loop.remove_reader(self._socket.fileno())
        if self._running is not None and self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            done, _ = await asyncio.wait({self._running}, timeout=STOP_SECONDS_MAX)
            if not done and self._process is not None:
                self._process.kill()
        if self._running is not None:
            self._running.cancel()
        self._loop.remove_reader(self._socket.fileno())
        self._socket.close()

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self._scheme}://{host}:{self.port}"


def secure_registry(secured: SecuredCluster, port: int, bootstrap: str, *, replica_count: int = 1) -> RegistryOnDemand:
    """The registry of a secured cluster; writes the files that it and its clients need."""
    from millbeck.cli.nodes.up_secure_registry import write_client_files, write_config
    from millbeck.host import real_environment

    environment = real_environment()
    certificate_file = secured.certificate_file(1)
    config_file = write_config(environment, secured, certificate_file=certificate_file, bootstrap=bootstrap)
    registry = RegistryOnDemand("127.0.0.1", port, bootstrap, replica_count=replica_count, config_file=config_file)
    write_client_files(environment, secured, registry.url)
    return registry


def _listen(host: str, port: int) -> socket.socket:
    """A listening socket on the port, or on a free one if it is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((host, port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            found.bind((host, 0))
        found.listen(_BACKLOG)
        found.setblocking(False)
    except BaseException:
        found.close()
        raise
    return found
