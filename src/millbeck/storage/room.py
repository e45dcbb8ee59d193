"""The free space that a log directory needs to accept appends and new logs."""

from __future__ import annotations

from typing import Final

from millbeck.kernel.units import MIB

ROOM_BYTES: Final = 64 * MIB
"""A disk with less free space counts as full."""


def is_full(free_bytes: int) -> bool:
    """Whether a disk with this much free space counts as full; a negative number means that it is unknown."""
    return 0 <= free_bytes < ROOM_BYTES
