"""Which kernels run: the extensions where they exist, the Python files where asked."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES

from millbeck.records import native

SCRIPT = """
import sys
from millbeck.records import batch, native, partitioning, validation
from millbeck.records.native import bytes_writer, columns, compaction, rows
modules = [sys.modules[f"{native.__name__}.{name}"] for name in native.MODULES]
print(native.COMPILED, {module.__file__.endswith(".py") for module in modules})
print(len(batch.records_of(batch.build([batch.Record(-1, 0, b"k", b"v")]))))
"""


def run(pure: str) -> list[str]:
    environment = {**os.environ, "MILLBECK_PURE": pure}
    result = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True)
    return result.stdout.split("\n")


def test_python_files_run_when_asked() -> None:
    assert run("1")[:2] == ["False {True}", "1"]


def test_extensions_run_where_they_exist() -> None:
    folder = native.__path__[0]
    exist = any(os.path.exists(f"{folder}/walk{suffix}") for suffix in EXTENSION_SUFFIXES)
    for unset in ("", "0"):
        assert run(unset)[:2] == [f"{exist} {{{not exist}}}", "1"]


def test_every_module_is_listed() -> None:
    names = {name.removesuffix(".py") for name in os.listdir(native.__path__[0]) if name.endswith(".py")}
    assert names == {*native.MODULES, "__init__"}
