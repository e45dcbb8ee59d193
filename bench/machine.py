"""What the numbers were measured on: the machine, and the versions of everything that took part."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import confluent_kafka

from bench.systems import apache_kafka
from bench.systems.millbeck import cli_environment
from tools import peers


def cores() -> tuple[int | None, int | None]:
    """The broker's core and the client's; none where the machine has only one to give."""
    usable = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    return (usable[0], usable[1]) if len(usable) > 1 else (None, None)


def scratch_directory(prefix: str) -> Path:
    """A fresh directory on the disk that the cache is on: /tmp may be memory, which would measure nothing."""
    parent = peers.cache_directory().parent
    parent.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=prefix, dir=parent))


def _first_match(path: str, pattern: str) -> str:
    try:
        match = re.search(pattern, Path(path).read_text(), re.MULTILINE)
    except OSError:
        return "unknown"
    return match.group(1).strip() if match else "unknown"


def _java() -> str:
    try:
        done = subprocess.run(["java", "-version"], capture_output=True, text=True, timeout=60)
    except OSError:
        return "none"
    match = re.search(r'version "([^"]+)"', done.stderr)
    return match.group(1) if match else "unknown"


def _revision() -> str:
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=peers.ROOT, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def _kernels() -> str:
    """Whether the kernels and the data path run compiled, as the package itself says."""
    question = (
        "from millbeck import compiled; from millbeck.records import native\n"
        "forms = 'pure Python', 'compiled'\n"
        "print(forms[native.COMPILED] + ', data path ' + forms[compiled.in_use()])"
    )
    done = subprocess.run(
        [sys.executable, "-c", question], env=cli_environment(), capture_output=True, text=True, timeout=60
    )
    return done.stdout.strip() or "unknown"


def vmstat(name: str) -> int:
    """A counter of /proc/vmstat in pages."""
    value = _first_match("/proc/vmstat", rf"^{name} (\d+)$")
    return int(value) if value != "unknown" else 0


def facts(with_kafka: bool) -> list[str]:
    """Lines for the head of a report."""
    memory_kib = int(_first_match("/proc/meminfo", r"MemTotal:\s+(\d+)") or 0)
    processor = _first_match("/proc/cpuinfo", r"model name\s*:\s*(.+)")
    lines = [
        f"{os.cpu_count()} × {processor}, {memory_kib / (1 << 20):.0f} GiB memory, Linux {platform.release()}",
        f"millbeck {_revision()} on Python {platform.python_version()}, kernels {_kernels()}",
        f"client: confluent-kafka {confluent_kafka.version()}, librdkafka {confluent_kafka.libversion()[0]}",
    ]
    if with_kafka:
        lines.append(f"Apache Kafka {apache_kafka.version()}, Java {_java()}, 1 GB heap, G1, its default settings")
    load = os.getloadavg()
    lines.append(f"load average at the start: {load[0]:.1f} {load[1]:.1f} {load[2]:.1f}")
    return lines
