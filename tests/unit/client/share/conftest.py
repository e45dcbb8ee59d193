"""Share consumers are tried on whole nodes in the simulator: their harness is importable here."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "server"))
