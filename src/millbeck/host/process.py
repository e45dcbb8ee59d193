"""Operating system statistics of this process: descriptors, memory, processor time, bytes read and written.

Linux has all of them under ``/proc``; elsewhere the missing ones are omitted.
"""

from __future__ import annotations

import contextlib
import os
import resource
import time
from typing import Final

_PAGE_BYTES: Final = resource.getpagesize()
_PROC: Final = "/proc/self"


def process_id() -> int:
    """The id of this process, which is different after a fork."""
    return os.getpid()


def raise_open_files_limit() -> None:
    """Raise the limit of open files to the maximum that this process may have, as the JVM does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(OSError, ValueError):  # macOS has a lower limit of its own
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def process_numbers() -> dict[str, float]:
    """The statistics by the metric names of Prometheus' client libraries, plus ``disk_read_bytes`` and
    ``disk_write_bytes``."""
    soft_limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    numbers = {"process_max_fds": float(soft_limit), "process_cpu_seconds_total": time.process_time()}
    try:
        numbers["process_open_fds"] = float(_open_count())
        with open(f"{_PROC}/statm", encoding="ascii") as file:
            numbers["process_resident_memory_bytes"] = float(int(file.read().split()[1]) * _PAGE_BYTES)
        with open(f"{_PROC}/io", encoding="ascii") as file:
            counted = dict(line.split(": ") for line in file)
        numbers["disk_read_bytes"] = float(counted["read_bytes"])
        numbers["disk_write_bytes"] = float(counted["write_bytes"])
    except (OSError, KeyError, ValueError):
        pass
    return numbers


def _open_count() -> int:
    """The number of open file descriptors: on Linux 6.2 and later the size (``st_size``) of /proc/self/fd, otherwise by
    listing that directory, which takes milliseconds with 10,000 logs."""
    size = os.stat(f"{_PROC}/fd").st_size
    # One of the listed descriptors is that of the listing itself.
    return size or len(os.listdir(f"{_PROC}/fd")) - 1
