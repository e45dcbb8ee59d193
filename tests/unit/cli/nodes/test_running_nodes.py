"""How another terminal finds what ``millbeck up`` runs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from millbeck.cli.nodes.running_nodes import all_running, announce, runtime_directory

NO_SUCH_PROCESS = 4_194_305


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "millbeck"


def test_what_runs_is_found_until_it_ends() -> None:
    with announce(data="/d", bootstrap="localhost:9092", socket="/s"):
        (found,) = all_running()
        assert (found.process_id, found.data, found.socket) == (os.getpid(), "/d", "/s")
    assert all_running() == []


def test_files_of_processes_that_are_gone_are_removed(directory: Path) -> None:
    assert runtime_directory() == str(directory)
    gone = {"process_id": NO_SUCH_PROCESS, "data": "/d", "bootstrap": "b"}
    for name, content in (("1.json", json.dumps(gone)), ("2.json", "{"), ("3.json", "[]"), ("4.sock", "")):
        (directory / name).write_text(content)
    assert all_running() == []
    assert [each.name for each in directory.iterdir()] == ["4.sock"]


def test_a_directory_that_others_can_enter_is_not_used(directory: Path) -> None:
    directory.mkdir(mode=0o755)
    directory.chmod(0o755)
    assert runtime_directory() is None
    with announce(data="/d", bootstrap="b"):
        assert list(directory.iterdir()) == []
        assert all_running() == []
