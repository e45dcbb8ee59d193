"""What a scraper would read of a node."""

from __future__ import annotations

import re

from millbeck.server.node import Node

LINE = re.compile(r"([a-z_][a-z0-9_]*)(?:\{(.*)\})? (\S+)")


def samples(node: Node | None) -> dict[str, float]:
    """Every sample of the page, by name and labels; fails on a line that is none, and on metrics that failed."""
    assert node is not None
    found: dict[str, float] = {}
    for line in node.render_metrics().splitlines():
        if line.startswith("#") or not line:
            continue
        match = LINE.fullmatch(line)
        assert match is not None, line
        key = match[1] + (f"{{{match[2]}}}" if match[2] else "")
        assert key not in found, key
        found[key] = float(match[3])
    assert found["millbeck_metrics_failures_total"] == 0
    return found


def names(node: Node | None) -> frozenset[str]:
    """Every name that a query can ask for, summaries with their sums and counts."""
    assert node is not None
    found: list[str] = []
    for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", node.render_metrics(), re.MULTILINE):
        found += [name, f"{name}_sum", f"{name}_count"] if kind == "summary" else [name]
    return frozenset(found)
