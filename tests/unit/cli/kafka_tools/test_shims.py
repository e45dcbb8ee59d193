from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from click.testing import Result

from millbeck.cli.kafka_tools.tools import TOOLS

Run = Callable[..., Result]


def test_executables_are_written_for_every_tool_with_and_without_a_suffix(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "bin dir"
    done = run("shims", "install", str(folder))
    assert done.exit_code == 0, done.output
    assert {path.name for path in folder.iterdir()} == {f"{name}{end}" for name in TOOLS for end in ("", ".sh")}
    assert all(os.access(path, os.X_OK) for path in folder.iterdir())
    assert "add it to your PATH" in done.stderr
    shown = subprocess.run(
        ["kafka-topics.sh", "--list"],
        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert (shown.returncode, shown.stdout) == (1, "")
    assert shown.stderr == "kafka-topics: --bootstrap-server is needed (see kafka-topics --help)\n"


def test_installing_again_replaces_ours_and_spares_what_is_not_ours(run: Run, tmp_path: Path) -> None:
    assert run("shims", "install", str(tmp_path)).exit_code == 0
    assert run("shims", "install", str(tmp_path)).exit_code == 0
    (tmp_path / "kafka-topics.sh").write_text("#!/bin/bash\n# Kafka's own\n")
    refused = run("shims", "install", str(tmp_path))
    assert refused.exit_code == 1
    assert "not written by this command (kafka-topics.sh, 1 in all)" in refused.stderr
    assert (tmp_path / "kafka-topics.sh").read_text().endswith("Kafka's own\n")
    assert run("shims", "remove", str(tmp_path)).stdout == f"deleted {2 * len(TOOLS) - 1} executables from {tmp_path}\n"
    assert [path.name for path in tmp_path.glob("kafka-*")] == ["kafka-topics.sh"]
    assert run("shims", "install", str(tmp_path), "--force").exit_code == 0
    assert "millbeck" in (tmp_path / "kafka-topics.sh").read_text()


def test_a_link_is_not_followed(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.write_text("kept")
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "kafka-acls").symlink_to(target)
    assert "not written by this command (kafka-acls" in run("shims", "install", str(folder)).stderr
    assert run("shims", "install", str(folder), "--force").exit_code == 0
    assert target.read_text() == "kept"
    assert not (folder / "kafka-acls").is_symlink()


def test_a_directory_that_cannot_be_made_is_one_line(fails: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert fails("shims", "install", str(tmp_path / "file")).endswith(("File exists", "Not a directory"))


def test_the_tools_are_listed(run: Run) -> None:
    lines = run("shims", "list").stdout.splitlines()
    assert lines[0].split() == ["TOOL", "RUNS"]
    assert "kafka-get-offsets             millbeck topic offsets" in lines
