"""Ids of log directories, and the few that stand for something else than a directory (KIP-858)."""

from __future__ import annotations

from typing import Final

from millbeck.kernel.ids import Uuid

MIGRATING_DIRECTORY: Final[Uuid] = bytes(16)
"""Nothing is known: written before directories were tracked."""
UNASSIGNED_DIRECTORY: Final[Uuid] = bytes(15) + b"\x01"
"""The broker will choose one and say."""
LOST_DIRECTORY: Final[Uuid] = bytes(15) + b"\x02"
"""Some directory of that broker which is offline."""

_RESERVED_COUNT: Final = 100


def is_reserved(directory: Uuid) -> bool:
    """One of the hundred ids that no directory may have."""
    return directory[:15] == bytes(15) and directory[15] < _RESERVED_COUNT
