"""Random ids that clients see as text."""

from __future__ import annotations

from millbeck.kernel.environment import Randomness


def new_uuid_text(randomness: Randomness) -> str:
    """A fresh random UUID in the form with hyphens."""
    digits = randomness.uuid().hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
