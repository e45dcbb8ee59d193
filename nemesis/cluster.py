"""The processes of a cluster, one to a host: started, killed, paused, asked to stop, started again on the same disk.

Both systems are run the same way, from the same properties, so that a finding can be held against Apache Kafka.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from bench.systems.apache_kafka import java_command
from bench.systems.millbeck import cli_command, cli_environment
from nemesis.alerts import scrape
from nemesis.hosts import Host

CLUSTER_ID = "bmVtZXNpcy1vZi1taWxsYg"
CLIENT_PORT = 9092
CONTROLLER_PORT = 9093
METRICS_PORT = 9404
STOP_TIMEOUT_S = 60.0


class MemberFailed(Exception):
    """A process did what it should not; the text carries the end of its log."""


class NemesisNode:
    """One node of the cluster on one host."""

    def __init__(
        self,
        system: str,
        host: Host,
        node_id: int,
        properties: Mapping[str, str],
        logs: Path,
        mutant: str | None = None,
    ) -> None:
        self.system = system
        self.mutant = mutant
        self.host = host
        self.node_id = node_id
        self.is_broker = "broker" in properties["process.roles"]
        self.is_controller = "controller" in properties["process.roles"]
        self.starts = 0
        self.process: subprocess.Popen[bytes] | None = None
        self._log_path = logs / f"{host.name}.log"
        self._config_path = logs / f"{host.name}.properties"
        self._config_path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))

    @property
    def metrics_url(self) -> str:
        return f"http://{self.host.address}:{METRICS_PORT}/metrics"

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def format(self) -> None:
        """Every directory that is not formatted yet."""
        arguments = ["format", "--cluster-id", CLUSTER_ID, "--config", str(self._config_path), "--ignore-formatted"]
        if self.system == "millbeck":
            command = cli_command("storage", *arguments)
        else:
            command = java_command("kafka.tools.StorageTool", *arguments, heap_mib=64)
        done = subprocess.run(command, env=self._environment(), capture_output=True, text=True, timeout=90)
        if done.returncode != 0:
            raise MemberFailed(f"{self.host.name} could not be formatted:\n{done.stdout}{done.stderr}")

    def start(self) -> None:
        assert not self.is_running, f"{self.host.name} is running already"
        if self.mutant is not None:
            command = [sys.executable, "-m", "nemesis.mutants", self.mutant, "server", "--verbose", "--config"]
            command.append(str(self._config_path))
        elif self.system == "millbeck":
            command = cli_command("server", "--verbose", "--config", str(self._config_path))
        else:
            command = java_command("kafka.Kafka", str(self._config_path), heap_mib=256, log_level="info")
        with self._log_path.open("ab") as log:
            log.write(f"--- start {self.starts} at {time.time():.3f}\n".encode())
            self.process = subprocess.Popen(
                self.host.command(*command),
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.starts += 1

    def _environment(self) -> dict[str, str]:
        return cli_environment() if self.system == "millbeck" else dict(os.environ)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait(30)
            self.process = None

    def pause(self) -> None:
        if self.is_running:
            assert self.process is not None
            self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        if self.is_running:
            assert self.process is not None
            self.process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """A controlled shutdown, awaited."""
        if self.process is None:
            return
        self.process.terminate()
        try:
            status = self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise MemberFailed(f"{self.host.name} did not stop in {STOP_TIMEOUT_S:.0f} s:\n{self.log_tail()}") from None
        self.process = None
        # Java's handler of SIGTERM ends with 143.
        if status not in (0, 143):
            raise MemberFailed(f"{self.host.name} ended with {status}:\n{self.log_tail()}")

    def power_cut(self) -> None:
        """The disk first, so that nothing the dying process might still write counts."""
        self.host.cut_power()
        self.kill()
        self.host.unmount()
        self.host.mount()

    def save_metrics(self) -> None:
        """What it says of itself, beside its log: for whoever looks why a run failed."""
        page = scrape(self.metrics_url) if self.system == "millbeck" and self.is_running else None
        if page is not None:
            self._log_path.with_suffix(".metrics").write_text(page)

    def check_alive(self) -> None:
        """A member nobody killed must be running."""
        if self.process is not None and (status := self.process.poll()) is not None:
            raise MemberFailed(f"{self.host.name} ended by itself with {status}:\n{self.log_tail()}")

    def log_tail(self, lines: int = 30) -> str:
        if not self._log_path.exists():
            return ""
        return "\n".join(self._log_path.read_text(errors="replace").splitlines()[-lines:])


class Cluster:
    """All members; leaving it ends every process."""

    def __init__(
        self,
        system: str,
        controllers: list[Host],
        brokers: list[Host],
        logs: Path,
        settings: Mapping[str, str],
        mutant: str | None = None,
    ) -> None:
        logs.mkdir(parents=True, exist_ok=True)
        hosts = list(dict.fromkeys([*controllers, *brokers]))
        ids = {host.name: node_id for node_id, host in enumerate(hosts, start=1)}
        voters = ",".join(f"{ids[host.name]}@{host.address}:{CONTROLLER_PORT}" for host in controllers)
        self.members = [
            NemesisNode(
                system,
                host,
                ids[host.name],
                _properties(host, ids[host.name], host in controllers, host in brokers, voters)
                | (_metrics(host) if system == "millbeck" else {})
                | dict(settings),
                logs,
                mutant,
            )
            for host in hosts
        ]
        self.bootstrap = ",".join(f"{host.address}:{CLIENT_PORT}" for host in brokers)

    def __enter__(self) -> Cluster:
        try:
            for member in self.members:
                member.format()
            for member in self.members:
                member.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members:
            member.resume()
            member.kill()

    @property
    def brokers(self) -> list[NemesisNode]:
        return [member for member in self.members if member.is_broker]

    @property
    def controllers(self) -> list[NemesisNode]:
        return [member for member in self.members if member.is_controller]


def _properties(host: Host, node_id: int, is_controller: bool, is_broker: bool, voters: str) -> dict[str, str]:
    roles = [role for role, has_it in (("broker", is_broker), ("controller", is_controller)) if has_it]
    listeners = []
    if is_broker:
        listeners.append(f"PLAINTEXT://{host.address}:{CLIENT_PORT}")
    if is_controller:
        listeners.append(f"CONTROLLER://{host.address}:{CONTROLLER_PORT}")
    properties = {
        "process.roles": ",".join(roles),
        "node.id": str(node_id),
        "controller.quorum.voters": voters,
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "listeners": ",".join(listeners),
        "log.dirs": ",".join(str(disk / "data") for disk in _disks(host)),
        "offsets.topic.replication.factor": "3",
        "default.replication.factor": "3",
        "min.insync.replicas": "2",
    }
    if is_broker:
        properties["inter.broker.listener.name"] = "PLAINTEXT"
    return properties


def _disks(host: Host) -> list[Path]:
    """The first is the one with the metadata."""
    return [host.disk, host.second_disk] if host.second_image.exists() else [host.disk]


def _metrics(host: Host) -> dict[str, str]:
    return {"metrics.http.host": host.address, "metrics.http.port": str(METRICS_PORT)}


assert sys.platform == "linux", "network namespaces and ext4 images are Linux's"
