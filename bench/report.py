"""Writes docs/benchmarks.md: each kind of run owns one section between markers and leaves the others as they are."""

from __future__ import annotations

import datetime
import re

from bench.compare import Comparison, Direction, summary
from tools.peers import ROOT

PAGE = ROOT / "docs" / "benchmarks.md"


def write_section(name: str, lines: list[str]) -> None:
    """Replace what stands between the section's markers."""
    text = PAGE.read_text()
    pattern = re.compile(rf"(<!-- {name}: begin -->\n).*?(<!-- {name}: end -->)", re.DOTALL)
    if not pattern.search(text):
        raise ValueError(f"{PAGE} has no section {name}")
    body = "\n".join(lines) + "\n"
    PAGE.write_text(pattern.sub(lambda match: match.group(1) + body + match.group(2), text))


def stamp(machine: list[str]) -> list[str]:
    return [f"Measured {datetime.date.today().isoformat()}.", "", *(f"- {line}" for line in machine), ""]


def _number(value: float | None, digits: int = 0) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"


def _direction_row(name: str, direction: Direction) -> str:
    cells = [
        name,
        _number(direction.ours_megabytes),
        _number(direction.theirs_megabytes),
        _number(direction.throughput_ratio, 2),
        _number(direction.ours_cpu, 2),
        _number(direction.theirs_cpu, 2),
        _number(direction.cpu_ratio, 2),
        f"{_share(direction.ours_client_busy)} / {_share(direction.theirs_client_busy)}",
        direction.verdict,
    ]
    return "| " + " | ".join(cells) + " |"


def transfer_table(title: str, rows: list[tuple[str, Direction]]) -> list[str]:
    return [
        f"**{title}**",
        "",
        "| record / batch / acks / codec | millbeck MB/s | Kafka MB/s | ratio | millbeck CPU s/GB | Kafka CPU s/GB "
        "| CPU ratio | client busy | verdict |",
        "|---|---|---|---|---|---|---|---|---|",
        *(_direction_row(name, direction) for name, direction in rows),
        "",
    ]


def latency_table(comparisons: list[Comparison]) -> list[str]:
    rows = []
    for one in comparisons:
        if one.ours_latency[1] is None:
            continue
        ours, theirs = ([_number(value, 2) for value in side] for side in (one.ours_latency, one.theirs_latency))
        rss = f"{one.ours_rss_bytes / (1 << 20):.0f} / {_number((one.theirs_rss_bytes or 0) / (1 << 20))}"
        pairs = [f"{own} / {other}" for own, other in zip(ours, theirs, strict=True)]
        rows.append(f"| {one.cell_name} | {' | '.join(pairs)} | {rss} |")
    return [
        "**Latency at 1,000 records/s, milliseconds, and resident memory, MiB (millbeck / Kafka)**",
        "",
        "| record / batch / acks / codec | produce p50 | produce p99 | end to end p99 | RSS |",
        "|---|---|---|---|---|",
        *rows,
        "",
    ]


def comparison_section(comparisons: list[Comparison]) -> list[str]:
    return [
        *(f"- {line}" for line in summary(comparisons)),
        "",
        *transfer_table("Produce", [(one.cell_name, one.produce) for one in comparisons]),
        *transfer_table("Consume", [(one.cell_name, one.consume) for one in comparisons]),
        *latency_table(comparisons),
    ]
