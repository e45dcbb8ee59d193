from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from millbeck.cli import doctor
from millbeck.cli.doctor import line_of
from millbeck.cli.findings import FAIL, Finding


def test_a_line_says_what_to_do() -> None:
    finding = Finding(status=FAIL, subject="port 1", detail="not allowed", advice="choose another")
    assert line_of(finding) == "fail  port 1: not allowed\n      -> choose another"


def test_the_report_covers_machine_directory_and_cluster(run: Callable[..., Result], tmp_path: Path) -> None:
    done = run("doctor", "--data", str(tmp_path), "--port", "0", "-b", "127.0.0.1:1", "-o", "json")
    assert done.exit_code == 0
    shown = json.loads(done.stdout)
    subjects = [each["subject"] for each in shown]
    assert subjects[:4] == ["python", "data path", "open files", "port 0"]
    assert f"data {tmp_path}" in subjects
    assert shown[-1]["subject"] == "cluster at 127.0.0.1:1"
    assert shown[-1]["status"] == "warn"
    assert "millbeck up" in shown[-1]["advice"]


def test_a_failure_is_the_exit_code(
    run: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "check_python", lambda: Finding(status=FAIL, subject="python", detail="2.7"))
    done = run("doctor", "--data", str(tmp_path), "--port", "0", "-b", "127.0.0.1:1")
    assert done.exit_code == 1
    assert done.stdout.startswith("fail  python: 2.7\n")
