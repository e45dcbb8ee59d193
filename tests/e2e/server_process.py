"""A node as an administrator runs it: a server.properties file, `millbeck storage format` and `millbeck server`."""

from __future__ import annotations

import resource
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

START_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 40.0


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def millbeck(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "millbeck.cli.main", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=START_SECONDS_MAX,
    )


class ServerProcess:
    """The process of one node; what it printed is kept in a file beside its settings."""

    def __init__(self, directory: Path, settings: Mapping[str, str]) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.config = directory / "server.properties"
        self.output = directory / "output"
        self.settings = {"log.dirs": str(directory / "data"), "metrics.http.port": "0", **settings}
        self.open_files_max: int | None = None
        """Its limit of open files, soft and hard; None leaves that of the tests."""
        self._process: subprocess.Popen[bytes] | None = None
        self.write_settings()

    def write_settings(self, **changes: str) -> None:
        self.settings |= {name.replace("_", "."): value for name, value in changes.items()}
        self.config.write_text("".join(f"{name}={value}\n" for name, value in self.settings.items()))

    def format(self, cluster_id: str, *flags: str) -> None:
        done = millbeck("storage", "format", "--config", str(self.config), "--cluster-id", cluster_id, *flags)
        assert done.returncode == 0, done.stderr

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def metrics_url(self) -> str:
        return next(line.split()[-1] for line in self.said().splitlines() if "metrics on" in line)

    @property
    def process_id(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        return None if self._process is None else self._process.poll()

    def said(self) -> str:
        return self.output.read_text(errors="replace") if self.output.exists() else ""

    def _limit_open_files(self) -> None:
        if self.open_files_max is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (self.open_files_max, self.open_files_max))

    def launch(self) -> None:
        with self.output.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "millbeck.cli.main", "server", "--config", str(self.config)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=self._limit_open_files,
            )

    def wait_until_ready(self) -> None:
        deadline_s = time.monotonic() + START_SECONDS_MAX
        while "metrics on" not in self.said():
            assert self.is_running, f"the node ended: {self.said()}"
            assert time.monotonic() < deadline_s, f"the node does not serve: {self.said()}"
            time.sleep(0.02)

    def start(self) -> None:
        self.launch()
        self.wait_until_ready()

    def stop(self) -> None:
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS_MAX)
        finally:
            self.kill()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
