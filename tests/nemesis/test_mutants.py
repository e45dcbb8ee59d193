"""Each mutant is really another program: in a process of its own it changes what it says it changes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from nemesis.mutants import DEFECTS, MUTANTS


@pytest.mark.parametrize("name", [*MUTANTS, *DEFECTS])
def test_a_mutant_still_starts(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "nemesis.mutants", name, "--version"], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.startswith("millbeck"), done.stderr


def test_there_is_no_mutant_of_another_name() -> None:
    done = subprocess.run([sys.executable, "-m", "nemesis.mutants", "none"], capture_output=True, text=True, timeout=60)
    assert "KeyError" in done.stderr
    assert done.returncode == 1
