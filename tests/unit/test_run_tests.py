"""``tools/run_tests.py``: the parts of `make test`, and what it says of them."""

from __future__ import annotations

from pathlib import Path

from tools import run_tests

ROOT = Path(__file__).parents[2]


def test_every_directory_of_tests_is_in_a_part_or_has_a_target_of_its_own() -> None:
    named = [argument for part in run_tests.parts() for argument in part.arguments if argument.startswith("tests")]
    assert [name for name in named if not (ROOT / name).exists()] == []
    assert "tests" in named
    assert "tests/spark" in named


def test_a_part_passes_on_its_exit_code_and_settings(tmp_path: Path) -> None:
    part = run_tests.Part("a part", ("-c", "import os, sys; sys.exit(int(os.environ['CODE']))"), (("CODE", "3"),))
    outcome = run_tests.run(part, tmp_path / "results.xml")
    assert (outcome.code, outcome.counts) == (3, "")


def test_bytecode_is_kept_where_python_would_write_none() -> None:
    part = run_tests.Part("a part", (), (("CODE", "3"),))
    assert run_tests.environment(part, {"HOME": "/h"}) == {"HOME": "/h", "CODE": "3"}
    kept = str(run_tests.BUILD / "bytecode")
    assert run_tests.environment(part, {"PYTHONDONTWRITEBYTECODE": "1"}) == {"CODE": "3", "PYTHONPYCACHEPREFIX": kept}


def test_counts_come_from_pytests_report(tmp_path: Path) -> None:
    report = tmp_path / "results.xml"
    report.write_text('<testsuites><testsuite tests="12" failures="1" errors="1" skipped="3"/></testsuites>')
    assert run_tests.counts_of(report) == "2 failed, 7 passed, 3 skipped"
    report.write_text("<testsuites>")
    assert run_tests.counts_of(report) == ""
    assert run_tests.counts_of(tmp_path / "none") == ""


def test_the_summary_has_a_line_for_each_part() -> None:
    first, second, third = (run_tests.Part(title, ()) for title in ("compile", "tests", "Spark"))
    outcomes = [run_tests.Outcome(first, 0, 61.0, ""), run_tests.Outcome(second, 1, 5.0, "1 failed, 2 passed")]
    assert [line.split("  ")[0] for line in run_tests.summary([first, second, third], outcomes)] == [
        "compile",
        "tests",
        "Spark",
        "in all",
    ]
    text = "\n".join(run_tests.summary([first, second, third], outcomes))
    assert "61 s  done" in text
    assert "1 failed, 2 passed" in text
    assert "not run" in text
    assert text.endswith("66 s")
