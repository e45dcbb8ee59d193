"""What a run leaves: one runs at a time, and a killed one is told from one that lives."""

from __future__ import annotations

import fcntl
import threading
from pathlib import Path

import pytest

from millbeck.pipeline.errors import AlreadyRunning
from millbeck.pipeline.running.run_directory import RunDirectory, all_runs, runs_directory


def test_only_one_runs_at_a_time(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path, "p")
    with directory.held():
        directory.write_status(process=4711)
        with pytest.raises(AlreadyRunning, match="process 4711"), RunDirectory(tmp_path, "p").held():
            raise AssertionError("held twice")
        assert directory.is_held()
    assert not directory.is_held()


def test_those_who_look_are_not_taken_for_a_run(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path, "p")
    directory.path.mkdir()
    with open(directory.path / "lock", "a+") as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        assert not directory.is_held()
        ends = threading.Timer(0.1, fcntl.flock, (looking, fcntl.LOCK_UN))
        ends.start()
        with directory.held():
            assert directory.is_held()
        ends.join()


def test_a_run_that_ended_without_a_word_was_killed(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path, "p")
    with directory.held():
        directory.write_status(state="running")
        assert directory.state() == "running"
    assert directory.state() == "killed"
    directory.write_status(state="stopped")
    assert directory.state() == "stopped"


def test_what_is_said_later_adds_to_what_was_said(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path, "p")
    with directory.held():
        directory.write_status(state="running", file="x.py")
        directory.write_status(progress={"batch": 3})
    assert directory.status()["file"] == "x.py"
    assert directory.status()["progress"] == {"batch": 3}


def test_a_status_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path, "p")
    directory.path.mkdir()
    (directory.path / "status.json").write_text("{half")
    assert directory.status() == {}
    assert directory.process_id() is None


def test_runs_are_listed_by_name(tmp_path: Path) -> None:
    for name in ("b", "a"):
        directory = RunDirectory(tmp_path, name)
        with directory.held():
            directory.write_status(state="running")
    (tmp_path / "stray").mkdir()
    assert [run.name for run in all_runs(tmp_path)] == ["a", "b"]
    assert all_runs(tmp_path / "nowhere") == []


def test_where_runs_live() -> None:
    assert runs_directory({"MILLBECK_PIPELINES": "/x"}) == Path("/x")
    assert runs_directory({"XDG_STATE_HOME": "/s"}) == Path("/s/millbeck/pipelines")


def test_the_last_failure_is_kept_in_full(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path, "kept")
    with directory.held():
        directory.save_failure(ValueError("first"))
        directory.save_failure(ValueError("line one\nline two"))
    text = (directory.path / "failure").read_text()
    assert "ValueError: line one\nline two" in text
    assert "first" not in text
