"""``tools/environment.py``: what pip says about its progress, the steps shown, and when there is nothing to do."""

from __future__ import annotations

import io
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from tools import environment, pip_install, steps

PROJECT = b'[project]\nname = "x"\ndependencies = ["a"]\n[tool.ruff]\nline-length = 120\n'


def test_pip_says_what_it_does() -> None:
    output = pip_install.PipOutput()
    assert output.progress_text(0) == "starting pip"
    told = []
    for line in (
        "Collecting pyspark<4.4,>=4.3 (from millbeck==0.1.0)",
        "  Downloading pyspark-4.3.0.tar.gz (455.7 MB)",
        "Progress 200000000 of 455700000",
        "Progress 455700000 of 455700000",
        "  Preparing metadata (pyproject.toml): started",
        "Collecting numpy>=1.26 (from millbeck==0.1.0)",
        "  Downloading numpy-2.3.5-cp311-cp311-manylinux_2_27_x86_64.whl.metadata (62 kB)",
        "Building wheels for collected packages: pyspark",
        "  Building wheel for pyspark (pyproject.toml): started",
        "Installing collected packages: py4j, numpy, pyspark",
    ):
        output.feed(line + "\n")
        told.append(output.progress_text(500_000_000))
    assert told == [
        "looking for pyspark",
        "downloading pyspark 4.3.0 (455.7 MB)",
        "downloading pyspark 4.3.0, 200 of 456 MB",
        "downloading pyspark 4.3.0 (455.7 MB)",
        "unpacking pyspark, 500 MB on disk",
        "looking for numpy",
        "downloading numpy 2.3.5 (62 kB)",
        "downloading numpy 2.3.5 (62 kB)",
        "building pyspark, 500 MB on disk",
        "installing 3 packages, 500 MB on disk",
    ]
    assert output.downloaded_bytes == 455_700_000


def test_a_failure_of_pip_is_one_line_that_helps() -> None:
    reason = pip_install.reason
    assert reason(["x", "ERROR: Could not install: [Errno 28] No space left on device"]) == "the disk is full"
    assert "network" in reason(["WARNING: Retrying ... Name or service not known", "ERROR: No matching"])
    assert reason(["Collecting a", "ERROR: something new", "more"]) == "something new"
    assert reason([]) == "pip said nothing"


def test_each_step_leaves_one_line_where_nothing_can_be_redrawn() -> None:
    stream = io.StringIO()
    shown = steps.Steps(2, stream=stream)
    with shown.step("packages", lambda: "3 MB downloaded"):
        pass
    with pytest.raises(ZeroDivisionError), shown.step("Java", lambda: ""):
        raise ZeroDivisionError
    assert stream.getvalue() == "[1/2] packages: 3 MB downloaded  0 s\n"


def test_a_terminals_line_is_redrawn_and_cut_to_its_width(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("COLUMNS", "20")
    stream = Terminal()
    with steps.Steps(1, stream=stream).step("packages", lambda: "a long way to go"):
        pass
    (last,) = stream.getvalue().split("\r\x1b[K")[1:]
    assert last == "[1/1] packages: a …\n"


def test_sizes_and_durations(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c").write_bytes(b"1" * 1500)
    (tmp_path / "a" / "loop").symlink_to(tmp_path)
    assert 1500 <= steps.size_below([tmp_path, tmp_path / "gone"]) < 1700
    assert [steps.megabytes(count) for count in (1500, 2_000_000)] == ["2 kB", "2 MB"]
    assert [steps.duration(seconds) for seconds in (9.6, 130)] == ["10 s", "2 min 10 s"]


@pytest.fixture
def set_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a project and an empty virtual environment."""
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    monkeypatch.setattr(environment, "ENVIRONMENT", tmp_path / ".venv")
    monkeypatch.setattr(environment, "PYTHON", tmp_path / ".venv" / "python")
    (tmp_path / "pyproject.toml").write_bytes(PROJECT)
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "python").touch()
    return tmp_path


def test_only_what_decides_about_packages_makes_an_environment_stale(set_up: Path) -> None:
    assert not environment.is_set_up("demo")
    (set_up / ".venv" / ".demo").write_text(environment.digest("demo", PROJECT))
    assert environment.is_set_up("demo")
    (set_up / "pyproject.toml").write_bytes(PROJECT.replace(b"120", b"100"))
    assert environment.is_set_up("demo")
    (set_up / "pyproject.toml").write_bytes(PROJECT.replace(b'"a"', b'"b"'))
    assert not environment.is_set_up("demo")


@pytest.mark.parametrize(
    ("installed", "enough_for"),
    [("check", {"check"}), ("demo", {"demo"}), ("dev", {"check", "demo", "dev"})],
)
def test_what_the_tests_need_includes_what_check_and_demo_need(
    set_up: Path, installed: str, enough_for: set[str]
) -> None:
    stamp = environment.PURPOSES[installed].stamp
    (set_up / ".venv" / stamp).write_text(environment.digest(installed, PROJECT))
    assert {name for name in environment.PURPOSES if environment.is_set_up(name)} == enough_for
    (set_up / ".venv" / "python").unlink()
    assert not any(environment.is_set_up(name) for name in environment.PURPOSES)


def test_a_full_disk_is_told_before_anything_is_written(set_up: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=100_000_000))
    with pytest.raises(environment.SetupFailed, match="has 100 MB free, and the installation needs 2700 MB"):
        environment.set_up("demo")
    assert [path.name for path in (set_up / ".venv").iterdir()] == ["python"]


def test_what_is_installed_already_needs_no_space_again(set_up: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (set_up / ".venv" / ".demo").write_text("of an older project")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=100_000_000))
    with pytest.raises(environment.SetupFailed, match="needs 200 MB"):
        environment.set_up("dev")
