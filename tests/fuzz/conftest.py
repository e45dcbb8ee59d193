"""What the fuzzers share is importable from every file here."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
for place in (HERE, HERE / "long", HERE.parent / "unit" / "server"):
    sys.path.insert(0, str(place))
