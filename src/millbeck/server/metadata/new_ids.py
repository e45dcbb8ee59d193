"""Random ids in text form, for clients."""

from __future__ import annotations

from millbeck.kernel.environment import Randomness


def new_uuid_text(randomness: Randomness) -> str:
    """A new random UUID with hyphens."""
    digits = randomness.uuid().hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
