"""A child that is killed is followed by another; one that says how it ended is not; a stop reaches it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from millbeck.pipeline.running.run_directory import RunDirectory

SCRIPT = """
import os, pathlib, signal, sys, time
from millbeck.pipeline.running import backoff, supervisor
from millbeck.pipeline.running.run_directory import RunDirectory
backoff.FIRST_SECONDS = 0.01
directory = RunDirectory(pathlib.Path(sys.argv[1]), "kept")
exec(sys.argv[4])
with directory.held():
    attempts_max = int(sys.argv[2])
    log = lambda text: print(text, flush=True)
    status = supervisor.Supervisor(directory, backoff.RestartBackoff(attempts_max), report=log).keep()
    if status is not None:
        sys.exit(status)
    with open(sys.argv[1] + "/children", "a") as children:
        children.write(f"{os.getpid()}\\n")
    with open(sys.argv[1] + "/children") as children:
        number = len(children.readlines())
    exec(sys.argv[3])
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def started(home: Path) -> Iterator[list[subprocess.Popen[str]]]:
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        process.kill()
        process.wait()


def _start(
    started: list[subprocess.Popen[str]], home: Path, child: str, attempts_max: int = 5, before: str = ""
) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", SCRIPT, str(home), str(attempts_max), child, before]
    started.append(subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True))
    return started[-1]


def _children(home: Path, at_least: int) -> list[int]:
    ends_at = time.monotonic() + 20
    while time.monotonic() < ends_at:
        if (home / "children").exists():
            lines = (home / "children").read_text().split()
            if len(lines) >= at_least:
                return [int(line) for line in lines]
        time.sleep(0.01)
    raise AssertionError(f"no {at_least} children were started")


def _is_alive(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_a_killed_child_is_started_again(started: list[subprocess.Popen[str]], home: Path) -> None:
    process = _start(started, home, "number == 3 or os.kill(os.getpid(), signal.SIGKILL)")
    assert process.wait(20) == 0
    assert len(_children(home, 3)) == 3
    assert RunDirectory(home, "kept").restarts() == 2


def test_a_child_may_ask_to_be_started_again(started: list[subprocess.Popen[str]], home: Path) -> None:
    process = _start(started, home, "sys.exit(supervisor.LOST if number == 1 else 7)")
    assert process.wait(20) == 7
    assert len(_children(home, 2)) == 2


def test_children_without_progress_are_lost_only_so_often(started: list[subprocess.Popen[str]], home: Path) -> None:
    process = _start(started, home, "os.kill(os.getpid(), signal.SIGKILL)", attempts_max=2)
    assert process.wait(20) == 1
    assert len(_children(home, 3)) == 3
    assert RunDirectory(home, "kept").state() == "failed"


def test_progress_wipes_the_slate(started: list[subprocess.Popen[str]], home: Path) -> None:
    child = "directory.write_status(progress=number); number == 5 or os.kill(os.getpid(), signal.SIGKILL)"
    process = _start(started, home, child, attempts_max=1)
    assert process.wait(20) == 0
    assert len(_children(home, 5)) == 5


def test_a_stop_reaches_the_child_and_its_end_is_the_keepers(started: list[subprocess.Popen[str]], home: Path) -> None:
    child = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(3)); print('ready', flush=True); time.sleep(60)"
    process = _start(started, home, child)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 3
    assert len(_children(home, 1)) == 1


def test_a_child_that_knew_of_no_stop_yet_is_not_started_again(
    started: list[subprocess.Popen[str]], home: Path
) -> None:
    process = _start(started, home, "print('ready', flush=True); time.sleep(60)")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0
    assert RunDirectory(home, "kept").state() == "stopped"


def test_a_stop_between_the_fork_and_the_handlers_of_the_work_is_not_lost(
    started: list[subprocess.Popen[str]], home: Path
) -> None:
    before = (
        "become = supervisor._become_child\n"
        "def stopped_first(*given):\n"
        "    os.kill(os.getppid(), signal.SIGTERM)\n"
        "    time.sleep(0.3)\n"
        "    become(*given)\n"
        "supervisor._become_child = stopped_first\n"
    )
    process = _start(started, home, "time.sleep(60)", before=before)
    assert process.wait(20) == 0
    assert RunDirectory(home, "kept").state() == "stopped"


def test_the_run_is_held_by_a_child_that_lost_its_supervisor_and_ends(
    started: list[subprocess.Popen[str]], home: Path
) -> None:
    child = (
        "signal.signal(signal.SIGTERM, lambda *_: open(sys.argv[1] + '/told', 'w').close());"
        "print('ready', flush=True); time.sleep(0.2); time.sleep(60)"
    )
    process = _start(started, home, child)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    (pid,) = _children(home, 1)
    try:
        process.kill()
        process.wait(20)
        ends_at = time.monotonic() + 20
        while not (home / "told").exists() and time.monotonic() < ends_at:
            time.sleep(0.01)
        assert (home / "told").exists()
        assert _is_alive(pid)
        assert RunDirectory(home, "kept").is_held()
    finally:
        os.kill(pid, signal.SIGKILL)
