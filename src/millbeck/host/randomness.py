"""Randomness from the operating system."""

from __future__ import annotations

import secrets
import uuid

_DASH_SEXTET = 62  # "-" in URL-safe base64: such an id would look like a flag on a command line


class HostRandomness:
    def below(self, bound: int) -> int:
        return secrets.randbelow(bound)

    def uuid(self) -> bytes:
        while True:
            value = uuid.uuid4().bytes
            if value[0] >> 2 != _DASH_SEXTET:
                return value
