"""A registry of the nodes that ``millbeck up`` runs for this user, so that commands in another terminal find them.

Each process writes a file into a directory that only the user can enter; files of ended processes are removed when they
are found. Without such a directory nothing is written, and the nodes run without it.
"""

from __future__ import annotations

import json
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Final

_SUFFIX: Final = ".json"
_SIZE_BYTES_MAX: Final = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """One running ``millbeck up``; ``socket`` is the path of its command socket, empty with a single node."""

    process_id: int
    data: str
    bootstrap: str
    socket: str = ""


def runtime_directory(environ: Mapping[str, str] = os.environ) -> str | None:
    """The user's directory, created on first use; None if others have access to it."""
    base = environ.get("XDG_RUNTIME_DIR")
    path = os.path.join(base, "millbeck") if base else os.path.join(tempfile.gettempdir(), f"millbeck-{os.getuid()}")
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        found = os.lstat(path)
    except OSError:
        return None
    is_private = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
    return path if is_private else None


@contextmanager
def announce(*, data: str, bootstrap: str, socket: str = "") -> Iterator[None]:
    """Register this process for other terminals within the block."""
    directory = runtime_directory()
    path = None if directory is None else os.path.join(directory, f"{os.getpid()}{_SUFFIX}")
    running = Running(process_id=os.getpid(), data=data, bootstrap=bootstrap, socket=socket)
    if path is not None:
        try:
            with open(path, "w", encoding="utf-8") as file:
                json.dump(asdict(running), file)
        except OSError:
            path = None
    try:
        yield
    finally:
        if path is not None:
            _remove(path)


def all_running(directory: str | None = None) -> list[Running]:
    """Every ``millbeck up`` of this user, by process id."""
    directory = directory or runtime_directory()
    if directory is None:
        return []
    found = []
    for name in sorted(os.listdir(directory)):
        if not name.endswith(_SUFFIX):
            continue
        path = os.path.join(directory, name)
        running = _read(path)
        if running is None or not _is_alive(running.process_id):
            _remove(path)
        else:
            found.append(running)
    return found


def _read(path: str) -> Running | None:
    try:
        with open(path, encoding="utf-8") as file:
            return Running(**json.loads(file.read(_SIZE_BYTES_MAX)))
    except (OSError, ValueError, TypeError):
        return None


def _is_alive(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
