"""Randomness from a seed."""

from __future__ import annotations

import random

_DASH_SEXTET = 62  # "-" in URL-safe base64


class SimRandomness:
    def __init__(self, generator: random.Random) -> None:
        self._generator = generator

    def below(self, bound: int) -> int:
        return self._generator.randrange(bound)

    def uuid(self) -> bytes:
        while True:
            value = bytearray(self._generator.randbytes(16))
            value[6] = (value[6] & 0x0F) | 0x40
            value[8] = (value[8] & 0x3F) | 0x80
            if value[0] >> 2 != _DASH_SEXTET:
                return bytes(value)
