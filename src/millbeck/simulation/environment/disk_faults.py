"""The faults of a simulated disk, and types that its parts share."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import Enum


class DiskCall(Enum):
    READ = "read"
    WRITE = "write"
    SYNC = "sync"


@dataclass(slots=True, kw_only=True)
class DiskFaults:
    """Random faults of a disk. Probabilities are per call."""

    capacity_bytes: int = 1 << 40
    read_error: float = 0.0
    write_error: float = 0.0
    sync_error: float = 0.0
    cold_read: float = 0.0  # how often `read_nowait` has to decline
    sync_cost_s: float = 0.001
    slowness: float = 1.0  # multiplies what calls cost in virtual time


def names_of(path: str) -> list[str]:
    return [name for name in path.split("/") if name and name != "."]


def fault(error: int, path: str) -> OSError:
    return OSError(error, os.strerror(error), path)
