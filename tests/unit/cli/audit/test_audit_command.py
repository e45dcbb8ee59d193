"""``millbeck audit`` on files: which events it shows, in which form, and that it follows rotation."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import click
import pytest
import yaml
from click.testing import Result

from millbeck.cli.audit.selection import Selection, parse_time, shown

Run = Callable[..., Result]
EVENTS = [
    {"time": "2026-11-19T10:00:00.000Z", "node": 1, "event": "login", "principal": "User:a", "host": "::1"},
    {
        "time": "2026-11-19T11:00:00.000Z",
        "node": 1,
        "event": "denied",
        "principal": "User:b",
        "resource": "TOPIC:orders",
    },
    {
        "time": "2026-11-19T12:00:00.000Z",
        "node": 2,
        "event": "denied",
        "principal": "User:b",
        "resource": "TOPIC:other",
        "repeated": 1204,
        "seconds": 60.0,
    },
    {"time": "2026-11-19T13:00:00.000Z", "node": 2, "event": "changed", "principal": "User:a", "before": 1, "after": 2},
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "audit.log"
    lines = [json.dumps(each) + "\n" for each in EVENTS]
    (tmp_path / "audit.log.2").write_text(lines[0])
    (tmp_path / "audit.log.1").write_text(lines[1])
    found.write_text("".join(lines[2:]) + '{"time": "cut')
    return found


def times(output: str) -> list[str]:
    return [line[11:13] for line in output.splitlines()]


def test_rotated_files_are_read_in_order(run: Run, path: Path) -> None:
    assert times(run("audit", "tail", "--file", str(path)).stdout) == ["10", "11", "12", "13"]
    assert times(run("audit", "tail", "--file", str(path), "-n", "2").stdout) == ["12", "13"]
    found = run("audit", "search", "--file", str(path), "-o", "json").stdout.splitlines()
    assert [json.loads(line) for line in found] == EVENTS
    assert list(yaml.safe_load_all(run("audit", "search", "--file", str(path), "-o", "yaml").stdout)) == EVENTS


SEARCHES = {
    "an event": (("--event", "denied"), ["11", "12"]),
    "two events": (("--event", "login", "--event", "changed"), ["10", "13"]),
    "a principal": (("--principal", "User:b"), ["11", "12"]),
    "a prefix": (("--resource", "TOPIC:or*"), ["11"]),
    "a time": (("--since", "2026-11-19T11:30+00:00", "--until", "2026-11-19T12:30+00:00"), ["12"]),
    "all of it": (("--event", "denied", "--resource", "TOPIC:other"), ["12"]),
}


@pytest.mark.parametrize(("options", "expected"), SEARCHES.values(), ids=SEARCHES.keys())
def test_searches(run: Run, path: Path, options: tuple[str, ...], expected: list[str]) -> None:
    assert times(run("audit", "search", "--file", str(path), *options).stdout) == expected


def test_nothing_found_is_exit_code_1(run: Run, path: Path) -> None:
    done = run("audit", "search", "--file", str(path), "--host", "10.0.0.1")
    assert (done.exit_code, done.output) == (1, "")


def test_repeats_are_told_as_a_number_and_escapes_are_harmless() -> None:
    assert shown(EVENTS[2]).endswith("[1,204 times in 60 s]")
    assert shown({**EVENTS[0], "principal": "User:\x1b[2J\n"}).isprintable()


def test_times_are_ago_or_iso() -> None:
    now = datetime(2026, 11, 19, 14, tzinfo=UTC)
    assert parse_time("90s", now, "--since") == "2026-11-19T13:58:30.000Z"
    assert parse_time("7d", now, "--since") == "2026-11-12T14:00:00.000Z"
    assert parse_time("2026-11-19T10:00:00+02:00", now, "--since") == "2026-11-19T08:00:00.000Z"
    for wrong in ("soon", "999999999d", "5"):
        with pytest.raises(click.UsageError, match="--since"):
            parse_time(wrong, now, "--since")
    assert Selection().takes(EVENTS[0])


def test_following_goes_on_after_a_rotation(path: Path) -> None:
    command = [sys.executable, "-m", "millbeck.cli.main", "audit", "tail", "-n", "1", "-f", "--file", str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert " 13:" in process.stdout.readline()
        path.rename(path.with_suffix(".moved"))
        path.write_text(json.dumps({**EVENTS[0], "time": "2026-11-19T15:00:00.000Z"}) + "\n")
        assert " 15:" in process.stdout.readline()
    finally:
        process.kill()
        process.communicate()


def test_wrong_options(run: Run, path: Path) -> None:
    assert "No such file" in run("audit", "tail", "--file", str(path) + "x").stderr
    assert "takes one --file" in run("audit", "tail", "-f", "--file", str(path), "--file", str(path)).stderr
    assert "--since" in run("audit", "search", "--file", str(path), "--since", "yesterday").stderr
