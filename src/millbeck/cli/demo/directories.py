"""The directories of the demo's log and checkpoint: in the user's cache, one for each run.

They remain when the demo ends, for inspection; the next demo removes those whose process has ended.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import click

FREE_BYTES_MIN: Final = 500_000_000
_OF_A_RUN: Final = re.compile(r"run-([0-9]+)")


def demo_directory(environ: Mapping[str, str]) -> Path:
    """Create a directory for this process; raises `click.ClickException` if the disk is full."""
    cache = Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "millbeck" / "demo"
    try:
        cache.mkdir(parents=True, exist_ok=True)
        _remove_old_runs(cache)
        free_bytes = shutil.disk_usage(cache).free
        if free_bytes < FREE_BYTES_MIN:
            raise click.ClickException(
                f"{cache} has {free_bytes // 1_000_000} MB free, and the demo needs {FREE_BYTES_MIN // 1_000_000} MB: "
                "free some, or set XDG_CACHE_HOME to a directory on another disk"
            )
        directory = cache / f"run-{os.getpid()}"
        directory.mkdir()
    except OSError as error:
        raise click.ClickException(f"{error.filename}: {error.strerror}; set XDG_CACHE_HOME") from error
    return directory


def _remove_old_runs(cache: Path) -> None:
    for directory in cache.iterdir():
        found = _OF_A_RUN.fullmatch(directory.name)
        if found and (int(found[1]) == os.getpid() or not _is_alive(int(found[1]))):
            shutil.rmtree(directory, ignore_errors=True)


def _is_alive(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
