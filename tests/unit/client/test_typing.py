"""The types of the public API: a program that uses it is clean under ``mypy --strict``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def test_a_program_with_types_is_clean_under_mypy_strict() -> None:
    pytest.importorskip("mypy")
    program = Path(__file__).with_name("typed_program.py")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(program)], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
