"""Start-up to the first accepted record, and resident memory once idle."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from statistics import median

from bench import raw
from bench.systems import SYSTEMS

IDLE_SECONDS = 2.0


def measure_startup(system: str, directory: Path, *, core: int | None) -> tuple[float, int]:
    """(seconds from exec to the first acknowledged record, idle resident bytes) on a fresh, formatted directory."""
    node = SYSTEMS[system](directory, core=core)
    try:
        node.prepare()
        started_s = time.monotonic()
        node.start(wait=False)
        accepted_s = raw.first_accepted_produce(node.bootstrap, "first", deadline_s=started_s + 90)
        time.sleep(IDLE_SECONDS)
        return accepted_s - started_s, node.usage().rss_bytes
    finally:
        node.kill()
        shutil.rmtree(directory, ignore_errors=True)


def startup_section(systems: list[str], directory: Path, *, core: int | None, rounds: int) -> list[str]:
    lines = [
        "**Start-up on a formatted directory to the first accepted record, and idle resident memory**",
        "",
        "| system | seconds | MiB |",
        "|---|---|---|",
    ]
    for system in systems:
        runs = [measure_startup(system, directory / f"startup-{system}", core=core) for _ in range(rounds)]
        seconds, rss_bytes = median(one[0] for one in runs), median(one[1] for one in runs)
        lines.append(f"| {system} | {seconds:.2f} | {rss_bytes / (1 << 20):.0f} |")
    return [*lines, ""]
