"""Spark's own servers on this machine, from the pip package alone: a master with a worker, and a Connect server."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyspark

from millbeck.pipeline.java import find_java

START_SECONDS_MAX = 180.0
DEMO_SECONDS_MAX = 560.0
HOST = "127.0.0.1"


class Daemon:
    """A process of Spark's, and what it has said."""

    def __init__(self, kind: str, arguments: list[str], environment: Mapping[str, str]) -> None:
        home = Path(pyspark.__file__).parent
        self.lines: list[str] = []
        self._process = subprocess.Popen(
            [str(home / "bin" / "spark-class"), f"org.apache.spark.{kind}", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "SPARK_HOME": str(home), **environment},
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stderr is not None
        self.lines.extend(self._process.stderr)

    def await_line(self, pattern: str) -> re.Match[str]:
        ends_at = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < ends_at:
            for line in list(self.lines):
                found = re.search(pattern, line)
                if found is not None:
                    return found
            if self._process.poll() is not None:
                break
            time.sleep(0.1)
        raise AssertionError(f"no line like {pattern!r} among:\n{''.join(self.lines)}")

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()


class Standalone:
    def __init__(self, master: Daemon, worker: Daemon, url: str) -> None:
        self.master = master
        self.worker = worker
        self.url = url


def run_demo(master: str, environment: Mapping[str, str]) -> str:
    """What the demo prints there, when all that it wrote was right."""
    command = ("demo", "--master", master, "--seconds", "15", "--orders-per-second", "50")
    done = subprocess.run(
        [sys.executable, "-m", "millbeck.cli.main", *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=DEMO_SECONDS_MAX,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert "each equals the recount" in done.stdout
    return done.stdout


@contextmanager
def standalone(directory: Path) -> Iterator[Standalone]:
    """Both ready; what applications leave is in ``directory``."""
    environment = _environment(directory)
    master = Daemon("deploy.master.Master", ["--host", HOST, "--port", "0", "--webui-port", "0"], environment)
    try:
        url = master.await_line(r"Starting Spark master at (spark://\S+)").group(1)
        arguments = [url, "--host", HOST, "--webui-port", "0", "--cores", "2", "--memory", "1g"]
        worker = Daemon("deploy.worker.Worker", [*arguments, "--work-dir", str(directory / "work")], environment)
        try:
            worker.await_line("Successfully registered with master")
            yield Standalone(master, worker, url)
        finally:
            worker.stop()
    finally:
        master.stop()


@contextmanager
def connect_server(directory: Path) -> Iterator[str]:
    """Where it listens, as ``sc://host:port``."""
    settings = {
        "spark.connect.grpc.binding.address": HOST,
        "spark.connect.grpc.binding.port": "0",
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
    }
    given = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    arguments = ["--master", "local[2]", *given, "--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    environment = {**_environment(directory), "SPARK_DAEMON_MEMORY": "1g", "PYSPARK_PYTHON": sys.executable}
    server = Daemon("deploy.SparkSubmit", [*arguments, "spark-internal"], environment)
    try:
        yield "sc://" + server.await_line(r"Spark Connect server started at: (\S+:[0-9]+)").group(1)
    finally:
        server.stop()


def _environment(directory: Path) -> dict[str, str]:
    log4j = directory / "log4j2.properties"
    log4j.write_text(
        "rootLogger.level = info\nrootLogger.appenderRef.stderr.ref = console\n"
        "appender.console.type = Console\nappender.console.name = console\nappender.console.target = SYSTEM_ERR\n"
        "appender.console.layout.type = PatternLayout\nappender.console.layout.pattern = %p %c{1}: %m%n\n"
    )
    return {
        "JAVA_HOME": str(find_java()),
        "SPARK_LOCAL_IP": HOST,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": f"-XX:+UseSerialGC -Dlog4j2.configurationFile={log4j}",
    }
