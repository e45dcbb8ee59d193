"""The summary at the end of the demo: records in and out, the directories of log and checkpoint, and commands to try
next."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING

from millbeck.pipeline.demo.orders import CUSTOMER_COUNT, REVENUE

if TYPE_CHECKING:
    from pathlib import Path

    from millbeck.pipeline.demo.board import Figures


def summary(figures: Figures, directory: Path, *, has_own_log: bool, is_equal: bool) -> list[str]:
    """The lines to print; the commands can be pasted into a shell."""
    total = sum(figures.windows.values()) / 100
    program = program_name(sys.argv[0])
    servers = "" if has_own_log else f" -b {figures.bootstrap}"
    log, checkpoint = _shown(directory / "log"), _shown(directory / "checkpoint")
    if not figures.windows:
        results = "none yet: no window had closed"
    elif is_equal:
        results = f"{len(figures.windows):,} windows, {total:,.2f} in all; each equals the recount"
    else:
        results = f"{len(figures.windows):,} windows, {total:,.2f} in all; the recount differs"
    lines = [
        "",
        f"  records in   {figures.orders_in:,} orders, {CUSTOMER_COUNT} customers",
        f"  results      {results}",
        *([f"  log          {log}"] if has_own_log else []),
        f"  checkpoint   {checkpoint}",
        "",
        "  Next, the last two in a second terminal" if has_own_log else "  Next",
    ]
    if has_own_log:
        lines.append(f"    {program} up --data {log}")
    lines += [
        f"    {program} consume {REVENUE} --from-beginning{servers}",
        f"    {program} topic describe orders{servers}",
    ]
    return [*lines, "" if has_own_log else f"    {program} group list{servers}"]


def program_name(called: str) -> str:
    """``millbeck`` if it is on the PATH, otherwise the path by which this program was called."""
    return "millbeck" if shutil.which("millbeck") or not called.endswith("millbeck") else os.path.relpath(called)


def _shown(path: Path) -> str:
    """A path for a shell, with ``~`` for the home directory."""
    home = os.path.expanduser("~")
    text = str(path)
    return f"~{text[len(home) :]}" if text.startswith(f"{home}{os.sep}") else text
