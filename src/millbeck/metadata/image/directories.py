"""Log directory ids, and the reserved ids that are not directories (KIP-858)."""

from __future__ import annotations

from typing import Final

from millbeck.kernel.ids import Uuid

MIGRATING_DIRECTORY: Final[Uuid] = bytes(16)
"""The id of an unknown directory, in records written before directories were tracked."""
UNASSIGNED_DIRECTORY: Final[Uuid] = bytes(15) + b"\x01"
"""The id of an unassigned directory: the broker will choose one and report it."""
LOST_DIRECTORY: Final[Uuid] = bytes(15) + b"\x02"
"""The id of a lost directory: an offline directory of the broker."""

_RESERVED_COUNT: Final = 100


def is_reserved(directory: Uuid) -> bool:
    """Whether this is one of the hundred ids that no directory may have."""
    return directory[:15] == bytes(15) and directory[15] < _RESERVED_COUNT
