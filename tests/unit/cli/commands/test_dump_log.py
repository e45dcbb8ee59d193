from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from struct import pack

import pytest
import yaml
from click.testing import Result

from millbeck.cli.commands.dump_log import log_files_of, text_of
from millbeck.cli.records.log_files import PROBLEM, RECORD, DumpEntry
from millbeck.records import batch
from millbeck.records.record import Record

Run = Callable[..., Result]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    first = batch.build([Record(-1, 5, b"k", b"v1")], base_offset=0)
    second = batch.build([Record(-1, 6, None, b"v2")], base_offset=1)
    (tmp_path / "00000000000000000000.log").write_bytes(first + second)
    (tmp_path / "00000000000000000000.index").write_bytes(pack(">ii", 1, len(first)))
    (tmp_path / "leader-epoch-checkpoint").write_text("0\n0\n")
    return tmp_path


def test_a_directory_stands_for_the_files_of_its_log(directory: Path) -> None:
    names = [Path(path).name for path in log_files_of([str(directory)])]
    assert names == ["00000000000000000000.index", "00000000000000000000.log"]
    named = [str(directory / name) for name in ("two.log", "one.log")]
    for path in named:
        Path(path).touch()
    assert list(log_files_of(named)) == named


def test_the_text_has_the_form_of_kafkas_tool(run: Run, directory: Path) -> None:
    path = directory / "00000000000000000000.log"
    shown = run("dump-log", "--files", str(path), "--print-data-log")
    assert shown.exit_code == 0
    lines = shown.stdout.splitlines()
    assert lines[:2] == [f"Dumping {path}", "Log starting offset: 0"]
    assert lines[2].startswith("baseOffset: 0 lastOffset: 0 count: 1 baseSequence: -1 lastSequence: -1 producerId: -1")
    assert " isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty position: 0 " in lines[2]
    assert lines[2].endswith(" isvalid: true")
    assert (
        lines[3] == "| offset: 0 CreateTime: 5 keySize: 1 valueSize: 2 sequence: -1 headerKeys: [] key: k payload: v1"
    )
    assert lines[5] == "| offset: 1 CreateTime: 6 keySize: -1 valueSize: 2 sequence: -1 headerKeys: [] payload: v2"


def test_json_is_an_object_to_a_line(run: Run, directory: Path) -> None:
    lines = run("dump-log", str(directory), "--deep-iteration", "-o", "json").stdout.splitlines()
    shown = [json.loads(line) for line in lines]
    documents = run("dump-log", str(directory), "--deep-iteration", "-o", "yaml").stdout
    assert list(yaml.safe_load_all(documents)) == shown
    assert [each["entry"] for each in shown] == ["entry", "batch", "record", "batch", "record"]
    assert all("payload" not in each for each in shown)


def test_problems_are_shown_and_make_the_exit_code(run: Run, directory: Path) -> None:
    path = directory / "00000000000000000000.log"
    path.write_bytes(path.read_bytes() + b"junk")
    shown = run("dump-log", str(path))
    assert shown.exit_code == 1
    assert "PROBLEM: 4 bytes from position" in shown.stdout


def test_indexes_are_checked(run: Run, directory: Path) -> None:
    index = directory / "00000000000000000000.index"
    assert run("dump-log", str(directory), "--index-sanity-check").stdout == f"{index} passed the check\n"
    assert run("dump-log", str(directory), "--verify-index-only").stdout == f"{index} passed the check\n"
    index.write_bytes(pack(">ii", 1, 3))
    assert run("dump-log", str(directory), "--index-sanity-check").exit_code == 0
    wrong = run("dump-log", str(directory), "--verify-index-only")
    assert wrong.exit_code == 1
    assert "offset 1 is not at position 3" in wrong.stdout


def test_lines_of_records_begin_with_a_bar() -> None:
    assert text_of(DumpEntry(RECORD, {"a": True, "b": [1, 2], "c": {"d": 1}})) == '| a: true b: [1,2] c: {"d":1}'
    assert text_of(DumpEntry(PROBLEM, {"problem": "x"})) == "PROBLEM: x"


def test_usage(fails: Callable[..., str], tmp_path: Path) -> None:
    assert "no files given" in fails("dump-log")
    assert "choose one decoder" in fails("dump-log", "x.log", "--offsets-decoder", "--cluster-metadata-decoder")
    assert "notes.txt: there is no such file" in fails("dump-log", str(tmp_path / "notes.txt"))
    (tmp_path / "notes.txt").touch()
    assert "not the name of a segment" in fails("dump-log", str(tmp_path / "notes.txt"))
