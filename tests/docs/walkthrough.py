"""Does what a page says, from top to bottom, in a directory of its own, with a node on a free port."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.docs import interpreter
from tests.docs.pages import CONSOLE, PYTHON, ROOT, Block, Command, missing_line

COMMAND_SECONDS_MAX: Final = 300
START_SECONDS_MAX: Final = 60
STOP_SECONDS_MAX: Final = 10
DIRECTORIES: Final = re.compile(r"(?<![\w.:/-])/(etc|opt|var|backup)/(?=[\w.-])")
"""Below the page's directory instead."""
INSTALLS: Final = re.compile(r"(\S*/)?pip install |python3 -m venv |make ")
"""What is installed already."""
OTHERS: Final = ("kcat", "curl")
"""Programs of others, whose commands are left out where they are not installed."""
KEEPS_RUNNING: Final = re.compile(r"millbeck (up(?! --check)(?! (status|stop|start|kill)\b)|server)\b")
READY: Final = re.compile(r"Ctrl-C stops|^listening on ", re.MULTILINE)
PORTS: Final = {
    "9092": re.compile(r"bootstrap +[\w.]+:(\d+)"),
    "9404": re.compile(r"metrics +http://127\.0\.0\.1:(\d+)"),
    "8081": re.compile(r"registry +http://127\.0\.0\.1:(\d+)"),
}
"""The ports in the pages, and where the screen of `millbeck up` has those that it chose."""


class PageFailed(Exception):
    """A block does not do what the page says."""


