"""Which form of the data path runs: the extensions where they exist and are fresh, the Python files where asked."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from millbeck import compiled

SCRIPT = """
import sys
from importlib import import_module
from millbeck import compiled
{before}
forms = {{compiled.is_extension(import_module(name)) for name in compiled.MODULES}}
print(compiled.in_use(), forms)
"""


def forms(*, pure: str = "", before: str = "") -> str:
    environment = {**os.environ, "MILLBECK_PURE": pure}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(before=before)], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def are_built() -> bool:
    return os.path.exists(f"{compiled.SOURCE_TREE}/{compiled.STAMPS}") and not compiled.is_stale()


def test_every_module_exists() -> None:
    root = Path(compiled.__file__).parents[1]
    assert [name for name in compiled.MODULES if not (root / f"{name.replace('.', '/')}.py").is_file()] == []
    assert list(compiled.MODULES) == sorted(compiled.MODULES)


def test_python_files_run_when_the_environment_asks() -> None:
    assert forms(pure="1") == "False {False}"


def test_python_files_run_when_the_process_asks() -> None:
    assert forms(before="compiled.use_sources()") == "False {False}"


def test_all_extensions_run_where_they_are_fresh() -> None:
    if not are_built():
        pytest.skip("the data path is not compiled here")
    assert forms() == "True {True}"


def test_asking_for_sources_too_late_is_an_error() -> None:
    if not are_built():
        pytest.skip("the data path is not compiled here")
    with pytest.raises(AssertionError, match="extensions are in use already"):
        forms(before="import millbeck.wire.varint; compiled.use_sources()")
