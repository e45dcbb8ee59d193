"""A node in a child process, for tests of code that uses Kafka.

The child (`testing.child`) prints its address on standard output when it is ready, so nothing polls; it exits on end of
file on its standard input, so it does not outlive its parent, even a killed one. Its logs are in memory where the
system has a memory file system, and are removed at the end unless a directory was given.
"""

from __future__ import annotations

import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, Literal, overload

if TYPE_CHECKING:
    from millbeck.testing.secure_broker import SecureBroker

START_SECONDS_MAX: Final = 60.0
STOP_SECONDS_MAX: Final = 30.0
_MEMORY: Final = "/dev/shm"
_PACKAGES: Final = str(Path(__file__).resolve().parents[2])
_ENTRY: Final = "import sys; sys.path.append(sys.argv.pop(1)); from millbeck.testing.child import main; main()"
"""The code of the child, which imports this package from the parent's path, installed or not."""


class BrokerFailed(RuntimeError):
    """The node did not start, or exited by itself; the message includes its output."""


class Broker:
    """A running node. `stop`, `kill` and `restart` may be called at any time; address and data stay the same."""

    def __init__(
        self,
        settings: Mapping[str, str],
        directory: Path | None = None,
        *,
        cluster_id: str | None = None,
        port: int = 0,
        is_secure: bool = False,
    ) -> None:
        self.settings = dict(settings)
        self.is_temporary = directory is None
        self.directory = _new_directory() if directory is None else directory
        self.cluster_id = cluster_id
        self.port = port
        self.is_secure = is_secure
        self.metrics_port = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._is_ready = False
        self._errors: IO[bytes] = tempfile.TemporaryFile(prefix="millbeck-")  # noqa: SIM115

    @property
    def bootstrap(self) -> str:
        """The value for ``bootstrap.servers``."""
        return f"127.0.0.1:{self.port}"

    @property
    def metrics_url(self) -> str:
        return f"http://127.0.0.1:{self.metrics_port}/metrics"

    @property
    def process_id(self) -> int | None:
        return None if self._process is None else self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the node and wait until it is ready; raises `BrokerFailed`."""
        if not self.is_running:
            self.launch()
            self.wait_until_ready()

    def launch(self) -> None:
        """Start the process unless it is running, without waiting."""
        if self.is_running:
            return
        self._reap()
        self._is_ready = False
        order = {
            "directory": str(self.directory),
            "is_temporary": self.is_temporary,
            "parent": os.getpid(),
            "port": self.port,
            "metrics_port": self.metrics_port,
            "settings": self.settings,
            "cluster_id": self.cluster_id,
            "is_secure": self.is_secure,
        }
        self._process = subprocess.Popen(
            # -P: modules in the tests' directory must not shadow the standard library.
            [sys.executable, "-P", "-c", _ENTRY, _PACKAGES, json.dumps(order)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,  # Ctrl-C goes to the tests only, which stop the node when they are done.
        )

    def wait_until_ready(self) -> None:
        """Wait until a launched node is ready; raises `BrokerFailed`."""
        assert self._process is not None, "the node was not launched"
        if self._is_ready:
            return
        line = _first_line(self._process, START_SECONDS_MAX)
        try:
            answer = json.loads(line)
            self.port, self.metrics_port = answer["port"], answer["metrics_port"]
        except (ValueError, KeyError) as error:
            self.kill()
            raise BrokerFailed(f"the node did not start: {self.output().strip() or 'no output'}") from error
        self._is_ready = True

    def request_stop(self) -> None:
        """Tell the node to shut down, without waiting."""
        if self._process is not None:
            self._process.terminate()

    def stop(self) -> None:
        """Shut the node down cleanly: everything acknowledged is on disk."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._reap()

    def kill(self) -> None:
        """Kill the node, as in a crash (SIGKILL)."""
        if self._process is None:
            return
        self._process.kill()
        self._reap()

    def pause(self) -> None:
        """Suspend the node (SIGSTOP): connections stay open and nothing answers."""
        assert self._process is not None, "the node is not running"
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None, "the node is not running"
        self._process.send_signal(signal.SIGCONT)

    def restart(self) -> None:
        """Stop the node if it is running, and start it again with the same address and data."""
        self.stop()
        self.start()

    def output(self) -> str:
        """Everything the node has logged, over all starts."""
        position = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(0)
        return self._errors.read(position).decode("utf-8", "replace")

    def close(self) -> None:
        """Stop the node and remove temporary files."""
        if self.is_temporary:
            self.kill()
            shutil.rmtree(self.directory, ignore_errors=True)
        else:
            self.stop()
        self._errors.close()

    def _reap(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


@overload
def broker(
    settings: Mapping[str, object] | None = None,
    /,
    *,
    data: str | os.PathLike[str] | None = None,
    secure: Literal[True],
    **keywords: object,
) -> AbstractContextManager[SecureBroker]: ...
@overload
def broker(
    settings: Mapping[str, object] | None = None,
    /,
    *,
    data: str | os.PathLike[str] | None = None,
    secure: object = False,
    **keywords: object,
) -> AbstractContextManager[Broker]: ...
@contextmanager
def broker(
    settings: Mapping[str, object] | None = None,
    /,
    *,
    data: str | os.PathLike[str] | None = None,
    secure: object = False,
    **keywords: object,
) -> Iterator[Any]:
    """A new node within a ``with`` block.

    Settings are Kafka's, with underscores for dots when given as keywords: ``broker(num_partitions=3)`` is
    ``broker({"num.partitions": 3})``. With ``data`` the logs are kept in that directory and stay there. With ``secure``
    the node uses TLS, SASL and ACLs (`SecureBroker`).
    """
    texts, directory = settings_texts(settings, keywords), None if data is None else Path(data)
    running = _secure_broker(texts, directory) if secure else Broker(texts, directory)
    try:
        running.start()
        yield running
    finally:
        running.close()


def _secure_broker(settings: Mapping[str, str], directory: Path | None) -> Broker:
    from millbeck.host.certificate_authority import EXTRA, is_installed
    from millbeck.testing.secure_broker import SecureBroker

    if not is_installed():
        raise BrokerFailed(f"secure=True needs a package that is not installed: {EXTRA}")
    return SecureBroker(settings, directory)


def settings_texts(settings: Mapping[str, object] | None, keywords: Mapping[str, object]) -> dict[str, str]:
    """Settings as strings for a server.properties file, from a mapping and keyword arguments."""
    named = {name.replace("_", "."): value for name, value in keywords.items()}
    return {name: _text_of(value) for name, value in {**(settings or {}), **named}.items()}


@contextmanager
def temporary_directory() -> Iterator[Path]:
    """A temporary directory, on a memory file system if there is one, removed at the end of the block."""
    directory = _new_directory()
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _text_of(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ",".join(map(_text_of, value))
    return str(value)


def _new_directory() -> Path:
    return Path(tempfile.mkdtemp(prefix="millbeck-", dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None))


def _first_line(process: subprocess.Popen[bytes], timeout_s: float) -> bytes:
    """The child's first line; empty if it exits without output or the timeout passes."""
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        # The child writes the line at once, so that a readable pipe has all of it.
        return process.stdout.readline() if selector.select(timeout_s) else b""
