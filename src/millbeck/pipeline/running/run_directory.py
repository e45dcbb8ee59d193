"""The directory of a run: its process id, status, log and last failure.

Each pipeline has a directory by its name: ``status.json``, replaced atomically after each batch, ``log``, ``failure``
(the last one with its traceback), and the checkpoint unless it is elsewhere. A run holds a lock on ``lock``, so that a
pipeline cannot run twice and a killed run is detected.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

from millbeck.pipeline.errors import AlreadyRunning

_LOOKS_SECONDS_MAX: Final = 0.5
"""The time for which taking the lock is retried, because a process that only checks it holds it for a moment."""


def runs_directory(environ: Mapping[str, str] | None = None) -> Path:
    environ = os.environ if environ is None else environ
    named = environ.get("MILLBECK_PIPELINES")
    if named:
        return Path(named)
    state = environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "millbeck" / "pipelines"


def _lock(file: IO[str], kind: int) -> bool:
    """Try to take the lock without waiting; returns whether it succeeded."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class RunDirectory:
    def __init__(self, home: Path, name: str) -> None:
        self.name = name
        self.path = home / name

    @property
    def checkpoint(self) -> Path:
        return self.path / "checkpoint"

    @property
    def log(self) -> Path:
        return self.path / "log"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock of the run within the block; raises `AlreadyRunning`."""
        self.path.mkdir(parents=True, exist_ok=True)
        with open(self.path / "lock", "a+") as lock:
            ends_at = time.monotonic() + _LOOKS_SECONDS_MAX
            while not _lock(lock, fcntl.LOCK_EX):
                if time.monotonic() > ends_at:
                    raise AlreadyRunning(
                        f"the pipeline {self.name} runs already (process {self.process_id() or '?'});"
                        f" stop it with: millbeck pipeline stop {self.name}"
                    )
                time.sleep(0.02)
            yield

    def is_held(self) -> bool:
        """Whether a run holds the lock. Checks use a shared lock, so that they do not block each other."""
        try:
            with open(self.path / "lock", "a+") as lock:
                return not _lock(lock, fcntl.LOCK_SH)
        except OSError:
            return False

    def write_status(self, **status: Any) -> None:
        known = {**self.status(), **status, "at": time.time()}
        fresh = self.path / f"status.{os.getpid()}"
        fresh.write_text(json.dumps(known, indent=1), encoding="utf-8")
        fresh.replace(self.path / "status.json")

    def save_failure(self, error: BaseException) -> None:
        """Write the last failure with its full traceback to the file ``failure`` beside the log."""
        text = "".join(traceback.format_exception(error))
        (self.path / "failure").write_text(f"{time.strftime('%Y-%m-%d %H:%M:%S')}\n{text}", encoding="utf-8")

    def status(self) -> dict[str, Any]:
        """The status; empty if there is none yet or it cannot be read."""
        try:
            read = json.loads((self.path / "status.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return read if isinstance(read, dict) else {}

    def restarts(self) -> int:
        found = self.status().get("restarts")
        return found if isinstance(found, int) else 0

    def process_id(self) -> int | None:
        found = self.status().get("process")
        return found if isinstance(found, int) else None

    def state(self) -> str:
        """The state of the run: running, starting, waiting (to restart), stopped, failed, or killed (ended without
        writing a status)."""
        state = str(self.status().get("state", "stopped"))
        if state in ("running", "starting", "waiting") and not self.is_held():
            return "killed"
        return state


def all_runs(home: Path) -> list[RunDirectory]:
    if not home.is_dir():
        return []
    return [RunDirectory(home, path.name) for path in sorted(home.iterdir()) if (path / "status.json").exists()]
