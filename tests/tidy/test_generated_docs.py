"""Pages that are made from the source say what the source says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_generated_pages_are_up_to_date(root: Path) -> None:
    done = subprocess.run([sys.executable, "tools/docs.py", "--check"], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
