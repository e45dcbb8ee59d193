"""Frames nobody should send: valid requests with bytes changed, cut or invented, and plain noise."""

from __future__ import annotations

import random
import struct

from millbeck.server.requests.routes import ROUTES
from millbeck.wire import codec
from millbeck.wire.api_keys import APIS
from millbeck.wire.framing import request_prefix
from tests.fuzz.field_mutations import seeded


def valid_frames() -> list[bytes]:
    """One plain request of every API and version, prefix included."""
    frames = []
    for route in ROUTES:
        api = APIS[route.api_key]
        for version in range(api.min_version, api.max_version + 1):
            body = codec.encoder(api.request, version)(seeded(api.request, version))
            frames.append(request_prefix(api.key, version, 7, "fuzz", len(body)) + body)
    return frames


def hostile_frame(dice: random.Random, valid: list[bytes]) -> bytes:
    """One frame, length prefix included; the prefix mostly tells the truth, so that the bytes are looked at."""
    kind = dice.randrange(10)
    if kind == 0:
        return struct.pack(">i", size := dice.randrange(8, 2000)) + dice.randbytes(size)
    if kind == 1:
        return dice.randbytes(dice.randrange(4, 200))
    frame = bytearray(dice.choice(valid)[4:])
    if kind == 2:
        del frame[dice.randrange(8, max(9, len(frame))) :]
    elif kind == 3:
        position = dice.randrange(len(frame))
        frame[position:position] = dice.randbytes(dice.randrange(1, 40))
    else:
        for _ in range(dice.choice([1, 1, 2, 5, 20])):
            frame[dice.randrange(len(frame))] = dice.choice([0, 1, 0x7F, 0x80, 0xFF, dice.randrange(256)])
    if kind == 4:
        return struct.pack(">i", dice.choice([-1, 0, 2**31 - 1, 104_857_601, len(frame) // 2])) + frame
    return struct.pack(">i", len(frame)) + frame