class Background:
    """A command that keeps running; what it prints is kept."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.output = ""
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.output += line

    def wait_ready(self) -> None:
        deadline_s = time.monotonic() + START_SECONDS_MAX
        while not READY.search(self.output):
            if self.process.poll() is not None or time.monotonic() > deadline_s:
                raise PageFailed(f"{self.process.args!r} does not start:\n{self.output}")
            time.sleep(0.02)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(START_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            raise
        self._thread.join()


class Walkthrough:
    def __init__(self, directory: Path) -> None:
        self._root = directory
        self._work = directory / "work"
        self._work.mkdir()
        self._state = directory / "state.sh"
        self._state.write_text("")
        self._bin = directory / "bin"
        self._write_programs()
        self._ports = {
            name: str(port) for name, port in zip(("9093", *PORTS), _free_ports(1 + len(PORTS)), strict=True)
        }
        self._python: subprocess.Popen[str] | None = None
        self._block_count = 0
        self._running: Background | None = None
        self._test_count = 0
        self.left_out: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._python is not None:
            # It ends at the end of its input; what a block left open must not hold it up.
            assert self._python.stdin is not None
            self._python.stdin.close()
            try:
                self._python.wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                self._python.kill()
                self._python.wait()
        self._stop()

    def run(self, block: Block) -> None:
        """Raises `PageFailed`."""
        if block.reason is not None:
            return
        try:
            if block.file_name is not None:
                self._write(block.file_name, block.text)
            elif block.language == CONSOLE:
                for command in block.commands():
                    self._run(command)
            elif block.language == PYTHON:
                self._execute(block)
        except PageFailed as error:
            raise PageFailed(f"{block}: {error}") from error

    def start_node(self) -> None:
        """For a page that takes a running node for granted."""
        self._start("millbeck up --memory --port 0")

    # Files

    def _write_programs(self) -> None:
        self._bin.mkdir()
        for name, arguments in {"millbeck": "-m millbeck.cli.main ", "python": "", "python3": ""}.items():
            path = self._bin / name
            path.write_text(f'#!/bin/sh\nexec {sys.executable} {arguments}"$@"\n')
            path.chmod(0o755)
        installed = self._root / "opt" / "millbeck"
        installed.mkdir(parents=True)
        (installed / "bin").symlink_to(self._bin)

    def _write(self, name: str, text: str) -> None:
        path = Path(self._here(name)) if name.startswith("/") else self._work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self._here(text), encoding="utf-8")
        if path.suffix == ".py":
            compile(text, name, "exec")

    def _here(self, text: str) -> str:
        """The text with the ports of this run and with directories below its own."""
        for name, port in self._ports.items():
            text = re.sub(rf"(?<=:){name}\b", port, text)
        return DIRECTORIES.sub(lambda found: f"{self._root}/{found[1]}/", text)

    # Commands

    def _run(self, command: Command) -> None:
        if self._is_left_out(command.line):
            self.left_out.append(command.line)
            return
        if KEEPS_RUNNING.match(command.line):
            self._start(command.line)
            assert self._running is not None
            output = self._running.output
        else:
            output = self._output_of(self._here(command.line))
        missing = missing_line(tuple(map(self._here, command.output)), output)
        if missing is not None:
            raise PageFailed(f"`{command.line}` does not print `{missing}` but\n{output}")

    def _is_left_out(self, line: str) -> bool:
        is_missing = any(
            re.search(rf"\b{name}\b", line) and not _is_on_path(name, self._environment()) for name in OTHERS
        )
        return is_missing or INSTALLS.match(line) is not None

    def _output_of(self, line: str) -> str:
        # What a command exports, and where it changes to, holds for those after it, as in a terminal.
        script = (
            f'. "{self._state}"\n{line}\ncode=$?\n'
            # Which brokers there are is not for a command to remember.
            f'{{ export -p | grep -v MILLBECK_BOOTSTRAP; printf "cd %q\\n" "$PWD"; }} > "{self._state}"\nexit $code'
        )
        process = subprocess.Popen(
            ["bash", "-c", script],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self._work,
            env=self._environment(),
            start_new_session=True,
        )
        try:
            output, errors = process.communicate(timeout=COMMAND_SECONDS_MAX)
        except subprocess.TimeoutExpired as error:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise PageFailed(f"`{line}` does not end within {COMMAND_SECONDS_MAX} seconds") from error
        if process.returncode:
            raise PageFailed(f"`{line}` ends with exit code {process.returncode}:\n{output}{errors}")
        return output + errors

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("MILLBECK_", "KAFKA_"))}
        return kept | {
            "PATH": f"{self._bin}:{os.environ['PATH']}",
            "PYTHONPATH": f"{ROOT / 'src'}",
            "MILLBECK_PURE": "1",
            "MILLBECK_BOOTSTRAP": f"127.0.0.1:{self._ports['9092']}",
            "HOME": str(self._root),
            "XDG_CONFIG_HOME": str(self._root / "config"),
            "XDG_RUNTIME_DIR": str(self._root),
        }

    def _start(self, line: str) -> None:
        self._stop()
        if line.startswith("millbeck up"):
            line = re.sub(r" --port \d+", "", line).replace("millbeck up", "millbeck up --port 0", 1)
        command = ["bash", "-c", f'. "{self._state}"\nexec {self._here(line)}']
        self._running = Background(
            subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                cwd=self._work,
                env=self._environment(),
                start_new_session=True,
            )
        )
        self._running.wait_ready()
        for name, pattern in PORTS.items():
            if found := pattern.search(self._running.output):
                self._ports[name] = found[1]

    def _stop(self) -> None:
        if self._running is not None:
            running, self._running = self._running, None
            running.stop()

    # Python

    def _execute(self, block: Block) -> None:
        if re.search(r"^ *(async )?def test_", block.text, re.MULTILINE):
            self._test(block)
            return
        if self._python is None:
            self._python = self._start_python()
        self._block_count += 1
        path = self._root / f"block_{self._block_count}.py"
        path.write_text(self._here(block.text), encoding="utf-8")
        assert self._python.stdin is not None
        assert self._python.stdout is not None
        self._python.stdin.write(f"{path}\n")
        self._python.stdin.flush()
        said = ""
        for line in self._python.stdout:
            if line.startswith(interpreter.DONE):
                return
            if line.startswith(interpreter.FAILED):
                break
            said += line
        raise PageFailed(f"it fails:\n{said}")

    def _start_python(self) -> subprocess.Popen[str]:
        environment = self._environment()
        return subprocess.Popen(
            [sys.executable, "-m", "tests.docs.interpreter"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=self._work,
            env=environment | {"PYTHONPATH": f"{environment['PYTHONPATH']}:{ROOT}"},
        )

    def _test(self, block: Block) -> None:
        self._test_count += 1
        name = f"test_{self._test_count}.py"
        (self._work / name).write_text(self._here(block.text), encoding="utf-8")
        (self._work / "pytest.ini").write_text("[pytest]\n")
        self._output_of(f"python -m pytest -q --strict-markers {name}")


def _is_on_path(name: str, environment: dict[str, str]) -> bool:
    return any(os.access(Path(each) / name, os.X_OK) for each in environment["PATH"].split(":"))


def _free_ports(count: int) -> Sequence[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def starts_a_node(blocks: Sequence[Block]) -> bool:
    """Whether the page starts a node before it uses one."""
    lines = [
        command.line
        for block in blocks
        if block.language == CONSOLE and block.reason is None
        for command in block.commands()
    ]
    return any(map(KEEPS_RUNNING.match, lines))
