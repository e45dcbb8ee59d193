"""The clients of the suite: how each driver is started, and what its client does not have.

`lacks` names what a client cannot do, with the reason; a test that needs it is skipped with that reason, and
`test_drivers.py` checks that each driver refuses exactly what is listed here.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tools import peers

ANSWER_TIMEOUT_S = 100.0
ALL_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def _python_driver(module: str) -> Callable[[], list[str]]:
    return lambda: [sys.executable, "-m", f"tests.interop.drivers.{module}"]


def _kcat_command() -> list[str]:
    peers.peer_path("kcat")
    return _python_driver("kcat_driver")()


def _java_command() -> list[str]:
    classpath = f"{peers.peer_path('java-driver')}:{peers.peer_path('kafka')}/*"
    return ["java", "-Xmx512m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", classpath, "Driver"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """One Kafka client. `quirks` are known ways in which its answers differ, each used by name in a test."""

    name: str
    command: Callable[[], list[str]]
    python_path: Callable[[], list[str]] = list
    peer_names: tuple[str, ...] = ()
    codecs: tuple[str, ...] = ALL_CODECS
    lacks: Mapping[str, str] = field(default_factory=dict)
    quirks: frozenset[str] = frozenset()


_NO_ADMIN_TOOL = "kcat is a producer and a consumer, no admin tool"
_KCAT_LACKS = {
    "commit": _NO_ADMIN_TOOL,
    "committed": _NO_ADMIN_TOOL,
    "create_topic": _NO_ADMIN_TOOL,
    "describe_configs": _NO_ADMIN_TOOL,
    "alter_config": _NO_ADMIN_TOOL,
    "add_partitions": _NO_ADMIN_TOOL,
    "delete_topic": _NO_ADMIN_TOOL,
    "list_groups": _NO_ADMIN_TOOL,
    "describe_group": _NO_ADMIN_TOOL,
    "delete_group": _NO_ADMIN_TOOL,
    "delete_records": _NO_ADMIN_TOOL,
    "timestamps": "kcat sets no timestamps",
    "acknowledged": "kcat tells no offsets",
}

CLIENTS = {
    client.name: client
    for client in (
        Client(name="confluent-kafka", command=_python_driver("confluent_driver")),
        Client(
            name="kafka-python",
            command=_python_driver("kafka_python_driver"),
            python_path=lambda: [str(peers.peer_path("python-codecs"))],
            peer_names=("python-codecs",),
            lacks={"null headers": "kafka-python takes no header without a value"},
        ),
        Client(
            name="aiokafka",
            command=_python_driver("aiokafka_driver"),
            lacks={"delete_group": "aiokafka's admin client has no DeleteGroups"},
        ),
        Client(
            name="kcat",
            command=_kcat_command,
            peer_names=("kcat",),
            lacks=_KCAT_LACKS,
        ),
        Client(name="java", command=_java_command, peer_names=("kafka", "java-driver")),
        Client(name="franz-go", command=lambda: [str(peers.peer_path("franz-go"))], peer_names=("franz-go",)),
        Client(
            name="kafkajs",
            command=lambda: ["node", str(peers.peer_path("kafkajs"))],
            peer_names=("kafkajs",),
            codecs=("none", "gzip", "snappy"),
            lacks={"null headers": "kafkajs takes no header without a value"},
            quirks=frozenset({"headers grouped by name", "end offset when no record is that young"}),
        ),
    )
}


class DriverFailed(Exception):
    """The client answered with an error; `code` is Kafka's, where the client tells it."""

    def __init__(self, code: int | None, name: str, message: str) -> None:
        super().__init__(f"{name} ({code}): {message}")
        self.code = code


class NotSupported(Exception):
    """The driver has no such verb."""


class DriverSession:
    """One driver process. `ask` waits for the answer; `begin` and `finish` let two members work at once."""

    def __init__(self, client: Client, bootstrap: str) -> None:
        self.client = client
        self.process = subprocess.Popen(
            [*client.command(), bootstrap],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=peers.ROOT,
            env=os.environ | {"PYTHONPATH": os.pathsep.join([str(peers.ROOT), *client.python_path()])},
        )
        self._answers: queue.Queue[str] = queue.Queue(maxsize=64)
        self._complaints: list[str] = []
        threading.Thread(target=self._read_answers, daemon=True).start()
        threading.Thread(target=self._read_complaints, daemon=True).start()

    def _read_answers(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._answers.put(line)
        self._answers.put("")

    def _read_complaints(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._complaints = [*self._complaints[-40:], line]

    def begin(self, verb: str, **arguments: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"verb": verb, **arguments}) + "\n")
        self.process.stdin.flush()

    def finish(self, *, timeout_s: float = ANSWER_TIMEOUT_S) -> dict[str, Any]:
        try:
            line = self._answers.get(timeout=timeout_s)
        except queue.Empty:
            self.close()
            raise TimeoutError(f"{self.client.name} gave no answer in {timeout_s} s\n{self.complaints()}") from None
        if not line:
            raise RuntimeError(f"the driver of {self.client.name} ended\n{self.complaints()}")
        answer: dict[str, Any] = json.loads(line)
        if "unsupported" in answer:
            raise NotSupported(answer["unsupported"])
        if "error" in answer:
            raise DriverFailed(answer["error"]["code"], answer["error"]["name"], answer["error"]["message"])
        return answer

    def ask(self, verb: str, **arguments: Any) -> dict[str, Any]:
        self.begin(verb, **arguments)
        return self.finish()

    def complaints(self) -> str:
        return "".join(self._complaints)

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def close(self) -> None:
        """End the driver: end of input first, then its own pid."""
        if self.process.stdin is not None and not self.process.stdin.closed:
            try:
                self.process.stdin.close()
            except OSError:
                pass
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)
