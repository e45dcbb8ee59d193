"""What a run leaves for those who look: who runs it, how it is doing, what it said.

Each pipeline has a directory by its name: ``status.json``, replaced as a whole after each batch, ``log``, ``failure``
(the last one in full), and the checkpoint where none was named. A run holds a lock on ``lock``, so that nobody starts
the same pipeline twice and a run that was killed is not taken for one that lives.
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
"""Somebody who only looks whether it runs has the lock for a moment."""


def runs_home(environ: Mapping[str, str] | None = None) -> Path:
    environ = os.environ if environ is None else environ
    named = environ.get("MILLBECK_PIPELINES")
    if named:
        return Path(named)
    state = environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "millbeck" / "pipelines"


def _lock(file: IO[str], kind: int) -> bool:
    """Whether it was to be had, now."""
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
        """For as long as the run lasts; raises `AlreadyRunning`."""
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
        """Those who look share the lock for that moment, so that they do not see each other."""
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

    def keep_failure(self, error: BaseException) -> None:
        """All that is known of the last failure, for those whom one line does not help; ``failure`` beside the log."""
        text = "".join(traceback.format_exception(error))
        (self.path / "failure").write_text(f"{time.strftime('%Y-%m-%d %H:%M:%S')}\n{text}", encoding="utf-8")

    def status(self) -> dict[str, Any]:
        """Empty when there is none yet, or none that can be read."""
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
        """running, starting, waiting (to try again), stopped, failed, or killed when it ended without a word."""
        said = str(self.status().get("state", "stopped"))
        if said in ("running", "starting", "waiting") and not self.is_held():
            return "killed"
        return said


def all_runs(home: Path) -> list[RunDirectory]:
    if not home.is_dir():
        return []
    return [RunDirectory(home, path.name) for path in sorted(home.iterdir()) if (path / "status.json").exists()]
