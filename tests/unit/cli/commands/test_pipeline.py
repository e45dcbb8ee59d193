"""The pipeline command without Spark: what runs are known, and what is said of files that are wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from millbeck.cli.commands import pipeline
from millbeck.cli.commands.pipeline import command
from millbeck.pipeline.running.run_directory import RunDirectory


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MILLBECK_PIPELINES", str(tmp_path))
    return tmp_path


def _said(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(command, list(arguments))
    return result.exit_code, result.output


def _known(home: Path, name: str, **status: object) -> RunDirectory:
    directory = RunDirectory(home, name)
    with directory.held():
        directory.write_status(**status)
    return directory


def test_runs_are_listed_with_how_they_do(home: Path) -> None:
    """The lag that a run remembers is not shown: it is that of its last batch, and here no cluster is known to ask."""
    progress = {"batch": 3, "rows_per_second": 12.4, "lag": 5}
    _known(home, "revenue", state="running", file="/x/revenue.py", progress=progress)
    code, said = _said("list", "-o", "json")
    assert code == 0
    assert json.loads(said) == [
        {
            "name": "revenue",
            "state": "killed",
            "process": None,
            "batch": 3,
            "rows/s": 12,
            "lag": None,
            "file": "/x/revenue.py",
        }
    ]


def test_a_status_in_full(home: Path) -> None:
    _known(home, "revenue", state="failed", error="no broker", progress={"batch": 3})
    code, said = _said("status", "revenue")
    assert code == 0
    assert "no broker" in said
    assert "batch" in said


def test_a_name_that_is_not_known_is_guessed(home: Path) -> None:
    _known(home, "revenue", state="stopped")
    code, said = _said("status", "revenu")
    assert code != 0
    assert "revenue" in said


def test_a_record_is_left_out_from_the_next_start_on(home: Path) -> None:
    directory = _known(home, "revenue", state="failed", topics=["orders"], tables=["regions"])
    assert _said("skip", "revenue", "orders:0:12") == (0, "revenue skips orders:0:12\n")
    assert _said("skip", "revenue", "orders:1:3") == (0, "revenue skips orders:0:12, orders:1:3\n")
    with directory.held():
        code, said = _said("skip", "revenue", "orders:0:12")
    assert (code, "millbeck pipeline restart revenue" in said) == (0, True)
    assert "revenue does not read other; it reads orders, regions" in _said("skip", "revenue", "other:0:1")[1]
    assert "expected TOPIC:PARTITION:OFFSET" in _said("skip", "revenue", "orders-0")[1]


def test_what_does_not_run_cannot_be_stopped(home: Path) -> None:
    _known(home, "revenue", state="running", process=1)
    code, said = _said("stop", "revenue")
    assert code != 0
    assert "is not running" in said


def test_a_run_is_stopped_by_a_signal(home: Path) -> None:
    script = (
        "import pathlib, signal, sys, os, time\n"
        "from millbeck.pipeline.running.run_directory import RunDirectory\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit())\n"
        "directory = RunDirectory(pathlib.Path(sys.argv[1]), 'held')\n"
        "with directory.held():\n"
        "    directory.write_status(state='running', process=os.getpid())\n"
        "    print('held', flush=True)\n"
        "    time.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script, str(home)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == b"held\n"
        code, said = _said("stop", "held")
        assert (code, said) == (0, "held stopped\n")
    finally:
        process.kill()
        process.wait()


def test_a_run_that_never_came_to_its_file_is_not_restarted(home: Path) -> None:
    _known(home, "revenue", state="starting")
    code, said = _said("restart", "revenue")
    assert (code, said) == (
        1,
        "Error: revenue cannot be restarted, it was never fully started: use millbeck pipeline run\n",
    )


def test_the_last_lines_of_a_log(home: Path) -> None:
    directory = _known(home, "revenue", state="running")
    directory.log.write_text("".join(f"line {number}\n" for number in range(10)))
    assert _said("logs", "revenue", "-n", "2") == (0, "line 8\nline 9\n")


def test_a_run_without_a_log_says_so(home: Path) -> None:
    _known(home, "revenue", state="running")
    code, said = _said("logs", "revenue")
    assert code != 0
    assert "has no log" in said


@pytest.mark.parametrize("verb", ["run", "validate"])
def test_a_file_that_is_wrong_is_one_line(home: Path, verb: str) -> None:
    code, said = _said(verb, "nowhere.py")
    assert code != 0
    assert "no such file" in said
    assert "Traceback" not in said


def test_what_spark_refuses_is_one_line() -> None:
    refused = type("AnalysisException", (Exception,), {"__module__": "pyspark.errors.exceptions.captured"})
    with pytest.raises(click.ClickException) as raised, pipeline._one_line_errors():
        raise refused(
            "[FIELD_NOT_FOUND] No such struct field `cent`. SQLSTATE: 42704; line 1 pos 0\nJVM stack:\n\tat x"
        )
    assert raised.value.message == "[FIELD_NOT_FOUND] No such struct field `cent`; line 1 pos 0"
    with pytest.raises(ZeroDivisionError), pipeline._one_line_errors():
        raise ZeroDivisionError
