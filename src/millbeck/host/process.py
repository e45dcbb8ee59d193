"""What the operating system counts of this process: descriptors, memory, processor time, bytes of the disk.

Linux tells all of it under ``/proc``; elsewhere what it does not tell is left out.
"""

from __future__ import annotations

import os
import resource
import time
from typing import Final

_PAGE_BYTES: Final = resource.getpagesize()
_PROC: Final = "/proc/self"


def process_numbers() -> dict[str, float]:
    """By the names that Prometheus' own clients use, and ``disk_read_bytes`` and ``disk_write_bytes``."""
    soft_limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    numbers = {"process_max_fds": float(soft_limit), "process_cpu_seconds_total": time.process_time()}
    try:
        # One of them is that of the listing itself.
        numbers["process_open_fds"] = float(len(os.listdir(f"{_PROC}/fd")) - 1)
        with open(f"{_PROC}/statm", encoding="ascii") as file:
            numbers["process_resident_memory_bytes"] = float(int(file.read().split()[1]) * _PAGE_BYTES)
        with open(f"{_PROC}/io", encoding="ascii") as file:
            counted = dict(line.split(": ") for line in file)
        numbers["disk_read_bytes"] = float(counted["read_bytes"])
        numbers["disk_write_bytes"] = float(counted["write_bytes"])
    except (OSError, KeyError, ValueError):
        pass
    return numbers
