"""What Linux says of TCP sockets: the accept queue of a listener, both ends of a connection, refused handshakes."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

IP_BIND_ADDRESS_NO_PORT = 24
LISTEN = 10
STATES = {
    1: "established",
    2: "syn sent",
    3: "syn received",
    4: "fin wait 1",
    5: "fin wait 2",
    6: "time wait",
    7: "closed",
    8: "close wait",
    9: "last ack",
    10: "listening",
    11: "closing",
    12: "new syn received",
}
OVERFLOWS = ("ListenOverflows", "ListenDrops", "TCPReqQFullDrop", "TCPTimeouts")
"""Counted for the whole machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Socket:
    """One line of /proc/net/tcp. Of a listener `unread_bytes` is the number of connections nobody has accepted."""

    local: tuple[str, int]
    remote: tuple[str, int]
    state: int
    unsent_bytes: int
    unread_bytes: int

    def __str__(self) -> str:
        return f"{STATES.get(self.state, self.state)}, {self.unsent_bytes} unsent, {self.unread_bytes} unread"


def tcp_sockets() -> Iterator[Socket]:
    """All IPv4 sockets, the listening ones first."""
    with open("/proc/net/tcp", encoding="ascii") as table:
        next(table)
        for line in table:
            _, local, remote, state, queues, *_ = line.split()
            unsent, unread = queues.split(":")
            yield Socket(
                local=_address(local),
                remote=_address(remote),
                state=int(state, 16),
                unsent_bytes=int(unsent, 16),
                unread_bytes=int(unread, 16),
            )


def accept_queue(port: int) -> int:
    """How many connections to a port of this machine wait to be accepted. Looks no further than it must."""
    for one in tcp_sockets():
        if one.state == LISTEN and one.local[1] == port:
            return one.unread_bytes
    return 0


def both_ends(client: tuple[str, int], server: tuple[str, int]) -> str:
    """A line for a trace: each end of a connection as the kernel has it, and the accept queue."""
    ends = {"client": "none", "server": "none"}
    for one in tcp_sockets():
        if one.local == client and one.remote == server:
            ends["client"] = str(one)
        elif one.local == server and one.remote == client:
            ends["server"] = str(one)
    queue = accept_queue(server[1])
    return f"client end {ends['client']}; server end {ends['server']}; accept queue {queue}"


def overflow_counters() -> dict[str, int]:
    """How often, since the machine was started, a handshake found a queue full, and retransmission timers ran out."""
    found: dict[str, int] = {}
    lines = Path("/proc/net/netstat").read_text().splitlines()
    for names, values in zip(lines[::2], lines[1::2], strict=True):
        counted = dict(zip(names.split()[1:], map(int, values.split()[1:]), strict=True))
        found |= {name: counted[name] for name in OVERFLOWS if name in counted}
    return found


def _address(text: str) -> tuple[str, int]:
    host, port = text.split(":")
    return ".".join(str(byte) for byte in struct.pack("<I", int(host, 16))), int(port, 16)
