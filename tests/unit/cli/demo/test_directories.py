"""The directory of a run of the demo."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import click
import pytest

from millbeck.cli.demo.directories import demo_directory

NO_SUCH_PROCESS = 4_194_305
"""One more than Linux gives."""


def test_runs_whose_process_is_gone_are_removed(tmp_path: Path) -> None:
    cache = tmp_path / "millbeck" / "demo"
    for name in (f"run-{NO_SUCH_PROCESS}", f"run-{os.getppid()}", "mine"):
        (cache / name).mkdir(parents=True)
    directory = demo_directory({"XDG_CACHE_HOME": str(tmp_path)})
    assert sorted(each.name for each in cache.iterdir()) == sorted(
        ["mine", f"run-{os.getpid()}", f"run-{os.getppid()}"]
    )
    assert directory == cache / f"run-{os.getpid()}"


def test_a_full_disk_is_told_before_anything_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=12_000_000))
    with pytest.raises(click.ClickException, match=r"12 MB free, and the demo needs 500 MB: .*XDG_CACHE_HOME"):
        demo_directory({"XDG_CACHE_HOME": str(tmp_path)})


def test_a_cache_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "millbeck").write_text("a file")
    with pytest.raises(click.ClickException, match="set XDG_CACHE_HOME"):
        demo_directory({"XDG_CACHE_HOME": str(tmp_path)})
