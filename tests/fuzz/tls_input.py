"""What a hostile client sends to a TLS port: flights of a handshake with bytes changed, cut, repeated, or noise."""

from __future__ import annotations

import random
import ssl

RECORD_TYPES = (0, 20, 21, 22, 23, 24, 255)


class HostileClient:
    """A client's side of a handshake in memory; `hostile` is what it sends instead of what it should send."""

    def __init__(self, dice: random.Random) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        if dice.randrange(2):
            context.maximum_version = ssl.TLSVersion.TLSv1_2
        self._dice = dice
        self.incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.connection = context.wrap_bio(self.incoming, self._outgoing, server_hostname="localhost")
        self.honest_flights = dice.choice([0, 0, 1, 1, 2, 3])
        """How many flights are sent as they should be, before the first that is not."""

    def flight(self) -> bytes:
        """The next honest flight; empty when the client waits for the server."""
        try:
            self.connection.do_handshake()
            self.connection.write(b"\x00\x00\x00\x0a\x00\x12\x00\x00\x00\x00\x00\x01\xff\xff")
        except ssl.SSLError:
            pass
        return self._outgoing.read()

    def hostile(self, honest: bytes) -> bytes:
        dice, data = self._dice, bytearray(honest or b"\x16\x03\x01\x00\x00")
        kind = dice.randrange(9)
        if kind == 0:
            return dice.randbytes(dice.randrange(1, 600))
        if kind == 1:
            return bytes(data[: dice.randrange(1, len(data) + 1)])
        if kind == 2:
            return bytes(data) * dice.randrange(2, 6)
        if kind == 3:
            size = dice.randrange(1 << 14)
            return (
                bytes([dice.choice(RECORD_TYPES), 3, dice.randrange(5)])
                + size.to_bytes(2, "big")
                + dice.randbytes(size)
            )
        if kind == 4:
            data[3:5] = dice.choice([b"\xff\xff", b"\x00\x00", b"\x40\x01", b"\x48\x00"])
            return bytes(data)
        if kind == 5:
            position = dice.randrange(len(data))
            data[position:position] = dice.randbytes(dice.randrange(1, 300))
            return bytes(data)
        if kind == 6:
            # Empty records and alerts that end nothing, by the thousand.
            return (
                dice.choice([b"\x17\x03\x03\x00\x00", b"\x15\x03\x03\x00\x02\x01\x5a", b"\x14\x03\x03\x00\x01\x01"])
                * 2000
            )
        for _ in range(dice.choice([1, 1, 2, 5, 20])):
            data[dice.randrange(len(data))] = dice.choice([0, 1, 0x7F, 0x80, 0xFF, dice.randrange(256)])
        return bytes(data)
