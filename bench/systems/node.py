"""One broker process: its server.properties, its life, and what the machine says of it.

A node is a combined broker and controller on 127.0.0.1. Its ports are chosen once, so that a restart keeps them.
Subclasses say how the process is formatted and started; this class writes the properties, starts the child in its
own session (pinned to a core and put in a memory group when asked), and ends it by its own pid. `stop` asks, waits, and
only then kills; `kill` is kill -9, with nothing said to the broker.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench import raw

START_TIMEOUT_S = 90.0
STOP_TIMEOUT_S = 40.0
_SCHEDULER_CLOCK = 2


class NodeFailed(Exception):
    """A node did not start; the text carries the end of its log."""


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that were free a moment ago; all are held until all are chosen, so they differ."""
    held = [socket.socket() for _ in range(count)]
    try:
        for one in held:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in held]
    finally:
        for one in held:
            one.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a process has used so far."""

    cpu_seconds: float
    rss_bytes: int


def bytes_read_from_disk(pid: int) -> int:
    """What the process made the disk read, readahead included; the page cache is not counted."""
    fields = dict(line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())
    return int(fields["read_bytes"])


def process_usage(pid: int) -> Usage:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return Usage(cpu_seconds=_cpu_seconds(pid), rss_bytes=pages * os.sysconf("SC_PAGE_SIZE"))


def _cpu_seconds(pid: int) -> float:
    """User and system time of a process, ended threads included.

    Linux has a clock for it, whose number is made of the pid. The figures of /proc come in ticks of 10 ms, and the
    smaller cells use only a few.
    """
    return time.clock_gettime((~pid << 3) | _SCHEDULER_CLOCK)


class Node:
    """A broker on loopback. `directory` holds its data, properties and log; nothing is written elsewhere."""

    name = "node"

    def __init__(
        self,
        directory: Path,
        *,
        overrides: Mapping[str, str] | None = None,
        core: int | None = None,
        proxied_port: int | None = None,
        memory_group: Path | None = None,
        heap_mib: int = 1024,
        node_id: int = 1,
    ) -> None:
        self.directory = directory
        self.data = directory / "data"
        self.log_path = directory / "node.log"
        self.config_path = directory / "server.properties"
        self.overrides = dict(overrides or {})
        self.core = core
        self.proxied_port = proxied_port
        self.memory_group = memory_group
        self.heap_mib = heap_mib
        self.node_id = node_id
        self.port, self.controller_port, self.behind_proxy_port, self.metrics_port = free_ports(4)
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self.process is not None, "the node is not running"
        return self.process.pid

    def properties(self) -> dict[str, str]:
        """The server.properties of a single node; with a proxied port, a second listener is advertised there."""
        listeners = {"PLAINTEXT": self.port, "CONTROLLER": self.controller_port}
        advertised = {"PLAINTEXT": self.port}
        if self.proxied_port is not None:
            listeners["PROXIED"] = self.behind_proxy_port
            advertised["PROXIED"] = self.proxied_port
        properties = {
            "process.roles": "broker,controller",
            "node.id": str(self.node_id),
            "controller.quorum.voters": f"{self.node_id}@127.0.0.1:{self.controller_port}",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in listeners.items()),
            "advertised.listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in advertised.items()),
            "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in listeners),
            "log.dirs": str(self.data),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
        }
        return properties | self.overrides

    def command(self) -> list[str]:
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        return dict(os.environ)

    def format_storage(self) -> None:
        """Prepare an empty data directory. Called once, before the first start on it."""
        raise NotImplementedError

    def prepare(self) -> None:
        """Write the properties and format the storage, unless it is formatted."""
        self.directory.mkdir(parents=True, exist_ok=True)
        lines = [f"{key}={value}" for key, value in self.properties().items()]
        self.config_path.write_text("\n".join(lines) + "\n")
        if not (self.data / "meta.properties").exists():
            self.format_storage()

    def start(self, *, wait: bool = True) -> None:
        """Start the process; with `wait`, return when it answers. Raises NodeFailed with the end of the log."""
        assert self.process is None, "the node is running already"
        self.prepare()
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                self.command(),
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=self._enter_bounds,
            )
        if wait:
            self.wait_until_serving()

    def _enter_bounds(self) -> None:
        """Runs in the child between fork and exec."""
        if self.memory_group is not None:
            (self.memory_group / "cgroup.procs").write_text(str(os.getpid()))
        if self.core is not None:
            os.sched_setaffinity(0, {self.core})

    def wait_until_serving(self) -> None:
        deadline_s = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                raw.wait_until_serving(self.bootstrap, deadline_s=min(deadline_s, time.monotonic() + 1.0))
                return
            except TimeoutError:
                assert self.process is not None
                ended = self.process.poll()
                if ended is not None or time.monotonic() > deadline_s:
                    self.kill()
                    fate = f"ended with {ended}" if ended is not None else f"does not answer after {START_TIMEOUT_S} s"
                    raise NodeFailed(f"{self.name} {fate}:\n{self.log_tail()}") from None

    def log_tail(self, lines: int = 30) -> str:
        if not self.log_path.exists():
            return ""
        return "\n".join(self.log_path.read_text(errors="replace").splitlines()[-lines:])

    def stop(self) -> None:
        """Ask the broker to shut down, and wait until it has."""
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise NodeFailed(f"{self.name} did not stop in {STOP_TIMEOUT_S} s:\n{self.log_tail()}") from None
        self.process = None

    def kill(self) -> None:
        """kill -9."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(30)
        self.process = None

    def usage(self) -> Usage:
        return process_usage(self.pid)

    def __enter__(self) -> Node:
        if self.process is None:
            self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
